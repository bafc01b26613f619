-- What traces and metrics look for: jobs by trace, the oldest request that waits, extractions that
-- ended since the last look.
CREATE INDEX idx_event_jobs_trace ON event_jobs (trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX idx_event_jobs_pending_since ON event_jobs (requested_at)
    WHERE status = 'PENDING' AND backfill_id IS NULL;
CREATE INDEX idx_extraction_finished ON extraction (finished_at);
