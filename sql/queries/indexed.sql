-- What should stand in Chroma, as Postgres tells it: by collection, how many, some, a page of ids in
-- their order, and everything that is to be known of some ids.

-- name: count_artifacts_in_index
SELECT count(*) FILTER (WHERE is_latest) AS latest,
       count(*) FILTER (WHERE NOT is_latest) AS superseded
FROM artifact_revision;

-- name: count_chunks_in_index
SELECT count(*) FILTER (WHERE r.is_latest) AS latest,
       count(*) FILTER (WHERE NOT r.is_latest) AS superseded
FROM revision_chunk c
JOIN artifact_revision r USING (artifact_uid, revision_id) WHERE r.is_chunked;

-- name: count_events_in_index
SELECT count(*) FILTER (WHERE is_latest) AS latest,
       count(*) FILTER (WHERE NOT is_latest) AS superseded
FROM event_entry;

-- name: count_memories_in_index
SELECT count(*) AS expected FROM memory;

-- name: sample_artifacts_in_index
SELECT artifact_id AS id FROM artifact_revision ORDER BY random() LIMIT %(limit)s;

-- name: sample_chunks_in_index
SELECT c.chunk_id AS id FROM revision_chunk c
JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE r.is_chunked ORDER BY random() LIMIT %(limit)s;

-- name: sample_events_in_index
SELECT event_id AS id FROM semantic_event ORDER BY random() LIMIT %(limit)s;

-- name: sample_memories_in_index
SELECT memory_id AS id FROM memory ORDER BY random() LIMIT %(limit)s;

-- name: artifact_ids_in_index
SELECT artifact_id AS id FROM artifact_revision
WHERE artifact_id > %(after)s ORDER BY artifact_id LIMIT %(limit)s;

-- name: chunk_ids_in_index
SELECT c.chunk_id AS id FROM revision_chunk c
JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE r.is_chunked AND c.chunk_id > %(after)s ORDER BY c.chunk_id LIMIT %(limit)s;

-- name: event_ids_in_index
SELECT event_id AS id FROM semantic_event
WHERE event_id > %(after)s::uuid ORDER BY event_id LIMIT %(limit)s;

-- name: memory_ids_in_index
SELECT memory_id AS id FROM memory
WHERE memory_id > %(after)s ORDER BY memory_id LIMIT %(limit)s;

-- fragment: text_in_index
       r.artifact_id, r.artifact_uid, r.revision_id, r.artifact_type, r.source_system, r.is_latest,
       r.is_chunked, coalesce(r.source_ts, r.ingested_at) AS time

-- name: artifacts_expected
-- A document in chunks is there with its beginning.
SELECT r.artifact_id AS id,
       CASE WHEN r.is_chunked THEN left(t.content, %(preview)s) ELSE t.content END AS document,
-- include: text_in_index
FROM artifact_revision r
LEFT JOIN revision_text t USING (artifact_uid, revision_id)
WHERE r.artifact_id = ANY (%(ids)s::text[]);

-- name: chunks_expected
SELECT c.chunk_id AS id, c.chunk_index, c.start_char, c.end_char,
       substr(t.content, c.start_char + 1, c.end_char - c.start_char) AS document,
-- include: text_in_index
FROM revision_chunk c
JOIN artifact_revision r USING (artifact_uid, revision_id)
LEFT JOIN revision_text t USING (artifact_uid, revision_id)
WHERE r.is_chunked AND c.chunk_id = ANY (%(ids)s::text[]);

-- name: events_expected
SELECT event_id::text AS id, artifact_uid, revision_id, category, narrative, document_title,
       is_latest
FROM semantic_event WHERE event_id = ANY (%(ids)s::uuid[]);

-- name: memories_expected
SELECT memory_id AS id, type, content AS document, confidence
FROM memory WHERE memory_id = ANY (%(ids)s::text[]);

-- name: chunks_of_artifacts
-- The passages whose vectors make up those of these documents.
SELECT r.artifact_id, c.chunk_id,
       substr(t.content, c.start_char + 1, c.end_char - c.start_char) AS text
FROM artifact_revision r
JOIN revision_chunk c USING (artifact_uid, revision_id)
JOIN revision_text t USING (artifact_uid, revision_id)
WHERE r.artifact_id = ANY (%(ids)s::text[])
ORDER BY r.artifact_id, c.chunk_index;

-- name: revisions_at_rest
-- Of these revisions, those that no run works on, kept so until the end of the transaction; and
-- whether one ended just now, which still has to clear up after itself.
SELECT j.artifact_uid, j.revision_id,
       j.updated_at > now() - make_interval(secs => %(moment)s) AS just_now
FROM event_jobs j
WHERE (j.artifact_uid, j.revision_id) IN (
          SELECT * FROM unnest(%(uids)s::text[], %(revisions)s::text[]))
  AND j.job_type = 'extract_events' AND j.status <> 'PROCESSING'
ORDER BY j.job_id
FOR NO KEY UPDATE OF j SKIP LOCKED;

-- name: revisions_without_job
SELECT w.artifact_uid, w.revision_id
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS w (artifact_uid, revision_id)
WHERE NOT EXISTS (SELECT 1 FROM event_jobs j
                  WHERE j.artifact_uid = w.artifact_uid AND j.revision_id = w.revision_id
                    AND j.job_type = 'extract_events');
