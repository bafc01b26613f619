-- name: get_event
SELECT e.event_id, e.artifact_uid, e.revision_id, e.category, e.event_time, e.due_time,
       e.due_quote, e.due_start_char, e.due_end_char, e.narrative, e.subject_json, e.actors_json,
       e.confidence, r.title, e.is_latest, e.extraction_run_id,
       x.extractor, x.model, x.extract_version AS prompt_version, x.merge_version, x.requested_by,
       x.run_id AS dagster_run_id, x.finished_at AS extracted_at, e.created_at
FROM semantic_event e
LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
LEFT JOIN extraction x USING (artifact_uid, revision_id)
WHERE e.event_id = %(event_id)s;

-- name: events_extracted_later
-- Of these events, those that the last replacement before a moment does not name. Where the log has
-- none, the extraction that made them tells: it may be older than the log.
WITH asked AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(uids)s::text[], %(aggregates)s::uuid[],
                         %(revisions)s::text[]) AS a (event_id, artifact_uid, aggregate_id, revision_id)
),
last_one AS MATERIALIZED (
    SELECT r.artifact_uid, r.revision_id, l.payload, x.finished_at
    FROM (SELECT DISTINCT artifact_uid, aggregate_id, revision_id FROM asked) r
    LEFT JOIN extraction x USING (artifact_uid, revision_id)
    LEFT JOIN LATERAL (
        SELECT payload FROM log.events
        WHERE aggregate_id = r.aggregate_id AND aggregate_type = 'artifact'
          AND event_type = 'events.replaced' AND payload ->> 'revision_id' = r.revision_id
          AND timestamp <= %(as_of)s
        ORDER BY version DESC LIMIT 1
    ) l ON true
)
SELECT a.event_id FROM asked a JOIN last_one o USING (artifact_uid, revision_id)
WHERE CASE WHEN o.payload IS NULL THEN o.finished_at > %(as_of)s
           ELSE NOT (o.payload -> 'added' ? a.event_id::text
                     OR o.payload -> 'kept' ? a.event_id::text) END;

-- name: evidence_in_context
-- The evidence of one event, each quote with `context` characters of the text on each side.
SELECT v.evidence_id, v.quote, v.start_char, v.end_char, v.chunk_id, v.match_kind, r.artifact_id,
       CASE WHEN %(context)s > 0 THEN
           substr(t.content, greatest(v.start_char - %(context)s, 0) + 1,
                  v.start_char - greatest(v.start_char - %(context)s, 0)) END AS text_before,
       CASE WHEN %(context)s > 0 THEN substr(t.content, v.end_char + 1, %(context)s) END
           AS text_after
FROM event_evidence v
LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
LEFT JOIN revision_text t USING (artifact_uid, revision_id)
WHERE v.event_id = %(event_id)s
ORDER BY v.start_char, v.evidence_id;

-- name: evidence_of_events
SELECT v.event_id, v.quote, v.start_char, v.end_char, v.chunk_id, v.match_kind
FROM event_evidence v
WHERE v.event_id = ANY(%(ids)s::uuid[])
ORDER BY v.event_id, v.start_char, v.evidence_id;

-- name: list_events_of_revision
SELECT e.event_id, e.artifact_uid, e.revision_id, e.category, e.event_time, e.due_time,
       e.due_quote, e.due_start_char, e.due_end_char, e.narrative, e.subject_json, e.actors_json,
       e.confidence, r.title
FROM semantic_event e
LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE e.artifact_uid = %(uid)s AND e.revision_id = %(revision)s
ORDER BY e.event_time DESC NULLS LAST, e.created_at DESC, e.event_id;

-- name: events_by_id
-- What is shown of events. Which ones they are, Postgres has said before: ids that only an index
-- beside it knows must have gone through `filter_events`.
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
-- What events are ranked by.
SELECT e.event_id::text AS text_id, e.document_title AS title,
       concat_ws(E'\n', e.document_title, e.narrative, e.quotes) AS text
FROM semantic_event e
WHERE e.event_id = ANY(%(ids)s::uuid[]);

-- name: parse_query
-- What a person typed, as Postgres understands it: with its operators (empty when only stop words
-- are left; `open_ended` when it also matches what has none of its words), and word by word, each
-- as it stands and in its parts.
SELECT CASE WHEN numnode(q) > 0 THEN q::text ELSE '' END AS strict,
       numnode(q) > 0 AND ''::tsvector @@ q AS open_ended,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(tsvector_to_array(w.whole),
                                                    tsvector_to_array(w.parts)) ORDER BY w.n), '[]')
        FROM (SELECT n, to_tsvector('english', word) AS whole,
                     to_tsvector('english', translate(word, '-/', '  ')) AS parts
              FROM unnest(%(typed)s::text[]) WITH ORDINALITY AS t (word, n)) w
        WHERE length(w.whole) + length(w.parts) > 0) AS words
