-- Which run, attempt and chunk a model call was made for, and its span in the trace of the call that
-- asked for the job.
ALTER TABLE model_call
    ADD COLUMN run_id      TEXT NULL,
    ADD COLUMN attempt     INT NULL,
    ADD COLUMN chunk_index INT NULL,          -- null: about events of several chunks
    ADD COLUMN trace_id    VARCHAR(32) NULL,
    ADD COLUMN span_id     VARCHAR(16) NULL;
CREATE INDEX idx_model_call_trace ON model_call (trace_id) WHERE trace_id IS NOT NULL;
