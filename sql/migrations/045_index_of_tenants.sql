-- Each tenant has collections of its own in Chroma, and its own vectors that were paid for. What stands
-- there now stands in the collections of the default tenant.

-- In which tenants' collections a generation stands. A row is written after they were made.
CREATE TABLE index_collections (
    generation INT NOT NULL REFERENCES index_generation (generation) ON DELETE CASCADE,
    tenant_id  UUID NOT NULL,
    PRIMARY KEY (generation, tenant_id)
);
COMMENT ON TABLE index_collections IS 'Tenants that have collections in Chroma, by generation.';
ALTER TABLE index_collections ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON index_collections FOR SELECT TO memory_app
    USING (tenant_id = (SELECT principal_tenant()));
GRANT SELECT ON index_collections TO memory_app;

INSERT INTO index_collections (generation, tenant_id)
SELECT generation, '00000000-0000-0000-0000-000000000000' FROM index_generation
WHERE made_at IS NOT NULL;
ALTER TABLE index_generation DROP COLUMN made_at;

-- The tenant in whose collections an entry stands.
UPDATE index_entry SET tenant_id = '00000000-0000-0000-0000-000000000000'
WHERE tenant_id <> '00000000-0000-0000-0000-000000000000';
ALTER TABLE index_entry
    ALTER COLUMN tenant_id DROP DEFAULT,
    DROP CONSTRAINT index_entry_pkey,
    ADD PRIMARY KEY (generation, tenant_id, collection, id);

-- Where there are other tenants, all owners are passed again: entries that stand where they should
-- are left as they are, those of other tenants move.
UPDATE index_generation SET filled_at = NULL, filled_after = ''
WHERE state IN ('serving', 'filling') AND (SELECT count(*) FROM tenant) > 1;
UPDATE log.projection_checkpoints
SET status = CASE status WHEN 'running' THEN 'rebuilding' ELSE status END, rebuilt_at = NULL
WHERE projection_name = 'index' AND (SELECT count(*) FROM tenant) > 1;

-- A vector that another tenant paid for would tell, by its speed or on the bill, what that tenant has.
UPDATE embedding_cache k SET tenant_id = o.tenant_id
FROM (SELECT artifact_uid AS owner, tenant_id FROM artifact_revision
      UNION SELECT memory_id, tenant_id FROM memory) o
WHERE o.owner = k.owner AND o.tenant_id <> k.tenant_id;
ALTER TABLE embedding_cache
    ALTER COLUMN tenant_id DROP DEFAULT,
    DROP CONSTRAINT embedding_cache_pkey,
    ADD PRIMARY KEY (tenant_id, model, text_hash, owner);

-- Whether nothing in the tenant is hidden from the principal; the system sees everything.
CREATE FUNCTION sees_whole_tenant() RETURNS BOOLEAN
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    RETURN principal_marks() IS NULL
        OR NOT EXISTS (SELECT 1 FROM audience a
                       WHERE a.tenant_id = principal_tenant()
                         AND NOT a.members && principal_marks());
END $$;

-- All that a principal sees, where that is little.
CREATE INDEX idx_chunk_entry_audience ON chunk_entry (audience_id);
