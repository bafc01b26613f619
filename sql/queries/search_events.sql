-- Events by words and filters.

-- name: events_by_id
-- The shown columns of events. Postgres must have chosen the ids: ids from Chroma alone must have
-- passed `filter_events`.
SELECT e.event_id, e.artifact_uid, e.revision_id, e.category, e.event_time, e.due_time,
       e.due_quote, e.due_start_char, e.due_end_char, e.narrative, e.subject_json, e.actors_json,
       e.confidence, r.title
FROM semantic_event e
LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE e.event_id = ANY(%(ids)s::uuid[]);

-- name: events_with_evidence
-- The same, each with its evidence.
SELECT e.event_id, e.artifact_uid, e.revision_id, e.category, e.event_time, e.due_time,
       e.due_quote, e.due_start_char, e.due_end_char, e.narrative, e.subject_json, e.actors_json,
       e.confidence, r.title,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'quote', v.quote, 'start_char', v.start_char, 'end_char', v.end_char,
                   'chunk_id', v.chunk_id, 'match_kind', v.match_kind)
                   ORDER BY v.start_char, v.evidence_id), '[]')
        FROM event_evidence v WHERE v.event_id = e.event_id) AS evidence
FROM semantic_event e
LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE e.event_id = ANY(%(ids)s::uuid[]);

-- name: event_texts
-- The texts that events are ranked by.
SELECT e.event_id::text AS text_id, e.document_title AS title,
       concat_ws(E'\n', e.document_title, e.narrative, e.quotes) AS text
FROM semantic_event e
WHERE e.event_id = ANY(%(ids)s::uuid[]);

-- name: parse_query
-- A query as Postgres parses it: with its operators (empty if only stop words are left;
-- `open_ended` if it also matches texts without any of its words), and word by word: its lexemes,
-- those of its parts, and the word as written.
SELECT CASE WHEN numnode(q) > 0 THEN q::text ELSE '' END AS strict,
       numnode(q) > 0 AND ''::tsvector @@ q AS open_ended,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(tsvector_to_array(w.whole),
                                                    tsvector_to_array(w.parts),
                                                    ARRAY[w.word]) ORDER BY w.n), '[]')
        FROM (SELECT n, word, to_tsvector('english', word) AS whole,
                     to_tsvector('english', translate(word, '-/', '  ')) AS parts
              FROM unnest(%(words)s::text[]) WITH ORDINALITY AS t (word, n)) w
        WHERE length(w.whole) + length(w.parts) > 0) AS words
FROM websearch_to_tsquery('english', %(query)s) AS q;

-- name: count_words_of_events
-- The approximate number of events with each of these words, to find the rare ones. For common
-- words the planner's statistics are used; the others are counted up to a hundred, since only their
-- order matters.
SELECT w.word,
       coalesce(nullif(common.share * (SELECT greatest(reltuples, 0) FROM pg_class
                                       WHERE oid = 'event_entry'::regclass), 0),
                (SELECT count(*) FROM (
                     SELECT 1 FROM visible_event s
                     WHERE words_of_event(s.event_id) @@ w.word::tsquery
                       AND (s.is_latest OR (NOT s.is_latest AND %(include_superseded)s))
                     LIMIT 100) hundred)) AS found
FROM unnest(%(words)s::text[]) AS w (word)
LEFT JOIN common_words('events') AS common ON w.word = quote_literal(common.lexeme);

-- name: audience_facets
-- The marks of which an event must have one, for searches through an index.
SELECT audience_facets() AS facets;

-- fragment: entry_filters
-- Of entries (alias s): filters on columns of the row, then filters that only indexes have. `as_of` is
-- looked up for each event, with a count, since Postgres would join an EXISTS with all events.
      (s.is_latest OR (NOT s.is_latest AND %(include_superseded)s))
  AND (%(time_from)s::timestamptz IS NULL OR s.event_time >= %(time_from)s)
  AND (%(time_to)s::timestamptz IS NULL OR s.event_time <= %(time_to)s)
  AND (%(min_confidence)s = 0 OR s.confidence >= %(min_confidence)s)
  AND (%(as_of)s::timestamptz IS NULL
       OR (SELECT count(*) > 0
           FROM semantic_event o JOIN revision_period p USING (artifact_uid, revision_id)
           WHERE o.event_id = s.event_id
             AND p.since <= %(as_of)s AND (p.until IS NULL OR p.until > %(as_of)s)))
  AND (%(words)s::tsquery IS NULL OR words_of_event(s.event_id) @@ %(words)s::tsquery)
  AND (%(letters)s::tsquery IS NULL
       OR (SELECT o.words @@ %(letters)s::tsquery FROM semantic_event o
           WHERE o.event_id = s.event_id))
  AND (%(facets)s::text[] IS NULL OR facets_of_event(s.event_id) @> %(facets)s::text[])
  AND (%(actor_facets)s::text[] IS NULL
       OR facets_of_event(s.event_id) && %(actor_facets)s::text[])
  AND (%(audience_facets)s::text[] IS NULL
       OR facets_of_event(s.event_id) && %(audience_facets)s::text[])
  AND (%(subject)s::text IS NULL
       OR facets_of_event(s.event_id) @> ARRAY['subject:' || name_key(%(subject)s)]
       OR words_of_event(s.event_id) @@ plainto_tsquery('english', %(subject)s))

