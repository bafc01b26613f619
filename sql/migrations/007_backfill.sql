-- Backfills after a change of prompt: which revisions are outdated, what was asked for again and by
-- whom, and trials of a new prompt beside the events that are served.

-- Versions are compared by their leading number: a deployment only ever redoes what is older than
-- itself, so that two deployments with different prompts never undo each other.
CREATE FUNCTION version_number(version TEXT) RETURNS INT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce(substring(version FROM '^[0-9]{1,9}')::int, 0);

ALTER TABLE extraction
    ADD COLUMN extract_number INT GENERATED ALWAYS AS (version_number(extract_version)) STORED,
    ADD COLUMN merge_number INT GENERATED ALWAYS AS (version_number(merge_version)) STORED;
CREATE INDEX idx_extraction_numbers ON extraction (extractor, extract_number, merge_number);

CREATE TABLE backfill (
    backfill_id     UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    status          TEXT NOT NULL DEFAULT 'RUNNING'
        CHECK (status IN ('RUNNING', 'PAUSED', 'DONE', 'CANCELLED')),
    filter          JSONB NOT NULL DEFAULT '{}',
    other_models    BOOLEAN NOT NULL DEFAULT false, -- also what another extractor or model made
    extractor       TEXT NOT NULL,
    model           TEXT NOT NULL,
    extract_version TEXT NOT NULL,
    merge_version   TEXT NOT NULL,
    requested_by    TEXT NOT NULL,
    estimate        JSONB NOT NULL DEFAULT '{}',
    reason          TEXT NULL,                      -- why it stands as it does
    last_tick_at    TIMESTAMPTZ NULL,
    last_tick       TEXT NULL,                      -- what the last tick did, or why it did nothing
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    finished_at     TIMESTAMPTZ NULL
);
-- One at a time, whoever starts it.
CREATE UNIQUE INDEX uq_backfill_one_open ON backfill ((true))
    WHERE status IN ('RUNNING', 'PAUSED');
CREATE INDEX idx_backfill_created ON backfill (created_at DESC);

-- What a backfill asked for: each revision once. The generation says which request was its own.
CREATE TABLE backfill_item (
    backfill_id      UUID NOT NULL REFERENCES backfill (backfill_id) ON DELETE CASCADE,
    artifact_uid     TEXT NOT NULL,
    revision_id      TEXT NOT NULL,
    job_id           UUID NOT NULL,
    generation       INT NOT NULL,
    estimated_tokens BIGINT NOT NULL,
    job_before       JSONB NOT NULL,                -- how the job stood, should it be taken back
    enqueued_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (backfill_id, artifact_uid, revision_id),
    FOREIGN KEY (artifact_uid, revision_id)
        REFERENCES artifact_revision (artifact_uid, revision_id) ON DELETE CASCADE
);

-- A job of a backfill waits behind all others, and for a deployment that is new enough.
ALTER TABLE event_jobs
    ADD COLUMN backfill_id UUID NULL,
    ADD COLUMN needs_extractor TEXT NULL,
    ADD COLUMN needs_extract INT NOT NULL DEFAULT 0,
    ADD COLUMN needs_merge INT NOT NULL DEFAULT 0;
CREATE INDEX idx_event_jobs_backfill ON event_jobs (backfill_id) WHERE backfill_id IS NOT NULL;

-- Whatever asks for a job again, it is a request of its own and no longer the backfill's.
CREATE FUNCTION leave_backfill() RETURNS TRIGGER AS $$
BEGIN
    NEW.backfill_id = NULL;
    NEW.needs_extractor = NULL;
    NEW.needs_extract = 0;
    NEW.needs_merge = 0;
    RETURN NEW;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER leave_backfill
    BEFORE UPDATE OF generation ON event_jobs
    FOR EACH ROW
    WHEN (NEW.generation <> OLD.generation AND NEW.backfill_id = OLD.backfill_id)
    EXECUTE FUNCTION leave_backfill();

-- What we counted ourselves of a call's messages, beside what the provider billed: their ratio makes
-- estimates honest for a provider that counts otherwise.
ALTER TABLE model_call
    ADD COLUMN counted_tokens INT NOT NULL DEFAULT 0,
    ADD COLUMN backfill_id UUID NULL;               -- whose daily limit it counts against
CREATE INDEX idx_model_call_backfill ON model_call (backfill_id, called_at)
    WHERE backfill_id IS NOT NULL;

-- A trial: a new prompt on a sample, beside the events that are served.
CREATE TABLE prompt_trial (
    trial_id        UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    filter          JSONB NOT NULL DEFAULT '{}',
    sample          INT NOT NULL,
    seed            INT NOT NULL,
    extractor       TEXT NOT NULL,
    model           TEXT NOT NULL,
    extract_version TEXT NOT NULL,
    merge_version   TEXT NOT NULL,
    requested_by    TEXT NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    finished_at     TIMESTAMPTZ NULL
);
CREATE INDEX idx_prompt_trial_finished ON prompt_trial (finished_at, trial_id);

CREATE TABLE prompt_trial_revision (
    trial_id          UUID NOT NULL REFERENCES prompt_trial (trial_id) ON DELETE CASCADE,
    artifact_uid      TEXT NOT NULL,
    revision_id       TEXT NOT NULL,
    position          INT NOT NULL,
    extract_version   TEXT NOT NULL,                -- of the events that are served
    merge_version     TEXT NOT NULL,
    events            JSONB NOT NULL DEFAULT '[]',  -- what the new prompt gives
    comparison        JSONB NOT NULL DEFAULT '{}',
    rejected_before   INT NOT NULL DEFAULT 0,
    rejected          INT NOT NULL DEFAULT 0,
    calls             INT NOT NULL DEFAULT 0,
    cache_hits        INT NOT NULL DEFAULT 0,
    prompt_tokens     INT NOT NULL DEFAULT 0,
    completion_tokens INT NOT NULL DEFAULT 0,
    error             TEXT NULL,
    PRIMARY KEY (trial_id, artifact_uid, revision_id),
    FOREIGN KEY (artifact_uid, revision_id)
        REFERENCES artifact_revision (artifact_uid, revision_id) ON DELETE CASCADE
);
