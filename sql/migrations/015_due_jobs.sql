-- The jobs that are due, in the order in which they are worked on: a long queue is not sorted for
-- every look at its head. Jobs of backfills come after all others, so they have an index of their own.
CREATE INDEX idx_event_jobs_due_fresh ON event_jobs (next_run_at, created_at, job_id)
    WHERE status = 'PENDING' AND backfill_id IS NULL;
CREATE INDEX idx_event_jobs_due_backfill ON event_jobs (next_run_at, created_at, job_id)
    WHERE status = 'PENDING' AND backfill_id IS NOT NULL;
