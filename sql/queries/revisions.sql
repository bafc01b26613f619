-- fragment: among_writers
-- Shared by all who write to both stores, and taken before any artifact. A key of two numbers: those
-- of artifacts are single ones, and can be any.
pg_advisory_xact_lock_shared(hashtext('mcp-memory'), hashtext('index')) AS among_writers

-- name: lock_artifact
-- One writer per artifact at a time, until the end of the transaction. Covers artifacts that do
-- not exist yet, which a row lock cannot.
SELECT pg_advisory_xact_lock(hashtextextended(%(uid)s, 0))
FROM
-- include: among_writers
;

-- name: lock_artifacts
-- The same for many, always in the same order, so that no two wait for each other.
SELECT pg_advisory_xact_lock(key)
FROM
-- include: among_writers
, (SELECT DISTINCT hashtextextended(uid, 0) AS key FROM unnest(%(uids)s::text[]) AS u (uid)
   ORDER BY key) AS keys;

-- name: outwait_writers
-- Whoever has begun to write is done then; whoever comes waits until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtext('mcp-memory'), hashtext('index'));

-- name: be_patient
-- For so long, with whoever holds a lock, until the end of the transaction.
SELECT set_config('lock_timeout', %(milliseconds)s, true);

-- name: begin_index_generation
UPDATE index_generation SET generation = generation + 1;

-- name: find_revisions
-- Revisions by their content, with their jobs and the ids of their chunks.
SELECT r.artifact_uid, r.revision_id, r.artifact_id, r.is_latest, r.is_chunked, r.chunk_count,
       j.job_id, j.status AS job_status,
       ARRAY(SELECT c.chunk_id FROM revision_chunk c
             WHERE c.artifact_uid = r.artifact_uid AND c.revision_id = r.revision_id
             ORDER BY c.chunk_index) AS chunk_ids
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS wanted (uid, revision)
JOIN artifact_revision r ON r.artifact_uid = wanted.uid AND r.revision_id = wanted.revision
LEFT JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                      AND j.job_type = 'extract_events';

-- name: find_latest_revisions
SELECT r.artifact_uid, r.revision_id, r.artifact_id, r.is_chunked,
       ARRAY(SELECT c.chunk_id FROM revision_chunk c
             WHERE c.artifact_uid = r.artifact_uid AND c.revision_id = r.revision_id
             ORDER BY c.chunk_index) AS chunk_ids
FROM artifact_revision r
WHERE r.artifact_uid = ANY (%(uids)s::text[]) AND r.is_latest;

-- name: supersede_revisions
UPDATE artifact_revision SET is_latest = false
WHERE artifact_uid = ANY (%(uids)s::text[]) AND is_latest;

-- name: restore_revisions
UPDATE artifact_revision r SET is_latest = true, latest_since = clock_timestamp()
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS wanted (uid, revision)
WHERE r.artifact_uid = wanted.uid AND r.revision_id = wanted.revision;

-- name: insert_revisions
-- clock_timestamp: two revisions that waited for each other's lock keep their order.
INSERT INTO artifact_revision (
    artifact_uid, revision_id, artifact_id, artifact_type, source_system, source_id, source_ts,
    source_url, title, author, participants, content_hash, token_count, is_chunked, chunk_count,
    sensitivity, visibility_scope, retention_policy, is_latest, partition_key, ingested_at,
    latest_since
)
SELECT n.uid, n.revision, n.artifact_id, n.artifact_type, n.source_system, n.source_id, n.source_ts,
       n.source_url, n.title, n.author,
       ARRAY(SELECT json_array_elements_text(n.participants)),
       n.content_hash, n.token_count, n.chunk_count > 0, n.chunk_count,
       n.sensitivity, n.visibility_scope, n.retention_policy, true, n.partition_key,
       clock_timestamp(), clock_timestamp()
FROM unnest(%(uids)s::text[], %(revisions)s::text[], %(artifact_ids)s::text[],
            %(artifact_types)s::text[], %(source_systems)s::text[], %(source_ids)s::text[],
            %(source_tss)s::timestamptz[], %(source_urls)s::text[], %(titles)s::text[],
            %(authors)s::text[], %(participants)s::json[], %(content_hashes)s::text[],
            %(token_counts)s::int[], %(chunk_counts)s::int[], %(sensitivities)s::text[],
            %(visibility_scopes)s::text[], %(retention_policies)s::text[],
            %(partition_keys)s::text[])
     AS n (uid, revision, artifact_id, artifact_type, source_system, source_id, source_ts,
           source_url, title, author, participants, content_hash, token_count, chunk_count,
           sensitivity, visibility_scope, retention_policy, partition_key);

