-- Whose each row is. A constant default needs no rewriting of the table, however many rows there are;
-- the function comes after it, for the rows to come.
DO $$
DECLARE
    owned TEXT;
BEGIN
    FOREACH owned IN ARRAY ARRAY[
        'artifact_revision', 'revision_text', 'revision_chunk', 'revision_entity', 'revision_period',
        'artifact_source', 'import_address', 'chunk_entry', 'passage_statistics',
        'semantic_event', 'event_evidence', 'event_actor', 'actor_name', 'event_entry',
        'event_jobs', 'job_request', 'extraction', 'extraction_cache', 'model_call',
        'backfill', 'backfill_item', 'prompt_trial', 'prompt_trial_revision',
        'memory', 'history_turn', 'index_entry', 'embedding_cache',
        'log.aggregates', 'log.event_snapshots', 'log.dead_letter_queue',
        'log.webhook_subscriptions', 'log.webhook_deliveries'
    ] LOOP
        EXECUTE format('ALTER TABLE %s ADD COLUMN tenant_id UUID NOT NULL '
                       'DEFAULT ''00000000-0000-0000-0000-000000000000''', owned);
        EXECUTE format('ALTER TABLE %s ALTER COLUMN tenant_id SET DEFAULT current_tenant()', owned);
    END LOOP;
END $$;

-- Changes of the time before have no tenant, and the log is append-only: none means the default one.
ALTER TABLE log.events ALTER COLUMN tenant_id SET DEFAULT current_tenant();
ALTER TABLE log.event_outbox ALTER COLUMN tenant_id SET DEFAULT current_tenant();

CREATE INDEX idx_event_jobs_tenant ON event_jobs (tenant_id) WHERE status = 'PENDING';
