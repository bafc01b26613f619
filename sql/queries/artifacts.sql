-- Documents and their revisions: storing and reading them.

-- name: lock_artifacts
-- One writer per artifact at a time, until the end of the transaction. The lock also covers
-- artifacts that do not exist yet, which a row lock cannot. Always in the same order, so that no
-- two transactions wait for each other.
SELECT pg_advisory_xact_lock(key)
FROM (SELECT DISTINCT hashtextextended(uid, 0) AS key FROM unnest(%(uids)s::text[]) AS u (uid)
      ORDER BY key) AS keys;

-- name: lock_to_ingest
-- The same, for ingest. Cached plans are used until the end of the transaction: its statements, and
-- those inside its triggers, are the same for every document, and planning each of them would cost
-- a quarter of the time. Returns whether the tenant has other users than the principal.
SELECT coalesce(bool_and(pg_advisory_xact_lock(key) IS NOT NULL), true)
       AND set_config('plan_cache_mode', 'force_generic_plan', true) <> ''
       AND (SELECT has_other_users()) AS is_shared
FROM (SELECT DISTINCT hashtextextended(uid, 0) AS key FROM unnest(%(uids)s::text[]) AS u (uid)
      ORDER BY key) AS keys;

-- name: has_other_users
SELECT has_other_users() AS is_shared;

-- name: find_revisions
-- Revisions by their content, with their labels, their jobs and the ids of their chunks. For an
-- artifact without that content: whether it has another revision.
SELECT r.artifact_type, r.source_ts, r.source_url, r.title, r.author, r.participants,
       r.sensitivity, r.visibility_scope, r.visible_to, r.retention_policy, r.expires_at,
       r.artifact_uid, r.revision_id, r.artifact_id, r.is_latest, r.is_chunked, r.chunk_count,
       j.job_id, j.status AS job_status,
       EXISTS (SELECT 1 FROM revision_text t WHERE t.artifact_uid = r.artifact_uid
                                               AND t.revision_id = r.revision_id) AS has_text,
       ARRAY(SELECT c.chunk_id FROM revision_chunk c
             WHERE c.artifact_uid = r.artifact_uid AND c.revision_id = r.revision_id
             ORDER BY c.chunk_index) AS chunk_ids,
       wanted.uid, l.revision_id IS NOT NULL AS has_latest
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS wanted (uid, revision)
LEFT JOIN artifact_revision l ON l.artifact_uid = wanted.uid AND l.is_latest
LEFT JOIN artifact_revision r ON r.artifact_uid = wanted.uid AND r.revision_id = wanted.revision
LEFT JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                      AND j.job_type = 'extract_events';

-- name: supersede_revisions
UPDATE artifact_revision SET is_latest = false
WHERE artifact_uid = ANY (%(uids)s::text[]) AND is_latest;

-- name: restore_revisions
UPDATE artifact_revision r SET is_latest = true, latest_since = clock_timestamp()
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS wanted (uid, revision)
WHERE r.artifact_uid = wanted.uid AND r.revision_id = wanted.revision;

-- name: find_artifact_sources
-- For a document that the principal does not see: only that the id is taken.
SELECT artifact_uid, source_system, source_id, is_own FROM sources_of_artifacts(%(uids)s::text[]);

-- name: relabel_revisions
UPDATE artifact_revision r
SET artifact_type = n.artifact_type, source_ts = n.source_ts, source_url = n.source_url,
    title = n.title, author = n.author,
    participants = ARRAY(SELECT json_array_elements_text(n.participants)),
    sensitivity = n.sensitivity, visibility_scope = n.visibility_scope,
    retention_policy = n.retention_policy, expires_at = n.expires_at,
    visible_to = ARRAY(SELECT json_array_elements_text(n.visible_to))
FROM unnest(%(uids)s::text[], %(revisions)s::text[], %(artifact_types)s::text[],
            %(source_tss)s::timestamptz[], %(source_urls)s::text[], %(titles)s::text[],
            %(authors)s::text[], %(participants)s::json[], %(sensitivities)s::text[],
            %(visibility_scopes)s::text[], %(retention_policies)s::text[],
            %(visible_to)s::json[], %(expires_at)s::timestamptz[])
     AS n (uid, revision, artifact_type, source_ts, source_url, title, author, participants,
           sensitivity, visibility_scope, retention_policy, visible_to, expires_at)
WHERE r.artifact_uid = n.uid AND r.revision_id = n.revision;

-- name: resize_revisions
UPDATE artifact_revision r
SET token_count = n.token_count, is_chunked = n.chunk_count > 0, chunk_count = n.chunk_count
FROM unnest(%(uids)s::text[], %(revisions)s::text[], %(token_counts)s::int[],
            %(chunk_counts)s::int[]) AS n (uid, revision, token_count, chunk_count)
