-- The job ledger: who asked for a job and how urgently, every transition of every job, and the
-- queue in the vocabulary of other systems (the view `job`).

-- --- columns ------------------------------------------------------------------------------------

-- What asked: ingest, tool, ui, backfill, schedule or repair.
ALTER TABLE event_jobs RENAME COLUMN requested_by TO origin;

ALTER TABLE event_jobs
    ADD COLUMN requested_by        TEXT NULL,              -- who asked, where that is known
    ADD COLUMN priority            INT NOT NULL DEFAULT 0,
    ADD COLUMN backoff_policy      TEXT NOT NULL DEFAULT 'exp',
    ADD COLUMN idempotency_key     TEXT NULL,
    ADD COLUMN trace_id            TEXT NULL,              -- of the call that asked
    ADD COLUMN started_at          TIMESTAMPTZ NULL,       -- of the request's first attempt
    ADD COLUMN finished_at         TIMESTAMPTZ NULL,
    ADD COLUMN progress_at         TIMESTAMPTZ NULL,       -- when its run last got on with it
    ADD COLUMN cancel_requested_at TIMESTAMPTZ NULL,       -- while a run holds it
    DROP CONSTRAINT event_jobs_status_check;

-- One pass over the table: the end of each finished job, and the turn of each job. One point of
-- priority is worth one minute of waiting.
ALTER TABLE event_jobs
    ALTER COLUMN finished_at TYPE TIMESTAMPTZ
        USING (CASE WHEN status IN ('DONE', 'FAILED') THEN updated_at END),
    ADD COLUMN turn_at TIMESTAMP GENERATED ALWAYS AS
        ((next_run_at AT TIME ZONE 'UTC') - priority * interval '1 minute') STORED,
    ADD CONSTRAINT event_jobs_status_check
        CHECK (status IN ('PENDING', 'PROCESSING', 'DONE', 'FAILED', 'CANCELED')),
    ADD CONSTRAINT ck_job__priority CHECK (priority BETWEEN -100 AND 100),
    ADD CONSTRAINT ck_job__backoff_policy CHECK (backoff_policy IN ('none', 'fixed', 'exp')),
    ADD CONSTRAINT ck_job__idempotency_key CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    ADD CONSTRAINT ck_job__status_finished_at_consistency
        CHECK ((finished_at IS NOT NULL) = (status IN ('DONE', 'FAILED', 'CANCELED')));