FROM websearch_to_tsquery('english', %(query)s) AS q;

-- name: count_words_of_events
-- About how many events have each of these words, to know the rare ones. Of common words the
-- statistics know; the others are counted, as far as a hundred: their order is what matters.
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

-- name: tune_connection
-- For as long as it lives. Which filters apply differs from call to call, so each needs a plan of
-- its own; the matches of a common word must fit into memory one by one; and starting workers
-- takes longer than most searches. Times are UTC in and out, whatever the server's own zone is:
-- days are told by it.
SELECT set_config('TimeZone', 'UTC', false),
       set_config('plan_cache_mode', 'force_custom_plan', false),
       set_config('work_mem', '64MB', false), set_config('jit', 'off', false),
       set_config('max_parallel_workers_per_gather', '0', false);

-- name: serve_principal
-- From now on the connection works for this principal.
SELECT set_config('role', %(role)s, false), set_config('memory.tenant', %(tenant)s, false),
       set_config('memory.user', %(user)s, false), set_config('memory.marks', %(marks)s, false);

-- name: audience_facets
-- The marks of which an event must have one, for searches that an index leads.
SELECT audience_facets() AS facets;

-- fragment: entry_filters
-- Of entries (alias s): what their rows know, then what only their indexes do.
      (s.is_latest OR (NOT s.is_latest AND %(include_superseded)s))
  AND (%(time_from)s::timestamptz IS NULL OR s.event_time >= %(time_from)s)
  AND (%(time_to)s::timestamptz IS NULL OR s.event_time <= %(time_to)s)
  AND (%(min_confidence)s = 0 OR s.confidence >= %(min_confidence)s)
  AND (%(as_of)s::timestamptz IS NULL OR EXISTS (
           SELECT 1 FROM semantic_event o JOIN revision_period p USING (artifact_uid, revision_id)
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

-- name: expected_matches
-- What the planner thinks, in a fraction of a millisecond.
EXPLAIN (FORMAT JSON) SELECT s.event_id FROM visible_event s
WHERE
-- include: entry_filters
;

-- name: newest_of_few
-- Newest first, when there are not too many to look at all of them: OFFSET 0 finds them first.
SELECT m.event_id::text, m.event_time, m.created_at
FROM (
    SELECT s.event_id, s.event_time, s.created_at FROM visible_event s
    WHERE s.event_id <> ALL(%(without)s::uuid[]) AND
    -- include: entry_filters
    OFFSET 0
) m
ORDER BY m.event_time DESC NULLS LAST, m.created_at DESC, m.event_id
LIMIT %(limit)s OFFSET %(offset)s;

-- name: newest_of_many
-- Newest first, when going back in time soon meets enough of them.
SELECT s.event_id::text, s.event_time, s.created_at FROM visible_event s
WHERE s.event_id <> ALL(%(without)s::uuid[]) AND
-- include: entry_filters
ORDER BY s.event_time DESC NULLS LAST, s.created_at DESC, s.event_id
LIMIT %(limit)s OFFSET %(offset)s;

-- fragment: ranked
-- Of some events (newest) those that promise most, by the weights of the words that they have.
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

-- name: ranked_with_total
-- The newest of few, best first, and how many there are, in one pass.
WITH matches AS MATERIALIZED (
    SELECT s.event_id, s.event_time, s.created_at FROM visible_event s
    WHERE
    -- include: entry_filters
), newest AS (
    SELECT m.event_id FROM matches m
    ORDER BY m.event_time DESC NULLS LAST, m.created_at DESC, m.event_id
    LIMIT %(limit)s
)
SELECT (SELECT count(*) FROM matches) AS total, best.ids, best.promises
FROM (
    -- include: ranked
) best;

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
-- The same among the newest events alone: should there be fewer matches than estimated, going
-- back to the first event would take seconds.
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
-- All events that pass the filters, when there are few: with one more than that, there are not.
-- OFFSET 0 finds them first.
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
-- About how many there are.
SELECT greatest(reltuples, 0)::bigint AS events FROM pg_class WHERE oid = 'event_entry'::regclass;

-- name: events_by_prefix
-- Events whose id begins with what a person typed.
SELECT event_id::text AS id, left(narrative, 60) AS name FROM semantic_event
WHERE event_id BETWEEN %(low)s AND %(high)s
ORDER BY event_id LIMIT %(limit)s;