WHERE r.artifact_uid = n.uid AND r.revision_id = n.revision;

-- name: restore_revision_texts
INSERT INTO revision_text (artifact_uid, revision_id, content, nul_positions)
SELECT n.uid, n.revision, n.content,
       ARRAY(SELECT json_array_elements_text(n.nul_positions)::int)
FROM unnest(%(uids)s::text[], %(revisions)s::text[], %(contents)s::text[],
            %(nul_positions)s::json[]) AS n (uid, revision, content, nul_positions)
ON CONFLICT (artifact_uid, revision_id)
    DO UPDATE SET content = excluded.content, nul_positions = excluded.nul_positions;

-- name: delete_chunks_of_revisions
DELETE FROM revision_chunk c
USING unnest(%(uids)s::text[], %(revisions)s::text[]) AS n (uid, revision)
WHERE c.artifact_uid = n.uid AND c.revision_id = n.revision;

-- name: insert_revisions
-- clock_timestamp() keeps the order of two revisions that waited for each other's lock.
INSERT INTO artifact_revision (
    artifact_uid, revision_id, artifact_id, artifact_type, source_system, source_id, source_ts,
    source_url, title, author, participants, content_hash, token_count, is_chunked, chunk_count,
    sensitivity, visibility_scope, retention_policy, is_latest, partition_key, ingested_at,
    latest_since, visible_to, expires_at
)
SELECT n.uid, n.revision, n.artifact_id, n.artifact_type, n.source_system, n.source_id, n.source_ts,
       n.source_url, n.title, n.author,
       ARRAY(SELECT json_array_elements_text(n.participants)),
       n.content_hash, n.token_count, n.chunk_count > 0, n.chunk_count,
       n.sensitivity, n.visibility_scope, n.retention_policy, true, n.partition_key,
       clock_timestamp(), clock_timestamp(),
       ARRAY(SELECT json_array_elements_text(n.visible_to)), n.expires_at
FROM unnest(%(uids)s::text[], %(revisions)s::text[], %(artifact_ids)s::text[],
            %(artifact_types)s::text[], %(source_systems)s::text[], %(source_ids)s::text[],
            %(source_tss)s::timestamptz[], %(source_urls)s::text[], %(titles)s::text[],
            %(authors)s::text[], %(participants)s::json[], %(content_hashes)s::text[],
            %(token_counts)s::int[], %(chunk_counts)s::int[], %(sensitivities)s::text[],
            %(visibility_scopes)s::text[], %(retention_policies)s::text[],
            %(partition_keys)s::text[], %(visible_to)s::json[], %(expires_at)s::timestamptz[])
     AS n (uid, revision, artifact_id, artifact_type, source_system, source_id, source_ts,
           source_url, title, author, participants, content_hash, token_count, chunk_count,
           sensitivity, visibility_scope, retention_policy, partition_key, visible_to,
           expires_at);

-- name: insert_revision_texts
INSERT INTO revision_text (artifact_uid, revision_id, content, nul_positions)
SELECT n.uid, n.revision, n.content,
       ARRAY(SELECT json_array_elements_text(n.nul_positions)::int)
FROM unnest(%(uids)s::text[], %(revisions)s::text[], %(contents)s::text[],
            %(nul_positions)s::json[]) AS n (uid, revision, content, nul_positions);

-- name: insert_chunks
-- All chunks of all revisions in one statement. Only the first chunk has the title.
INSERT INTO revision_chunk (
    artifact_uid, revision_id, chunk_index, chunk_id, start_char, end_char, token_count,
    content_hash, text, words
)
SELECT c.uid, c.revision, c.index, c.id, c.start_char, c.end_char, c.tokens, c.hash,
       CASE WHEN c.long THEN c.text END,
       CASE WHEN c.title IS NOT NULL
            THEN setweight(words_of_text(c.title), 'A') || words_of_text(c.text)
            ELSE words_of_text(c.text) END
FROM unnest(%(uids)s::text[], %(revisions)s::text[], %(titles)s::text[], %(indexes)s::int[],
            %(ids)s::text[], %(starts)s::int[], %(ends)s::int[], %(tokens)s::int[],
            %(hashes)s::text[], %(texts)s::text[], %(long)s::bool[])
     AS c (uid, revision, title, index, id, start_char, end_char, tokens, hash, text, long);

