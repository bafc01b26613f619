-- Deletes what a document left in the tables of every package.

-- name: sees_latest_revision
SELECT EXISTS (SELECT 1 FROM artifact_revision WHERE artifact_uid = %(uid)s AND is_latest) AS seen;

-- name: count_entries_of_owner
SELECT count(*) AS entries FROM index_entry
JOIN index_generation g USING (generation) WHERE g.state = 'serving' AND owner = %(owner)s;

-- name: forget_embeddings
DELETE FROM embedding_cache WHERE owner = ANY (%(owners)s::text[]);

-- name: forget_dead_letters
-- The text of an error may repeat a document: it is deleted with the artifact or memory.
UPDATE log.dead_letter_queue
SET error_message = 'what it is about was deleted', error_stacktrace = NULL
WHERE %(owner)s IN (event_data->'payload'->>'artifact_uid', event_data->'payload'->>'memory_id');

-- name: delete_unshared_cache
-- Cached answers for passages that no other artifact has. Run it before the chunks are deleted.
DELETE FROM extraction_cache k
USING (SELECT DISTINCT content_hash FROM revision_chunk WHERE artifact_uid = %(uid)s) mine
WHERE k.tenant_id = current_tenant() AND passage_of(k.chunk_hash) = mine.content_hash
  AND NOT EXISTS (SELECT 1 FROM revision_chunk other
                  WHERE other.content_hash = mine.content_hash AND other.artifact_uid <> %(uid)s
                    AND other.tenant_id = k.tenant_id);

-- name: delete_evidence_of_artifact
DELETE FROM event_evidence WHERE artifact_uid = %(uid)s;

-- name: names_in_artifact
SELECT DISTINCT a.name_key FROM semantic_event e JOIN event_actor a USING (event_id)
WHERE e.artifact_uid = %(uid)s ORDER BY a.name_key;

-- name: delete_events_of_artifact
DELETE FROM semantic_event WHERE artifact_uid = %(uid)s;

-- name: forget_names
-- Those of these names that no event has any more.
DELETE FROM actor_name n
WHERE n.tenant_id = current_tenant() AND n.name_key = ANY (%(names)s::text[])
  AND NOT EXISTS (SELECT 1 FROM event_actor a
                  WHERE a.name_key = n.name_key AND a.tenant_id = n.tenant_id);

-- name: forget_in_audit
-- In the calls that stored or named a document, hashes of texts are deleted; ids and lengths stay.
-- Run it while its jobs exist: the calls that stored it are found by them.
UPDATE tool_calls c
SET parameters = (SELECT jsonb_object_agg(p.key, CASE WHEN jsonb_typeof(p.value) = 'object'
                                                      THEN p.value - 'sha256' ELSE p.value END)
                  FROM jsonb_each(c.parameters) p)
WHERE c.parameters <> '{}'
  AND (c.task_id = ANY (ARRAY(SELECT job_id FROM event_jobs WHERE artifact_uid = %(uid)s))
       OR c.parameters @> jsonb_build_object('artifact_uid', %(uid)s::text));

-- name: delete_chunks_of_artifact
DELETE FROM revision_chunk WHERE artifact_uid = %(uid)s;

-- name: delete_revisions_of_artifact
-- Texts follow by their foreign key.
WITH addresses AS (DELETE FROM import_address WHERE artifact_uid = %(uid)s)
DELETE FROM artifact_revision WHERE artifact_uid = %(uid)s;
