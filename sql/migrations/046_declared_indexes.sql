-- Every event has the mark of its audience, those of the first one too: a tenant among many is searched
-- through its own part of the index, whichever tenant it is. The indexes are built again below.
CREATE OR REPLACE FUNCTION facets_of_event(id UUID) RETURNS TEXT[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000
    RETURN (
        SELECT ARRAY['category:' || e.category, 'artifact:' || e.artifact_uid,
                     'subject:' || coalesce(name_key(e.subject_json ->> 'ref'), ''),
                     'type:' || coalesce(r.artifact_type, ''),
                     'source:' || coalesce(r.source_system, ''), 'audience:' || e.audience_id]
               || CASE WHEN e.actors_json = '[]' THEN ARRAY['no actor']
                  ELSE ARRAY(SELECT DISTINCT 'actor:' || name_key(actor ->> 'ref')
                             FROM jsonb_path_query(e.actors_json, '$[*]') AS actor
                             WHERE actor ->> 'ref' IS NOT NULL) END
        FROM semantic_event e
        LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
        WHERE e.event_id = id);

-- The marks of which an event must have one: those of the audiences that the principal sees. NULL for
-- the system, and where there is one tenant: nearly all events would have such a mark.
CREATE FUNCTION has_other_tenants() RETURNS BOOLEAN
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT EXISTS (SELECT 1 FROM tenant WHERE tenant_id <> principal_tenant())
$$;
CREATE FUNCTION audience_facets() RETURNS TEXT[] LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_user = 'memory_app' AND has_other_tenants() THEN
        RETURN ARRAY(SELECT 'audience:' || a FROM unnest(audiences_of_principal() || 0) AS a);
    END IF;
    RETURN NULL;
END $$;

-- The indexes below hold words that stand in other tables: measured over 200,000 chunks, a column of
-- words in the entries made them five times as large and searches by common words four times as slow.
-- Postgres is told which tables each one reads: a table named in the condition of an index is a
-- dependency of it, so that a parallel pg_restore fills those tables first. The condition is true
-- and is folded away, so plans stay as they are. Every entry is made again when what it is indexed by
-- changes, which keeps the functions as good as IMMUTABLE; the check words_lead_to_texts watches it.
-- Those of the events are gone since 044.
DROP INDEX idx_chunk_entry_words, idx_chunk_entry_title, idx_chunk_entry_strong_words;

CREATE INDEX idx_event_entry_latest ON event_entry
    USING GIN (words_of_event(event_id), facets_of_event(event_id))
    WITH (fastupdate = off)
    WHERE is_latest AND 'semantic_event'::regclass IS NOT NULL
      AND 'artifact_revision'::regclass IS NOT NULL;
CREATE INDEX idx_event_entry_superseded ON event_entry
    USING GIN (words_of_event(event_id), facets_of_event(event_id))
    WITH (fastupdate = off)
    WHERE NOT is_latest AND 'semantic_event'::regclass IS NOT NULL
      AND 'artifact_revision'::regclass IS NOT NULL;
ALTER INDEX idx_event_entry_latest ALTER COLUMN 1 SET STATISTICS 0;
ALTER INDEX idx_event_entry_latest ALTER COLUMN 2 SET STATISTICS 0;
ALTER INDEX idx_event_entry_superseded ALTER COLUMN 1 SET STATISTICS 0;
ALTER INDEX idx_event_entry_superseded ALTER COLUMN 2 SET STATISTICS 0;

CREATE INDEX idx_chunk_entry_words ON chunk_entry
    USING GIN (words_of_chunk(artifact_uid, revision_id, chunk_index))
    WITH (gin_pending_list_limit = 512) WHERE 'revision_chunk'::regclass IS NOT NULL;
CREATE INDEX idx_chunk_entry_title ON chunk_entry
    USING GIN (words_of_title(artifact_uid, revision_id))
    WITH (gin_pending_list_limit = 512)
    WHERE chunk_index = 0 AND 'artifact_revision'::regclass IS NOT NULL;
CREATE INDEX idx_chunk_entry_strong_words ON chunk_entry
    USING GIN (strong_words_of_chunk(artifact_uid, revision_id, chunk_index))
    WITH (gin_pending_list_limit = 512) WHERE 'revision_chunk'::regclass IS NOT NULL;
