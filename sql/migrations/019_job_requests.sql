-- Which run was asked for a job, kept here and not in the sensor's cursor: Dagster writes a cursor
-- into every tick, so that it would grow with the square of a backlog. A row lives until its job is
-- claimed.
CREATE TABLE job_request (
    job_id       UUID PRIMARY KEY REFERENCES event_jobs (job_id) ON DELETE CASCADE,
    generation   INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    run_key      TEXT NOT NULL,
    requested_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- The daemon sleeps until a job waits for a run. One notification per transaction reaches it,
-- however many jobs there are.
CREATE FUNCTION notify_of_pending_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('event_jobs', '');
    RETURN NULL;
END $$;

CREATE TRIGGER event_job_is_pending
    AFTER INSERT OR UPDATE OF status, next_run_at ON event_jobs
    FOR EACH ROW WHEN (NEW.status = 'PENDING')
    EXECUTE FUNCTION notify_of_pending_job();
