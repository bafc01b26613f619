-- fragment: passage_filters
-- Of revisions (r): only the latest, and what a search is narrowed to.
      r.is_latest
  AND (%(artifact_uid)s::text IS NULL OR r.artifact_uid = %(artifact_uid)s)
  AND (%(artifact_type)s::text IS NULL OR r.artifact_type = %(artifact_type)s)
  AND (%(source_system)s::text IS NULL OR r.source_system = %(source_system)s)
  AND (%(time_from)s::timestamptz IS NULL
       OR coalesce(r.source_ts, r.ingested_at) >= %(time_from)s)
  AND (%(time_to)s::timestamptz IS NULL OR coalesce(r.source_ts, r.ingested_at) <= %(time_to)s)

-- name: search_chunks
-- Chunks of latest revisions by words. All words first; where a person asked in a sentence, any of
-- them will do, ranked after. A query with an exclusion is taken to the letter.
WITH asked AS (
    SELECT websearch_to_tsquery('english', %(query)s) AS strict
), widened AS (
    SELECT strict,
           CASE WHEN strict::text LIKE '%%!%%' THEN strict
                ELSE replace(strict::text, '&', '|')::tsquery END AS loose
    FROM asked
)
SELECT c.chunk_id
FROM revision_chunk c
JOIN artifact_revision r USING (artifact_uid, revision_id)
CROSS JOIN widened w
WHERE c.words @@ w.loose
  AND
-- include: passage_filters
ORDER BY c.words @@ w.strict DESC, ts_rank_cd(c.words, w.loose, 1) DESC, c.chunk_id
LIMIT %(limit)s;

-- name: passages_by_id
-- The passages behind ids that a search found; an artifact_id stands for the first chunk of its
-- revision. Ids that are not of a latest revision, or that fail the filters, fall away here.
SELECT c.chunk_id, c.artifact_uid, c.revision_id, c.start_char, c.end_char,
       c.chunk_index = 0 AS is_opening,
       r.artifact_id, r.is_chunked, r.title, r.artifact_type, r.source_system, r.source_ts,
       substr(t.content, c.start_char + 1, c.end_char - c.start_char) AS text, t.nul_positions
FROM revision_chunk c
JOIN artifact_revision r USING (artifact_uid, revision_id)
JOIN revision_text t USING (artifact_uid, revision_id)
WHERE (c.chunk_id = ANY(%(ids)s)
       OR (r.artifact_id = ANY(%(ids)s) AND c.chunk_index = 0))
  AND
-- include: passage_filters
;

-- name: documents_passing
-- Which of these documents a search may find.
SELECT r.artifact_id AS id FROM artifact_revision r
WHERE r.artifact_id = ANY(%(ids)s) AND
-- include: passage_filters
;

-- name: chunks_passing
-- Which of these chunks a search may find.
SELECT c.chunk_id AS id
FROM revision_chunk c JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE c.chunk_id = ANY(%(ids)s) AND
-- include: passage_filters
;

-- name: chunks_of_document
-- All chunks of one document, as far as a search may find it.
SELECT c.chunk_id, r.artifact_id, r.is_chunked
FROM artifact_revision r JOIN revision_chunk c USING (artifact_uid, revision_id)
WHERE
-- include: passage_filters
ORDER BY c.chunk_index
LIMIT %(limit)s;

-- name: neighbors_of_chunks
-- The chunk before and the chunk after each of these.
SELECT c.chunk_id AS of_chunk, n.chunk_id, n.artifact_uid, n.revision_id, n.start_char, n.end_char,
       r.artifact_id, r.is_chunked, r.title, r.artifact_type, r.source_system, r.source_ts,
       substr(t.content, n.start_char + 1, n.end_char - n.start_char) AS text, t.nul_positions
FROM revision_chunk c
JOIN revision_chunk n ON n.artifact_uid = c.artifact_uid AND n.revision_id = c.revision_id
                     AND n.chunk_index IN (c.chunk_index - 1, c.chunk_index + 1)
JOIN artifact_revision r ON r.artifact_uid = c.artifact_uid AND r.revision_id = c.revision_id
JOIN revision_text t ON t.artifact_uid = c.artifact_uid AND t.revision_id = c.revision_id
WHERE c.chunk_id = ANY(%(ids)s)
ORDER BY c.chunk_id, n.chunk_index;

-- name: search_memory_words
WITH asked AS (
    SELECT websearch_to_tsquery('english', %(query)s) AS strict
), widened AS (
    SELECT CASE WHEN strict::text LIKE '%%!%%' THEN strict
                ELSE replace(strict::text, '&', '|')::tsquery END AS loose
    FROM asked
)
SELECT m.memory_id
FROM memory m CROSS JOIN widened w
WHERE m.words @@ w.loose
ORDER BY ts_rank_cd(m.words, w.loose, 1) DESC, m.memory_id
LIMIT %(limit)s;

-- name: memories_by_id
SELECT memory_id, type, content, confidence, conversation_id, created_at, updated_at
FROM memory WHERE memory_id = ANY(%(ids)s);