-- name: count_events
SELECT count(*) AS total FROM visible_event s
WHERE
-- include: entry_filters
;

-- name: count_events_as_of
-- The same where indexes find the events of a moment, as in the other queries of this name.
SELECT count(*) AS total FROM visible_events_as_of(%(latest_at)s) s
WHERE
-- include: entry_filters
;

-- name: expected_matches
-- The planner's estimate, in a fraction of a millisecond.
EXPLAIN (FORMAT JSON) SELECT s.event_id FROM visible_event s
WHERE
-- include: entry_filters
;

-- name: expected_matches_as_of
EXPLAIN (FORMAT JSON) SELECT s.event_id FROM visible_events_as_of(%(latest_at)s) s
WHERE
-- include: entry_filters
;

-- name: is_recent
-- Whether few events are of revisions that became the latest since a moment.
SELECT count(*) < %(few)s AS is_recent
FROM (SELECT 1 FROM visible_event s WHERE since_of_event(s.event_id) > %(as_of)s LIMIT %(few)s) s;

-- name: newest_of_few
-- Newest first, for a number of matches that can all be read: OFFSET 0 finds them first.
SELECT m.event_id::text, m.event_time, m.created_at
FROM (
    SELECT s.event_id, s.event_time, s.created_at FROM visible_event s
    WHERE s.event_id <> ALL(%(without)s::uuid[]) AND
    -- include: entry_filters
    OFFSET 0
) m
ORDER BY m.event_time DESC NULLS LAST, m.created_at DESC, m.event_id
LIMIT %(limit)s OFFSET %(offset)s;

-- name: newest_of_few_as_of
SELECT m.event_id::text, m.event_time, m.created_at
FROM (
    SELECT s.event_id, s.event_time, s.created_at FROM visible_events_as_of(%(latest_at)s) s
    WHERE s.event_id <> ALL(%(without)s::uuid[]) AND
    -- include: entry_filters
    OFFSET 0
) m
ORDER BY m.event_time DESC NULLS LAST, m.created_at DESC, m.event_id
LIMIT %(limit)s OFFSET %(offset)s;

-- name: newest_of_past
-- The same for excluded words, which no index finds: all are sorted, then checked until there are
-- enough.
SELECT m.event_id::text, m.event_time, m.created_at
FROM (
    SELECT s.event_id, s.event_time, s.created_at FROM visible_events_as_of(%(latest_at)s) s
    WHERE s.event_id <> ALL(%(without)s::uuid[]) AND
    -- include: entry_filters
    ORDER BY s.event_time DESC NULLS LAST, s.created_at DESC, s.event_id
    OFFSET 0
) m
WHERE (SELECT o.words @@ %(checked)s::tsquery FROM semantic_event o WHERE o.event_id = m.event_id)
ORDER BY m.event_time DESC NULLS LAST, m.created_at DESC, m.event_id
LIMIT %(limit)s OFFSET %(offset)s;

-- name: newest_of_many
-- Newest first, if going back in time soon finds enough matches.
SELECT s.event_id::text, s.event_time, s.created_at FROM visible_event s
WHERE s.event_id <> ALL(%(without)s::uuid[]) AND
-- include: entry_filters
ORDER BY s.event_time DESC NULLS LAST, s.created_at DESC, s.event_id
LIMIT %(limit)s OFFSET %(offset)s;

-- fragment: ranked
-- The most promising of some events (newest), by the weights of the words that they have.
SELECT coalesce(array_agg(p.event_id::text ORDER BY p.place), '{}') AS ids,
       coalesce(array_agg(p.promise ORDER BY p.place), '{}') AS promises
FROM (
    SELECT w.event_id, w.promise,
           row_number() OVER (ORDER BY w.promise DESC, w.rank DESC,
                                       w.event_time DESC NULLS LAST, w.event_id) AS place
    FROM (
        SELECT e.event_id, e.event_time, ts_rank(e.words, %(any_word)s::tsquery, 1) AS rank,
               (SELECT coalesce(sum(w.weight), 0)
                FROM unnest(%(each_word)s::tsquery[], %(weights)s::float8[]) AS w (word, weight)
                WHERE e.words @@ w.word) AS promise
        FROM newest
        CROSS JOIN LATERAL (SELECT e.event_id, e.event_time, e.words FROM semantic_event e
                            WHERE e.event_id = newest.event_id OFFSET 0) e
    ) w
    ORDER BY place LIMIT %(ranked)s
) p

