-- Integrity checks, and the statements that repair.

-- name: find_events_without_evidence
SELECT count(*) OVER () AS total, e.event_id::text AS id, e.artifact_uid, e.revision_id
FROM semantic_event e
WHERE NOT EXISTS (SELECT 1 FROM event_evidence v WHERE v.event_id = e.event_id)
LIMIT %(limit)s;

-- name: find_artifacts_without_one_latest
SELECT count(*) OVER () AS total, artifact_uid AS id
FROM artifact_revision
GROUP BY artifact_uid HAVING count(*) FILTER (WHERE is_latest) <> 1
LIMIT %(limit)s;

-- fragment: rightful_latest
-- The revision that should be the latest, for artifacts without exactly one latest revision.
    SELECT DISTINCT ON (artifact_uid) artifact_uid, revision_id FROM artifact_revision
    WHERE artifact_uid IN (
        SELECT artifact_uid FROM artifact_revision WHERE artifact_uid = ANY (%(uids)s::text[])
        GROUP BY artifact_uid HAVING count(*) FILTER (WHERE is_latest) <> 1)
    ORDER BY artifact_uid, is_latest DESC, latest_since DESC, ingested_at DESC, revision_id

-- name: supersede_all_but_newest
WITH newest AS (
-- include: rightful_latest
)
UPDATE artifact_revision r SET is_latest = false
FROM newest
WHERE r.artifact_uid = newest.artifact_uid AND r.revision_id <> newest.revision_id AND r.is_latest;

-- name: make_newest_latest
WITH newest AS (
-- include: rightful_latest
)
UPDATE artifact_revision r SET is_latest = true, latest_since = clock_timestamp()
FROM newest
WHERE r.artifact_uid = newest.artifact_uid AND r.revision_id = newest.revision_id
  AND NOT r.is_latest;

-- name: find_events_out_of_step
-- Events that are wrongly marked as those of a latest revision, or wrongly not: in their own row,
-- or in the entry that searches read.
SELECT count(*) OVER () AS total, e.event_id::text AS id, e.artifact_uid, e.revision_id
FROM semantic_event e
JOIN artifact_revision r USING (artifact_uid, revision_id)
LEFT JOIN event_entry n USING (event_id)
WHERE e.is_latest <> r.is_latest OR n.is_latest IS DISTINCT FROM r.is_latest
LIMIT %(limit)s;

-- name: bring_events_into_step
-- The revisions are locked until the end, so that no transaction makes another one the latest
-- meanwhile. The update writes the entries again.
WITH wrong AS (
    SELECT e.event_id, r.is_latest
    FROM semantic_event e
    JOIN artifact_revision r USING (artifact_uid, revision_id)
    LEFT JOIN event_entry n USING (event_id)
    WHERE e.is_latest <> r.is_latest OR n.is_latest IS DISTINCT FROM r.is_latest
    FOR SHARE OF r
)
UPDATE semantic_event e SET is_latest = wrong.is_latest
FROM wrong WHERE e.event_id = wrong.event_id
RETURNING e.artifact_uid;

-- name: find_chunks_out_of_step
-- Chunks of latest revisions that are missing from text search, and chunks of others that are in
-- it.
SELECT count(*) OVER () AS total, c.chunk_id AS id, c.artifact_uid, c.revision_id
FROM revision_chunk c
JOIN artifact_revision r USING (artifact_uid, revision_id)
LEFT JOIN chunk_entry n USING (artifact_uid, revision_id, chunk_index)
WHERE (n.chunk_index IS NOT NULL) <> r.is_latest
LIMIT %(limit)s;

-- name: drop_superseded_chunks
-- The revisions are locked until the end, as with events.
DELETE FROM chunk_entry n
USING (SELECT artifact_uid, revision_id FROM artifact_revision WHERE NOT is_latest FOR SHARE) r
WHERE n.artifact_uid = r.artifact_uid AND n.revision_id = r.revision_id;

-- name: enter_missing_chunks
WITH missing AS (
    SELECT c.artifact_uid, c.revision_id, c.chunk_index, r.is_chunked,
           coalesce(r.source_ts, r.ingested_at) AS time, r.artifact_type, r.source_system
    FROM revision_chunk c
    JOIN artifact_revision r USING (artifact_uid, revision_id)
    WHERE r.is_latest
      AND NOT EXISTS (SELECT 1 FROM chunk_entry n
                      WHERE n.artifact_uid = c.artifact_uid AND n.revision_id = c.revision_id
                        AND n.chunk_index = c.chunk_index)
    FOR SHARE OF r
)
INSERT INTO chunk_entry (
    artifact_uid, revision_id, chunk_index, is_chunked, time, artifact_type, source_system
)
SELECT artifact_uid, revision_id, chunk_index, is_chunked, time, artifact_type, source_system
FROM missing
ON CONFLICT DO NOTHING;

