-- Passages by words and filters, the vocabulary, and memories.

-- fragment: passage_filters
-- Of revisions (r): only the latest, and the filters of a search.
      r.is_latest
  AND (%(artifact_uid)s::text IS NULL OR r.artifact_uid = %(artifact_uid)s)
  AND (%(artifact_type)s::text IS NULL OR r.artifact_type = %(artifact_type)s)
  AND (%(source_system)s::text IS NULL OR r.source_system = %(source_system)s)
  AND (%(time_from)s::timestamptz IS NULL
       OR coalesce(r.source_ts, r.ingested_at) >= %(time_from)s)
  AND (%(time_to)s::timestamptz IS NULL OR coalesce(r.source_ts, r.ingested_at) <= %(time_to)s)

-- fragment: entry_of_chunk_filters
-- The same for chunks of latest revisions (s).
      (%(artifact_uid)s::text IS NULL OR s.artifact_uid = %(artifact_uid)s)
  AND (%(artifact_type)s::text IS NULL OR s.artifact_type = %(artifact_type)s)
  AND (%(source_system)s::text IS NULL OR s.source_system = %(source_system)s)
  AND (%(time_from)s::timestamptz IS NULL OR s.time >= %(time_from)s)
  AND (%(time_to)s::timestamptz IS NULL OR s.time <= %(time_to)s)

-- name: best_chunks
-- The newest chunks that match, by themselves or by the title of which they are the opening. First
-- those with more of the words, then those with the rarer words (which come first in the list),
-- then those in which the words occur more often and closer together. Ranked chunks are read once;
-- OFFSET 0 finds all before any is read.
WITH newest AS (
    SELECT m.artifact_uid, m.revision_id, m.chunk_index, m.time
    FROM (
        SELECT s.artifact_uid, s.revision_id, s.chunk_index, s.time FROM visible_chunk s
        WHERE CASE WHEN %(in_title)s
                   THEN s.chunk_index = 0
                        AND words_of_title(s.artifact_uid, s.revision_id) @@ %(words)s::tsquery
                   ELSE words_of_chunk(s.artifact_uid, s.revision_id, s.chunk_index)
                        @@ %(words)s::tsquery END
          AND
        -- include: entry_of_chunk_filters
        OFFSET 0
    ) m
    ORDER BY m.time DESC, m.artifact_uid, m.chunk_index
    LIMIT %(ranked)s
), unpacked AS MATERIALIZED (
    SELECT c.chunk_id, n.time, c.words || ''::tsvector AS words
    FROM newest n JOIN revision_chunk c USING (artifact_uid, revision_id, chunk_index)
)
SELECT u.chunk_id FROM unpacked u
ORDER BY (SELECT sum(1 + 0.1 / n)
          FROM unnest(%(each_word)s::tsquery[]) WITH ORDINALITY AS w (one, n)
          WHERE u.words @@ one) DESC NULLS LAST,
         ts_rank_cd(u.words, %(any_word)s::tsquery, 1) DESC, u.time DESC, u.chunk_id
LIMIT %(limit)s;

-- name: newest_chunks_without
-- The newest chunks that match a query which only excludes, among the last few thousand.
SELECT c.chunk_id
FROM (
    SELECT s.artifact_uid, s.revision_id, s.chunk_index, s.time FROM visible_chunk s
    WHERE
    -- include: entry_of_chunk_filters
    ORDER BY s.time DESC
    LIMIT %(last)s
) s
CROSS JOIN LATERAL (
    SELECT c.chunk_id, c.words FROM revision_chunk c
    WHERE c.artifact_uid = s.artifact_uid AND c.revision_id = s.revision_id
      AND c.chunk_index = s.chunk_index
    OFFSET 0
) c
WHERE c.words @@ %(words)s::tsquery
ORDER BY s.time DESC, c.chunk_id
LIMIT %(limit)s;