-- name: get_revision
-- One revision: the named one, the one with that artifact_id, or the latest.
SELECT r.artifact_uid, r.revision_id, r.artifact_id, r.artifact_type, r.source_system, r.source_id,
       r.source_ts, r.source_url, r.title, r.author, r.participants, r.content_hash, r.token_count,
       r.is_chunked, r.chunk_count, r.sensitivity, r.visibility_scope, r.retention_policy,
       r.is_latest, r.ingested_at, j.status AS job_status,
       (SELECT count(*) FROM semantic_event e
        WHERE e.artifact_uid = r.artifact_uid AND e.revision_id = r.revision_id) AS event_count
FROM artifact_revision r
LEFT JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                      AND j.job_type = 'extract_events'
WHERE r.artifact_uid = %(uid)s
  AND CASE WHEN %(revision)s::text IS NULL THEN r.is_latest
           ELSE r.revision_id = %(revision)s END;

-- name: revision_as_of
-- The revision that was the latest at a moment.
SELECT revision_id FROM revision_period
WHERE artifact_uid = %(uid)s AND since <= %(as_of)s AND (until IS NULL OR until > %(as_of)s)
ORDER BY since DESC LIMIT 1;

-- name: find_by_artifact_id
SELECT artifact_uid, revision_id FROM artifact_revision WHERE artifact_id = %(artifact_id)s;

-- name: get_text
SELECT content, nul_positions FROM revision_text
WHERE artifact_uid = %(uid)s AND revision_id = %(revision)s;

-- name: list_chunks
SELECT chunk_index, chunk_id, start_char, end_char, token_count
FROM revision_chunk
WHERE artifact_uid = %(uid)s AND revision_id = %(revision)s
ORDER BY chunk_index;

-- name: list_revisions
-- The revisions of one artifact, oldest first: now, or at a past moment.
SELECT r.revision_id, r.artifact_id, coalesce(p.is_latest, r.is_latest) AS is_latest,
       r.ingested_at, r.latest_since, r.source_ts, r.title, r.token_count, r.chunk_count,
       j.status AS job_status,
       x.extractor, x.model, x.extract_version AS prompt_version, x.merge_version, x.requested_by,
       x.finished_at AS extracted_at,
       (SELECT count(*) FROM semantic_event e
        WHERE e.artifact_uid = r.artifact_uid AND e.revision_id = r.revision_id) AS event_count
FROM artifact_revision r
LEFT JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                      AND j.job_type = 'extract_events'
LEFT JOIN extraction x ON x.artifact_uid = r.artifact_uid AND x.revision_id = r.revision_id
LEFT JOIN LATERAL (
    SELECT bool_or(v.until IS NULL OR v.until > %(as_of)s) AS is_latest FROM revision_period v
    WHERE v.artifact_uid = r.artifact_uid AND v.revision_id = r.revision_id
      AND v.since <= %(as_of)s::timestamptz
) p ON %(as_of)s::timestamptz IS NOT NULL
WHERE r.artifact_uid = %(uid)s
  AND (%(as_of)s::timestamptz IS NULL OR p.is_latest IS NOT NULL)
ORDER BY r.ingested_at, r.revision_id;

-- name: list_documents
-- Documents as they are now, last changed first, with the number of all.
SELECT r.artifact_uid, r.revision_id, r.title, r.artifact_type, r.source_system, r.source_id,
       r.source_ts, r.latest_since, r.token_count, j.status AS job_status,
       (SELECT count(*) FROM artifact_revision o
        WHERE o.artifact_uid = r.artifact_uid) AS revision_count,
       (SELECT count(*) FROM semantic_event e
        WHERE e.artifact_uid = r.artifact_uid AND e.revision_id = r.revision_id) AS event_count,
       r.total
FROM (
    SELECT *, count(*) OVER () AS total FROM artifact_revision
    WHERE is_latest
      AND (%(artifact_type)s::text IS NULL OR artifact_type = %(artifact_type)s)
      AND (%(source_system)s::text IS NULL OR source_system = %(source_system)s)
      AND (%(words)s::text IS NULL
           OR position(lower(%(words)s) IN lower(coalesce(title, '') || ' ' || source_id)) > 0)
    ORDER BY latest_since DESC, artifact_uid
    LIMIT %(limit)s OFFSET %(offset)s
) r
LEFT JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                      AND j.job_type = 'extract_events'
ORDER BY r.latest_since DESC, r.artifact_uid;

-- name: lock_idempotency_key
-- Serialises requests with the same key.
SELECT pg_advisory_xact_lock(hashtextextended(current_tenant()::text || %(key)s, 18));

-- name: first_answer
SELECT request_hash, answer FROM idempotent_request
WHERE tenant_id = current_tenant() AND idempotency_key = %(key)s;

-- name: keep_first_answer
INSERT INTO idempotent_request (idempotency_key, request_hash, artifact_uid, answer)
VALUES (%(key)s, %(request_hash)s, %(artifact_uid)s, %(answer)s);