-- name: insert_revision_texts
INSERT INTO revision_text (artifact_uid, revision_id, content, nul_positions)
SELECT n.uid, n.revision, n.content,
       ARRAY(SELECT json_array_elements_text(n.nul_positions)::int)
FROM unnest(%(uids)s::text[], %(revisions)s::text[], %(contents)s::text[],
            %(nul_positions)s::json[]) AS n (uid, revision, content, nul_positions);

-- name: insert_chunks
-- All chunks of all revisions in one statement. The title comes with the opening alone.
INSERT INTO revision_chunk (
    artifact_uid, revision_id, chunk_index, chunk_id, start_char, end_char, token_count,
    content_hash, words
)
SELECT c.uid, c.revision, c.index, c.id, c.start_char, c.end_char, c.tokens, c.hash,
       CASE WHEN c.title IS NOT NULL
            THEN setweight(to_tsvector('english', c.title), 'A') || to_tsvector('english', c.text)
            ELSE to_tsvector('english', c.text) END
FROM unnest(%(uids)s::text[], %(revisions)s::text[], %(titles)s::text[], %(indexes)s::int[],
            %(ids)s::text[], %(starts)s::int[], %(ends)s::int[], %(tokens)s::int[],
            %(hashes)s::text[], %(texts)s::text[])
     AS c (uid, revision, title, index, id, start_char, end_char, tokens, hash, text);

-- name: insert_jobs
INSERT INTO event_jobs (artifact_uid, revision_id, max_attempts, requested_by)
SELECT n.uid, n.revision, %(max_attempts)s, %(requested_by)s
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS n (uid, revision)
RETURNING artifact_uid, job_id;

-- name: insert_job
INSERT INTO event_jobs (artifact_uid, revision_id, max_attempts, requested_by)
VALUES (%(uid)s, %(revision)s, %(max_attempts)s, %(requested_by)s)
RETURNING job_id;

-- name: get_revision
-- One revision: the named one, the one with that artifact_id, or the latest.
SELECT r.*, j.job_id, j.status AS job_status,
       (SELECT count(*) FROM semantic_event e
        WHERE e.artifact_uid = r.artifact_uid AND e.revision_id = r.revision_id) AS event_count
FROM artifact_revision r
LEFT JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                      AND j.job_type = 'extract_events'
WHERE r.artifact_uid = %(uid)s
  AND CASE WHEN %(revision)s::text IS NULL THEN r.is_latest
           ELSE r.revision_id = %(revision)s END;

-- name: find_by_artifact_id
SELECT artifact_uid, revision_id FROM artifact_revision WHERE artifact_id = %(artifact_id)s;

-- name: get_text
SELECT content, nul_positions FROM revision_text
WHERE artifact_uid = %(uid)s AND revision_id = %(revision)s;

-- name: list_chunks
SELECT chunk_index, chunk_id, start_char, end_char, token_count, content_hash
FROM revision_chunk
WHERE artifact_uid = %(uid)s AND revision_id = %(revision)s
ORDER BY chunk_index;

-- name: list_revisions
-- The history of one artifact, oldest first.
SELECT r.revision_id, r.artifact_id, r.is_latest, r.ingested_at, r.latest_since, r.source_ts,
       r.title, r.token_count, r.chunk_count, j.job_id, j.status AS job_status,
       x.extractor, x.model, x.extract_version AS prompt_version, x.merge_version, x.requested_by,
       x.finished_at AS extracted_at,
       (SELECT count(*) FROM semantic_event e
        WHERE e.artifact_uid = r.artifact_uid AND e.revision_id = r.revision_id) AS event_count
FROM artifact_revision r
LEFT JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                      AND j.job_type = 'extract_events'
LEFT JOIN extraction x ON x.artifact_uid = r.artifact_uid AND x.revision_id = r.revision_id
WHERE r.artifact_uid = %(uid)s
ORDER BY r.ingested_at, r.revision_id;

-- name: artifact_vector_ids
-- Everything of an artifact that has a vector.
SELECT r.revision_id, r.artifact_id, r.is_chunked,
       ARRAY(SELECT c.chunk_id FROM revision_chunk c
             WHERE c.artifact_uid = r.artifact_uid AND c.revision_id = r.revision_id) AS chunk_ids
FROM artifact_revision r WHERE r.artifact_uid = %(uid)s;

-- name: artifact_event_ids
SELECT event_id FROM semantic_event WHERE artifact_uid = %(uid)s;