CREATE INDEX idx_job__job_org_id ON event_jobs (tenant_id);
CREATE INDEX idx_job__org_id_created_at_desc ON event_jobs (tenant_id, created_at DESC, job_id DESC);
CREATE UNIQUE INDEX idx_job__org_id_idempotency_key ON event_jobs (tenant_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX idx_job__status_created_at ON event_jobs (status, created_at, job_id);

-- What is due, tenant by tenant in the order of turns. What waits for its back-off is passed over
-- inside the index.
DROP INDEX idx_event_jobs_due_fresh;
DROP INDEX idx_event_jobs_due_backfill;
CREATE INDEX idx_event_jobs_turn_fresh ON event_jobs (tenant_id, turn_at, job_id, next_run_at)
    WHERE status = 'PENDING' AND backfill_id IS NULL;
CREATE INDEX idx_event_jobs_turn_backfill ON event_jobs (tenant_id, turn_at, job_id, next_run_at)
    WHERE status = 'PENDING' AND backfill_id IS NOT NULL;

-- --- transitions --------------------------------------------------------------------------------

-- Every way a job may go; NULL is "not there yet". The picture in docs/jobs.md is drawn from it.
CREATE VIEW job_transition (prev_status, next_status, meaning) AS VALUES
    (NULL,         'PENDING',    'requested'),
    (NULL,         'DONE',       'brought in with its events'),
    ('PENDING',    'PENDING',    'requested again'),
    ('PENDING',    'PROCESSING', 'claimed by a run'),
    ('PENDING',    'DONE',       'withdrawn: done before'),
    ('PENDING',    'FAILED',     'no attempt left, or withdrawn: failed before'),
    ('PENDING',    'CANCELED',   'canceled, or withdrawn: canceled before'),
    ('PROCESSING', 'PROCESSING', 'taken over from a dead run'),
    ('PROCESSING', 'PENDING',    'waits for the next attempt, or requested again'),
    ('PROCESSING', 'DONE',       'events stored'),
    ('PROCESSING', 'FAILED',     'failed for good'),
    ('PROCESSING', 'CANCELED',   'canceled at a safe point'),
    ('DONE',       'PENDING',    'requested again'),
    ('FAILED',     'PENDING',    'requested again'),
    ('CANCELED',   'PENDING',    'requested again');

-- Times of a job follow its state, whichever statement changes that.
CREATE FUNCTION keep_job_times() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status IN ('DONE', 'FAILED', 'CANCELED') THEN
        NEW.finished_at := coalesce(NEW.finished_at, now());
    ELSE
        NEW.finished_at := NULL;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        IF NEW.generation <> OLD.generation THEN
            NEW.started_at := NULL;
            NEW.cancel_requested_at := NULL;
        ELSIF NEW.status <> 'PROCESSING' THEN
            NEW.cancel_requested_at := NULL;
        END IF;
        IF NEW.status = 'PROCESSING' AND NEW.attempts <> OLD.attempts THEN
            NEW.started_at := coalesce(NEW.started_at, now());
            NEW.progress_at := now();
        END IF;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER keep_job_times BEFORE INSERT OR UPDATE ON event_jobs
    FOR EACH ROW EXECUTE FUNCTION keep_job_times();

-- --- the ledger ---------------------------------------------------------------------------------

CREATE TABLE job_event (
    id          BIGINT GENERATED ALWAYS AS IDENTITY,  -- in the order of the job's transitions
    job_id      UUID NOT NULL,
    tenant_id   UUID NOT NULL DEFAULT current_tenant(),
    ts          TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    prev_status TEXT NULL,
    next_status TEXT NOT NULL,
    detail      JSONB NULL                           -- run, attempt, generation, error, who …
);

-- What became of jobs before there was a ledger is not known; how they stand is.
INSERT INTO job_event (job_id, tenant_id, next_status, detail)
SELECT job_id, tenant_id, status, jsonb_strip_nulls(jsonb_build_object(
           'run', locked_by, 'attempt', attempts, 'generation', generation, 'origin', origin,
           'error', last_error_code, 'who', session_user, 'note', 'as it stood at the upgrade'))
FROM event_jobs;

ALTER TABLE job_event
    ADD CONSTRAINT pk_job_event PRIMARY KEY (id),
    ADD CONSTRAINT fk_job_event_job_job_id
        FOREIGN KEY (job_id) REFERENCES event_jobs (job_id) ON DELETE CASCADE;
CREATE INDEX idx_job_event__job_id_ts ON job_event (job_id, ts);
CREATE INDEX idx_job_event__ts ON job_event (ts);

-- Writes down a transition, or refuses it. `memory.actor` names who acts; without it the database
-- role does.
CREATE FUNCTION record_job_transition() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before    TEXT := CASE WHEN TG_OP = 'UPDATE' THEN OLD.status END;
    requested BOOLEAN := TG_OP = 'INSERT' OR NEW.generation <> OLD.generation;
BEGIN
    INSERT INTO job_event (job_id, tenant_id, prev_status, next_status, detail)
    SELECT NEW.job_id, NEW.tenant_id, before, NEW.status, jsonb_strip_nulls(jsonb_build_object(
               'run', NEW.locked_by, 'attempt', NEW.attempts, 'generation', NEW.generation,
               'origin', NEW.origin, 'error', NEW.last_error_code,
               'message', left(NEW.last_error_message, 300),
               'due', CASE WHEN NEW.status = 'PENDING' THEN NEW.next_run_at END,
               'who', coalesce(nullif(current_setting('memory.actor', true), ''),
                               CASE WHEN requested THEN NEW.requested_by END, session_user)))
    FROM job_transition t
    WHERE t.prev_status IS NOT DISTINCT FROM before AND t.next_status = NEW.status;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'job % cannot go from % to %', NEW.job_id,
            coalesce(before, 'nothing'), NEW.status USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER record_job_request AFTER INSERT ON event_jobs
    FOR EACH ROW EXECUTE FUNCTION record_job_transition();
CREATE TRIGGER record_job_transition AFTER UPDATE ON event_jobs
    FOR EACH ROW WHEN (OLD.status <> NEW.status OR OLD.attempts <> NEW.attempts
                       OR OLD.generation <> NEW.generation
                       OR OLD.locked_by IS DISTINCT FROM NEW.locked_by)
    EXECUTE FUNCTION record_job_transition();

CREATE FUNCTION refuse_ledger_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Rows go with their job: then this is called by the trigger of the foreign key.
    IF TG_OP = 'DELETE' AND pg_trigger_depth() > 1 THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the job ledger is append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER job_event_is_immutable BEFORE UPDATE OR DELETE ON job_event
    FOR EACH ROW EXECUTE FUNCTION refuse_ledger_change();

-- --- the queue in other words -------------------------------------------------------------------

-- FAILED is dead_letter when no attempt is left, and failed when the cause must be mended first.
CREATE VIEW job AS
SELECT job_id AS id, tenant_id AS org_id, job_type AS type,
       CASE status WHEN 'PENDING' THEN 'queued'
                   WHEN 'PROCESSING' THEN 'running'
                   WHEN 'DONE' THEN 'succeeded'
                   WHEN 'CANCELED' THEN 'canceled'
                   ELSE CASE WHEN last_error_code = 'MAX_ATTEMPTS_EXCEEDED' THEN 'dead_letter'
                             ELSE 'failed' END END AS status,
       attempts AS attempt, max_attempts, backoff_policy, priority, idempotency_key, requested_by,
       created_at, updated_at, started_at, finished_at, last_error_code, last_error_message
FROM event_jobs;

-- --- idempotent requests ------------------------------------------------------------------------

-- The first answer to a request with a key, as long as the document that it made. Ids only.
CREATE TABLE idempotent_request (
    tenant_id       UUID NOT NULL DEFAULT current_tenant(),
    idempotency_key TEXT NOT NULL CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    request_hash    TEXT NOT NULL,
    artifact_uid    TEXT NOT NULL,
    answer          JSONB NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, idempotency_key)
);
CREATE INDEX idx_idempotent_request_artifact ON idempotent_request (artifact_uid);