-- fragment: ranked_matches
-- The most promising of the newest matches, and the number of all.
, newest AS (
    SELECT m.event_id FROM matches m
    ORDER BY m.event_time DESC NULLS LAST, m.created_at DESC, m.event_id
    LIMIT %(limit)s
)
SELECT (SELECT count(*) FROM matches) AS total, best.ids, best.promises
FROM (
    -- include: ranked
) best

-- name: ranked_with_total
-- The newest of few, best first, and the number of all, in one pass.
WITH matches AS MATERIALIZED (
    SELECT s.event_id, s.event_time, s.created_at FROM visible_event s
    WHERE
    -- include: entry_filters
)
-- include: ranked_matches
;

-- name: ranked_with_total_as_of
WITH matches AS MATERIALIZED (
    SELECT s.event_id, s.event_time, s.created_at FROM visible_events_as_of(%(latest_at)s) s
    WHERE
    -- include: entry_filters
)
-- include: ranked_matches
;

-- name: ranked_of_few
-- The same as `newest_of_few`, best first.
WITH newest AS (
    SELECT m.event_id
    FROM (
        SELECT s.event_id, s.event_time, s.created_at FROM visible_event s
        WHERE
        -- include: entry_filters
        OFFSET 0
    ) m
    ORDER BY m.event_time DESC NULLS LAST, m.created_at DESC, m.event_id
    LIMIT %(limit)s
)
-- include: ranked
;

-- name: ranked_of_few_as_of
WITH newest AS (
    SELECT m.event_id
    FROM (
        SELECT s.event_id, s.event_time, s.created_at FROM visible_events_as_of(%(latest_at)s) s
        WHERE
        -- include: entry_filters
        OFFSET 0
    ) m
    ORDER BY m.event_time DESC NULLS LAST, m.created_at DESC, m.event_id
    LIMIT %(limit)s
)
-- include: ranked
;

-- name: ranked_of_many
-- The same as `newest_of_many`, best first.
WITH newest AS (
    SELECT s.event_id FROM visible_event s
    WHERE
    -- include: entry_filters
    ORDER BY s.event_time DESC NULLS LAST, s.created_at DESC, s.event_id
    LIMIT %(limit)s
)
-- include: ranked
;

-- name: ranked_of_last
-- The same among the newest events alone: with fewer matches than estimated, going back to the
-- first event would take seconds.
WITH newest AS (
    SELECT s.event_id
    FROM (
        SELECT * FROM visible_event s
        WHERE (s.is_latest OR (NOT s.is_latest AND %(include_superseded)s))
          AND (%(time_from)s::timestamptz IS NULL OR s.event_time >= %(time_from)s)
          AND (%(time_to)s::timestamptz IS NULL OR s.event_time <= %(time_to)s)
        ORDER BY s.event_time DESC NULLS LAST, s.created_at DESC, s.event_id
        LIMIT %(last)s
    ) s
    WHERE
    -- include: entry_filters
    ORDER BY s.event_time DESC NULLS LAST, s.created_at DESC, s.event_id
    LIMIT %(limit)s
)
-- include: ranked
;

-- name: filter_events
-- Which of these events pass the filters, and whether they have the words.
SELECT s.event_id::text, s.event_time, s.created_at,
       coalesce(e.words @@ %(asked)s::tsquery, false) AS has_words
FROM visible_event s JOIN semantic_event e USING (event_id)
WHERE s.event_id = ANY(string_to_array(%(ids)s, ',')::uuid[]) AND
-- include: entry_filters
;

-- name: few_events
-- All events that pass the filters, if there are few: one row more than the limit means that there
-- are not. OFFSET 0 finds them first.
SELECT s.event_id::text, s.event_time, s.created_at,
       coalesce(e.words @@ %(asked)s::tsquery, false) AS has_words
FROM (
    SELECT s.event_id, s.event_time, s.created_at FROM visible_event s
    WHERE
    -- include: entry_filters
    OFFSET 0
) s
CROSS JOIN LATERAL (SELECT e.words FROM semantic_event e WHERE e.event_id = s.event_id OFFSET 0) e
LIMIT %(limit)s;

-- name: ids_passing
-- The same, by their ids alone.
SELECT s.event_id::text
FROM (
    SELECT s.event_id FROM visible_event s
    WHERE
    -- include: entry_filters
    OFFSET 0
) s
LIMIT %(limit)s;

-- name: number_of_events
-- The approximate number of events.
SELECT greatest(reltuples, 0)::bigint AS events FROM pg_class WHERE oid = 'event_entry'::regclass;