-- name: delete_unshared_cache
-- Cached answers for passages that no other artifact holds. Before the chunks are deleted.
DELETE FROM extraction_cache k
USING (SELECT DISTINCT content_hash FROM revision_chunk WHERE artifact_uid = %(uid)s) mine
WHERE passage_of(k.chunk_hash) = mine.content_hash
  AND NOT EXISTS (SELECT 1 FROM revision_chunk other
                  WHERE other.content_hash = mine.content_hash AND other.artifact_uid <> %(uid)s);

-- name: delete_evidence_of_artifact
DELETE FROM event_evidence WHERE artifact_uid = %(uid)s;

-- name: delete_events_of_artifact
DELETE FROM semantic_event WHERE artifact_uid = %(uid)s;

-- name: delete_jobs_of_artifact
DELETE FROM event_jobs WHERE artifact_uid = %(uid)s;

-- name: delete_chunks_of_artifact
DELETE FROM revision_chunk WHERE artifact_uid = %(uid)s;

-- name: delete_revisions_of_artifact
-- Texts follow by their foreign key.
WITH addresses AS (DELETE FROM import_address WHERE artifact_uid = %(uid)s)
DELETE FROM artifact_revision WHERE artifact_uid = %(uid)s;

-- name: chunks_to_index
-- For `reindex`: a page of chunks with their text and what searches filter by, in key order.
SELECT c.artifact_uid, c.revision_id, c.chunk_index, c.chunk_id, c.start_char, c.end_char,
       r.artifact_id, r.artifact_type, r.source_system, r.is_latest, r.is_chunked, r.chunk_count,
       coalesce(r.source_ts, r.ingested_at) AS time,
       substr(t.content, c.start_char + 1, c.end_char - c.start_char) AS text,
       CASE WHEN c.chunk_index = 0 THEN left(t.content, %(preview)s) END AS opening
FROM revision_chunk c
JOIN artifact_revision r USING (artifact_uid, revision_id)
JOIN revision_text t USING (artifact_uid, revision_id)
WHERE (c.artifact_uid, c.revision_id, c.chunk_index)
    > (%(after_uid)s, %(after_revision)s, %(after_index)s)
ORDER BY c.artifact_uid, c.revision_id, c.chunk_index
LIMIT %(limit)s;

-- name: count_chunks
SELECT count(*) AS chunks FROM revision_chunk;

-- name: latest_hashes
-- For importing: is a document as it was, and where was it met?
SELECT r.artifact_uid, r.content_hash, r.artifact_type, r.source_system, r.source_url,
       coalesce(a.addresses, '{}') AS addresses
FROM artifact_revision r
LEFT JOIN (
    -- Together: hardly any document lies at a second place.
    SELECT artifact_uid, array_agg(address ORDER BY address) AS addresses FROM import_address
    WHERE artifact_uid = ANY (%(uids)s::text[]) GROUP BY artifact_uid
) a USING (artifact_uid)
WHERE r.artifact_uid = ANY (%(uids)s::text[]) AND r.is_latest;

-- name: note_addresses
INSERT INTO import_address (artifact_uid, address)
SELECT DISTINCT n.uid, n.address
FROM unnest(%(uids)s::text[], %(addresses)s::text[]) AS n (uid, address)
WHERE EXISTS (SELECT 1 FROM artifact_revision r WHERE r.artifact_uid = n.uid)
ON CONFLICT DO NOTHING;

-- name: revision_hashes
-- For importing history: every revision that is stored, and which one is the latest.
SELECT artifact_uid, content_hash, is_latest FROM artifact_revision
WHERE artifact_uid = ANY (%(uids)s::text[]);

-- name: is_imported
SELECT EXISTS (SELECT 1 FROM artifact_revision
               WHERE is_latest AND starts_with(source_url, %(prefix)s)) AS found;

-- name: sample_imported
-- Some documents of a root, always the same ones: uids are hashes, so their order is like chance.
SELECT source_url FROM artifact_revision
WHERE is_latest AND starts_with(source_url, %(prefix)s)
ORDER BY artifact_uid LIMIT %(limit)s;

-- name: list_imported
-- What was imported and met below an address. `--prune` compares it with what is there.
SELECT r.artifact_uid, r.source_id, r.source_url,
       ARRAY(SELECT a.address FROM import_address a
             WHERE a.artifact_uid = r.artifact_uid) AS addresses
FROM artifact_revision r
WHERE r.is_latest AND starts_with(r.source_url, 'import:')
  AND (starts_with(r.source_url, %(prefix)s)
       OR r.artifact_uid IN (SELECT a.artifact_uid FROM import_address a
                             WHERE starts_with(a.address, %(prefix)s)))
ORDER BY r.source_url;