-- name: count_words_of_chunks
-- The exact number of chunks with each of these words: the folded counts, plus later changes. A
-- word of more than one lexeme is counted by the index, up to a thousand.
SELECT w.word,
       CASE WHEN w.word ~ '^''[^''\\]+''$' THEN passages_with(btrim(w.word, ''''))::float8
            ELSE (SELECT count(*) FROM (
                      SELECT 1 FROM visible_chunk s
                      WHERE words_of_chunk(s.artifact_uid, s.revision_id, s.chunk_index)
                            @@ w.word::tsquery
                      LIMIT 1000) thousand)
       END AS found
FROM unnest(%(words)s::text[]) AS w (word);

-- name: unfolded_words
-- The number of unfolded rows of changed words, up to a limit.
SELECT waiting_words(%(limit)s) AS waiting;

-- name: try_lock_vocabulary
-- Only one session folds at a time, until the end of the transaction.
SELECT pg_try_advisory_xact_lock(hashtext('word_frequency')) AS locked;

-- name: fold_words
SELECT fold_words(%(limit)s) AS folded;

-- name: wrong_words
-- How many of some words have another count than the index; only words that are not common, which
-- takes no time.
SELECT count(*) AS wrong
FROM (SELECT tenant_id, lexeme, passages FROM word_frequency
      WHERE lexeme >= md5(random()::text) AND lexeme ~ '^[[:alnum:]]+$' AND passages BETWEEN 1 AND 1000
      ORDER BY tenant_id, lexeme LIMIT %(sample)s) f
WHERE f.passages + (SELECT coalesce(sum(c.passages), 0) FROM word_change c
                    WHERE c.tenant_id = f.tenant_id AND c.words @@ quote_literal(f.lexeme)::tsquery)
      <> (SELECT count(*) FROM chunk_entry s
          WHERE s.tenant_id = f.tenant_id
            AND words_of_chunk(s.artifact_uid, s.revision_id, s.chunk_index)
                @@ quote_literal(f.lexeme)::tsquery);

-- name: forget_words
-- Words that no chunk has any more.
DELETE FROM word_frequency WHERE passages = 0;

-- name: known_words
-- Which of these words some chunk has, the most common first.
SELECT f.lexeme FROM word_of_tenant f
WHERE f.lexeme = ANY(%(lexemes)s) AND f.passages > 0
  AND EXISTS (SELECT 1 FROM visible_chunk s
              WHERE words_of_chunk(s.artifact_uid, s.revision_id, s.chunk_index)
                    @@ quote_literal(f.lexeme)::tsquery)
ORDER BY f.passages DESC, f.lexeme
LIMIT %(limit)s;

-- name: words_beginning_with
-- The most common words of chunks with this beginning.
SELECT f.lexeme FROM word_of_tenant f
WHERE f.passages > 0
  AND f.lexeme >= %(beginning)s AND f.lexeme < %(beginning)s || chr(1114111)
  AND EXISTS (SELECT 1 FROM visible_chunk s
              WHERE words_of_chunk(s.artifact_uid, s.revision_id, s.chunk_index)
                    @@ quote_literal(f.lexeme)::tsquery)
ORDER BY f.passages DESC, f.lexeme
LIMIT %(limit)s;

-- name: expected_chunks
-- The planner's estimate of the chunks that pass the filters.
EXPLAIN (FORMAT JSON) SELECT 1 FROM visible_chunk s
WHERE
-- include: entry_of_chunk_filters
;

-- name: some_chunks
-- The chunks that pass the filters, up to a limit; a text of one piece is a document.
SELECT c.chunk_id AS id
FROM (
    SELECT s.artifact_uid, s.revision_id, s.chunk_index FROM visible_chunk s
    WHERE s.is_chunked AND
    -- include: entry_of_chunk_filters
    LIMIT %(limit)s
) s
CROSS JOIN LATERAL (
    SELECT c.chunk_id FROM revision_chunk c
    WHERE c.artifact_uid = s.artifact_uid AND c.revision_id = s.revision_id
      AND c.chunk_index = s.chunk_index
    OFFSET 0
) c;

-- name: some_documents
-- The same for documents.
SELECT r.artifact_id AS id
FROM (
    SELECT s.artifact_uid, s.revision_id FROM visible_chunk s
    WHERE s.chunk_index = 0 AND
    -- include: entry_of_chunk_filters
    LIMIT %(limit)s
) s
CROSS JOIN LATERAL (
    SELECT r.artifact_id FROM artifact_revision r
    WHERE r.artifact_uid = s.artifact_uid AND r.revision_id = s.revision_id
    OFFSET 0
) r;

-- name: passages_by_id
-- The passages of ids that a search found; an artifact_id means the first chunk of its revision.
-- Ids that are not of a latest revision, or that fail the filters, are dropped, and so are chunks
-- without the words of a query with operators.
WITH found AS (
    SELECT c.artifact_uid, c.revision_id, c.chunk_index
    FROM revision_chunk c WHERE c.chunk_id = ANY(%(ids)s)
    UNION
    SELECT r.artifact_uid, r.revision_id, 0
    FROM artifact_revision r WHERE r.artifact_id = ANY(%(ids)s)
)
SELECT c.chunk_id, c.artifact_uid, c.revision_id, c.start_char, c.end_char, r.artifact_id,
       r.is_chunked, r.title, r.artifact_type, r.source_system, r.source_ts,
       text_of_chunk(c.text, t.content, c.start_char, c.end_char) AS text, t.nul_positions,
       c.chunk_index = 0 AS is_opening, r.chunk_count, r.source_id
FROM found
JOIN revision_chunk c USING (artifact_uid, revision_id, chunk_index)
JOIN artifact_revision r USING (artifact_uid, revision_id)
JOIN revision_text t USING (artifact_uid, revision_id)
WHERE (%(letters)s::tsquery IS NULL OR c.words @@ %(letters)s::tsquery)
  AND
-- include: passage_filters
;

-- name: documents_passing
-- Which of these documents pass the filters.
SELECT r.artifact_id AS id FROM artifact_revision r
WHERE r.artifact_id = ANY(%(ids)s) AND
-- include: passage_filters
;

-- name: chunks_passing
-- Which of these chunks pass the filters. OFFSET 0 looks up each of them and its revision: Postgres
-- would join thousands of them with all revisions.
SELECT c.chunk_id AS id
FROM unnest(%(ids)s::text[]) AS w (chunk_id)
CROSS JOIN LATERAL (
    SELECT c.chunk_id, c.artifact_uid, c.revision_id FROM revision_chunk c
    WHERE c.chunk_id = w.chunk_id
    OFFSET 0
) c
CROSS JOIN LATERAL (
    SELECT r.artifact_uid, r.artifact_type, r.source_system, r.source_ts, r.ingested_at, r.is_latest
    FROM artifact_revision r
    WHERE r.artifact_uid = c.artifact_uid AND r.revision_id = c.revision_id
    OFFSET 0
) r
WHERE
-- include: passage_filters
;

-- name: neighbors_of_chunks
-- The chunk before and the chunk after each of these.
SELECT n.chunk_id, n.artifact_uid, n.revision_id, n.start_char, n.end_char, r.artifact_id,
       r.is_chunked, r.title, r.artifact_type, r.source_system, r.source_ts,
       text_of_chunk(n.text, t.content, n.start_char, n.end_char) AS text, t.nul_positions,
       c.chunk_id AS of_chunk
FROM revision_chunk c
JOIN revision_chunk n ON n.artifact_uid = c.artifact_uid AND n.revision_id = c.revision_id
                     AND n.chunk_index IN (c.chunk_index - 1, c.chunk_index + 1)
JOIN artifact_revision r ON r.artifact_uid = c.artifact_uid AND r.revision_id = c.revision_id
JOIN revision_text t ON t.artifact_uid = c.artifact_uid AND t.revision_id = c.revision_id
WHERE c.chunk_id = ANY(%(ids)s)
ORDER BY c.chunk_id, n.chunk_index;

-- name: best_memories
-- Memories that pass the filters and have some of the words, with the number of these words.
SELECT m.memory_id,
       (SELECT count(*) FROM unnest(%(each_word)s::tsquery[]) AS one WHERE m.words @@ one) AS found
FROM visible_memory m
WHERE m.words @@ %(words)s::tsquery
  AND (%(type)s::text IS NULL OR m.type = %(type)s)
  AND m.confidence >= %(min_confidence)s
ORDER BY found DESC, ts_rank_cd(m.words, %(words)s::tsquery, 1) DESC, m.memory_id
LIMIT %(limit)s;

-- name: memories_by_id
SELECT memory_id, type, content, confidence, conversation_id, created_at, updated_at
FROM memory
WHERE memory_id = ANY(%(ids)s)
  AND (%(letters)s::tsquery IS NULL OR words @@ %(letters)s::tsquery);

-- name: passage_statistics
-- The number of searched chunks, and their average length.
SELECT coalesce(sum(passages), 0)::float8 AS passages,
       (sum(characters) / nullif(sum(passages), 0))::float8 AS average_length
FROM passage_statistics
WHERE tenant_id = current_tenant();

-- name: rebuild_vocabulary
-- Count all words again. Chunks, changes and counts are read at the same moment, as above.
WITH folded AS (DELETE FROM word_change), counted AS MATERIALIZED (
    SELECT s.tenant_id, w.lexeme, count(*) AS passages
    FROM chunk_entry s
    JOIN revision_chunk c USING (artifact_uid, revision_id, chunk_index)
    CROSS JOIN LATERAL unnest(tsvector_to_array(c.words)) AS w (lexeme)
    GROUP BY s.tenant_id, w.lexeme
), gone AS (
    DELETE FROM word_frequency f
    WHERE NOT EXISTS (SELECT 1 FROM counted c
                      WHERE c.tenant_id = f.tenant_id AND c.lexeme = f.lexeme)
)
INSERT INTO word_frequency AS f (tenant_id, lexeme, passages)
SELECT tenant_id, lexeme, passages FROM counted ORDER BY tenant_id, lexeme
ON CONFLICT (tenant_id, lexeme) DO UPDATE SET passages = excluded.passages
WHERE f.passages <> excluded.passages;

-- name: chunk_candidates
-- The chunks that promise the highest scores. The index leads from a rare word to all its chunks,
-- from a common word to the chunks in which it is strong (the strongest first, up to a limit), and
-- from a set of common words to the chunks that have the whole set. The promise of a chunk is the
-- sum over its words of weight times strength. A word of unknown strength counts as 0.8.
WITH rare AS (
    SELECT s.tid, w.weight * 0.8 AS promise, 0.0::float8 AS known, 0.0::float8 AS present
    FROM unnest(%(rare)s::text[], %(rare_weights)s::float8[]) AS w (word, weight)
    CROSS JOIN LATERAL (
        SELECT s.tid FROM visible_chunk s
        WHERE words_of_chunk(s.artifact_uid, s.revision_id, s.chunk_index) @@ w.word::tsquery
          AND
        -- include: entry_of_chunk_filters
        LIMIT %(followed)s
    ) s
), strong AS (
    SELECT s.tid, w.weight * CASE WHEN w.is_rare THEN s.strength - 0.8 ELSE s.strength END AS promise,
           CASE WHEN w.is_rare THEN 0.0 ELSE w.weight END AS known, 0.0::float8 AS present
    FROM unnest(%(strong)s::text[], %(strong_weights)s::float8[], %(strong_rare)s::bool[])
         AS w (word, weight, is_rare)
    CROSS JOIN LATERAL (
        SELECT s.tid, l.strength
        FROM unnest(ARRAY[6, 5, 4, 3, 2, 1], ARRAY[2.0, 1.9, 1.8, 1.67, 1.5, 1.3]::float8[])
             AS l (level, strength)
        CROSS JOIN LATERAL (
            SELECT s.tid FROM visible_chunk s
            WHERE strong_words_of_chunk(s.artifact_uid, s.revision_id, s.chunk_index)
                  && ARRAY[w.word || chr(1) || l.level]
              AND
            -- include: entry_of_chunk_filters
            OFFSET 0
        ) s
        LIMIT %(followed_strong)s
    ) s
), together AS (
    SELECT s.tid, 0.0::float8 AS promise, 0.0::float8 AS known, w.weight AS present
    FROM unnest(%(sets)s::text[], %(set_weights)s::float8[]) AS w (words, weight)
    CROSS JOIN LATERAL (
        SELECT s.tid FROM visible_chunk s
        WHERE words_of_chunk(s.artifact_uid, s.revision_id, s.chunk_index) @@ w.words::tsquery
          AND
        -- include: entry_of_chunk_filters
        LIMIT %(followed_sets)s
    ) s
), best AS (
    SELECT tid, sum(promise) + 0.8 * greatest(max(present) - sum(known), 0) AS promise
    FROM (TABLE rare UNION ALL TABLE strong UNION ALL TABLE together) followed
    GROUP BY tid
    ORDER BY promise DESC, tid
    LIMIT %(limit)s
)
SELECT s.artifact_uid, s.revision_id, s.chunk_index
FROM best b JOIN visible_chunk s ON s.tid = b.tid;

-- name: chunks_of_document
-- All chunks of one document, up to a limit.
SELECT s.artifact_uid, s.revision_id, s.chunk_index FROM visible_chunk s
WHERE
-- include: entry_of_chunk_filters
ORDER BY s.chunk_index
LIMIT %(limit)s;

-- name: chunks_to_the_letter
-- The chunks that match a query with operators. The index finds chunks with all its words
-- (`words`); the operators are then checked in the chunk, for as many as the time allows.
SELECT s.artifact_uid, s.revision_id, s.chunk_index
FROM (
    SELECT s.artifact_uid, s.revision_id, s.chunk_index FROM visible_chunk s
    WHERE words_of_chunk(s.artifact_uid, s.revision_id, s.chunk_index) @@ %(words)s::tsquery
      AND
    -- include: entry_of_chunk_filters
    LIMIT %(followed)s
) s
CROSS JOIN LATERAL (
    SELECT c.words FROM revision_chunk c
    WHERE c.artifact_uid = s.artifact_uid AND c.revision_id = s.revision_id
      AND c.chunk_index = s.chunk_index
    OFFSET 0
) c
WHERE c.words @@ %(letters)s::tsquery
LIMIT %(limit)s;

-- name: score_chunks
-- BM25 of chunks: ts_rank gives the occurrences of each lexeme. `words || ''` decompresses the
-- words of a chunk once, if they are stored outside its row.
WITH unpacked AS MATERIALIZED (
    SELECT c.chunk_id, c.end_char - c.start_char AS length,
           CASE WHEN pg_column_size(c.words) < 1900 THEN c.words
                ELSE c.words || ''::tsvector END AS words
    FROM unnest(string_to_array(%(uids)s, E'\n'), string_to_array(%(revisions)s, E'\n'),
                string_to_array(%(indexes)s, E'\n')::int[])
         AS k (artifact_uid, revision_id, chunk_index)
    CROSS JOIN LATERAL (
        SELECT c.* FROM revision_chunk c
        WHERE c.artifact_uid = k.artifact_uid AND c.revision_id = k.revision_id
          AND c.chunk_index = k.chunk_index
        OFFSET 0
    ) c
)
SELECT u.chunk_id, coalesce(s.score, 0) AS score
FROM unpacked u
CROSS JOIN LATERAL (
    SELECT sum(l.weight * o.often * (%(k1)s::float8 + 1)
               / (o.often + %(k1)s::float8 * (1 - %(b)s::float8
                  + %(b)s::float8 * u.length / %(average_length)s::float8))) AS score
    FROM unnest(%(lexemes)s::tsquery[], %(weights)s::float8[]) AS l (lexeme, weight)
    CROSS JOIN LATERAL (
        SELECT width_bucket(ts_rank('{1,1,1,1}', u.words, l.lexeme)::float8,
                            %(thresholds)s::float8[])::float8 AS often
    ) o
    WHERE o.often > 0
) s
ORDER BY score DESC, u.chunk_id
LIMIT %(limit)s;