-- name: find_chunks_not_found
-- Of a sample, the chunks that the index does not find by their own words. OFFSET 0 makes Postgres
-- use the index.
WITH sample AS MATERIALIZED (
    SELECT s.artifact_uid, s.revision_id, s.chunk_index, c.chunk_id, c.words
    FROM (SELECT * FROM chunk_entry ORDER BY random() LIMIT %(sample)s) s
    JOIN revision_chunk c USING (artifact_uid, revision_id, chunk_index)
), asked AS MATERIALIZED (
    SELECT s.*, some_words(s.words) AS query FROM sample s
)
SELECT count(*) OVER () AS total, a.chunk_id AS id FROM asked a
WHERE a.query IS NOT NULL AND NOT EXISTS (
    SELECT 1
    FROM (
        SELECT n.artifact_uid, n.revision_id, n.chunk_index FROM chunk_entry n
        WHERE words_of_chunk(n.artifact_uid, n.revision_id, n.chunk_index) @@ a.query
        OFFSET 0
    ) found
    WHERE found.artifact_uid = a.artifact_uid AND found.revision_id = a.revision_id
      AND found.chunk_index = a.chunk_index);

-- name: find_events_not_found
-- The same for events.
WITH sample AS MATERIALIZED (
    SELECT s.event_id, s.is_latest, e.words
    FROM (SELECT event_id, is_latest FROM event_entry ORDER BY random() LIMIT %(sample)s) s
    JOIN semantic_event e USING (event_id)
), asked AS MATERIALIZED (
    SELECT s.*, some_words(s.words) AS query FROM sample s
)
SELECT count(*) OVER () AS total, a.event_id::text AS id FROM asked a
WHERE a.query IS NOT NULL AND NOT EXISTS (
    SELECT 1
    FROM (
        SELECT n.event_id FROM event_entry n
        WHERE n.is_latest AND words_of_event(n.event_id) @@ a.query
        UNION ALL
        SELECT n.event_id FROM event_entry n
        WHERE NOT n.is_latest AND words_of_event(n.event_id) @@ a.query
        OFFSET 0
    ) found
    WHERE found.event_id = a.event_id);

-- name: ask_indexes
-- Makes Postgres use the index until the end of the transaction, even where a table is small or many
-- index entries are pending and a sequential scan looks cheaper.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'off', true),
       set_config('cpu_operator_cost', '1', true),
       gin_clean_pending_list('idx_chunk_entry_words'::regclass);

-- name: reindex_chunk_entries
REINDEX TABLE chunk_entry;

-- name: reindex_event_entries
REINDEX TABLE event_entry;

-- name: find_abandoned_jobs
SELECT count(*) OVER () AS total, job_id, locked_by FROM event_jobs
WHERE status = 'PROCESSING'
  AND (locked_at IS NULL OR locked_at < now() - make_interval(secs => %(lease)s))
LIMIT %(limit)s;

-- name: find_revisions_without_text
-- A revision without its chunks is incomplete as well.
SELECT count(*) OVER () AS total, r.artifact_uid, r.revision_id, r.source_system, r.source_id
FROM artifact_revision r
LEFT JOIN revision_text t USING (artifact_uid, revision_id)
LEFT JOIN (SELECT artifact_uid, revision_id, count(*) AS chunks
           FROM revision_chunk GROUP BY 1, 2) c USING (artifact_uid, revision_id)
WHERE t.artifact_uid IS NULL OR coalesce(c.chunks, 0) <> greatest(r.chunk_count, 1)
ORDER BY r.artifact_uid, r.revision_id
LIMIT %(limit)s;

-- name: revisions_without_text
SELECT count(*) OVER () AS total, r.artifact_uid, r.revision_id, r.source_system, r.source_id
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS w (artifact_uid, revision_id)
JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE NOT EXISTS (SELECT 1 FROM revision_text t
                  WHERE t.artifact_uid = w.artifact_uid AND t.revision_id = w.revision_id);
