-- A tenant that is being deleted is refused like a suspended one, and cannot be resumed.
ALTER TABLE tenant DROP CONSTRAINT tenant_status_check,
    ADD CONSTRAINT tenant_status_check CHECK (status IN ('active', 'suspended', 'deleting'));

-- Tables with rows of tenants, but for those that decide whose rows are whose, which go last; for the
-- log, which keeps ids; and for what belongs to the index, which follows the log. A table whose rows
-- others refer to comes after these.
CREATE VIEW table_of_tenants AS
    WITH RECURSIVE owned AS (
        SELECT c.oid FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname IN ('public', 'log')
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND c.oid NOT IN ('tenant'::regclass, 'audience'::regclass, 'audience_member'::regclass,
                            'log.events'::regclass, 'log.aggregates'::regclass,
                            'index_entry'::regclass, 'index_collections'::regclass)
    ), depth AS (
        SELECT oid, 0 AS steps FROM owned
        UNION
        SELECT k.confrelid, d.steps + 1 FROM depth d
        JOIN pg_constraint k ON k.conrelid = d.oid AND k.contype = 'f' AND k.confrelid <> d.oid
        JOIN owned o ON o.oid = k.confrelid
        WHERE d.steps < 10
    )
    SELECT oid::regclass::text AS name, max(steps) AS place FROM depth GROUP BY oid;
COMMENT ON VIEW table_of_tenants IS 'Tables with rows of tenants, in the order in which these can be deleted.';

-- A batch of a tenant's rows in one of these tables; how many they were.
CREATE FUNCTION forget_rows_of_tenant(of_table TEXT, tenant UUID, most INT) RETURNS BIGINT
    LANGUAGE plpgsql AS $$
DECLARE
    gone BIGINT;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM table_of_tenants t WHERE t.name = of_table) THEN
        RAISE EXCEPTION '% has no rows of tenants', of_table;
    END IF;
    EXECUTE format('DELETE FROM %1$s WHERE tenant_id = $1 AND ctid = ANY (ARRAY('
                   'SELECT ctid FROM %1$s WHERE tenant_id = $1 LIMIT $2))', of_table::regclass)
        USING tenant, most;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;

-- The log is append-only, and says who asked for a change. Of a tenant that is deleted, these names go:
-- ids and moments stay.
CREATE OR REPLACE FUNCTION log.refuse_change() RETURNS TRIGGER AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND current_setting('memory.forgets_tenant', true) = OLD.tenant_id::text
       AND to_jsonb(NEW) - '{actor_id,metadata}'::text[]
           = to_jsonb(OLD) - '{actor_id,metadata}'::text[]
       AND NEW.actor_id IS NULL AND NEW.metadata = '{}' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the log is append-only: % of % is refused', lower(TG_OP), TG_TABLE_NAME
        USING ERRCODE = 'object_not_in_prerequisite_state';
END;
$$ LANGUAGE plpgsql;

-- Documents that do not stay for ever: what retention looks at, every hour.
CREATE INDEX idx_artifact_revision_retention ON artifact_revision (artifact_uid)
    WHERE is_latest AND retention_policy <> 'forever';

-- How many chunks of the tenant have a word; none, where the principal sees no chunk with it. Else a
-- word that is corrected, or is not, would tell which words others have written. To look is quick for
-- words that are not common; common ones tell nothing.
CREATE OR REPLACE FUNCTION passages_with(word TEXT) RETURNS NUMERIC
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    counted NUMERIC := coalesce((SELECT f.passages FROM word_frequency f
                                 WHERE f.tenant_id = current_tenant() AND f.lexeme = word), 0)
                       + coalesce((SELECT sum(c.passages) FROM word_change c
                                   WHERE c.tenant_id = current_tenant()
                                     AND c.words @@ quote_literal(word)::tsquery), 0);
BEGIN
    IF counted = 0 OR counted >= 1000 OR sees_whole_tenant() THEN
        RETURN counted;
    END IF;
    IF EXISTS (SELECT 1 FROM chunk_entry s
               WHERE s.audience_id = ANY (audiences_of_principal())
                 AND words_of_chunk(s.artifact_uid, s.revision_id, s.chunk_index)
                     @@ quote_literal(word)::tsquery) THEN
        RETURN counted;
    END IF;
    RETURN 0;
END $$;
