-- Promises, and reports that keep them.

-- name: list_promises
-- The first promises, and the number of all. The part of a status that depends on the due date is
-- decided here. `today` is the start of the day, since a promise that is due on a day is not late
-- before its end.
SELECT m.event_id, count(*) OVER () AS total
FROM (
    SELECT s.event_id, s.due_time, s.created_at FROM visible_event s
    WHERE s.is_latest AND facets_of_event(s.event_id) @> ARRAY['category:Commitment']
      AND (%(due_from)s::timestamptz IS NULL OR s.due_time >= %(due_from)s)
      AND (%(due_to)s::timestamptz IS NULL OR s.due_time <= %(due_to)s)
      AND CASE %(status)s::text
              WHEN 'open' THEN s.due_time IS NULL
                  OR s.due_time >= %(now)s OR s.due_time = %(today)s
              WHEN 'overdue' THEN s.due_time < %(now)s AND s.due_time <> %(today)s
              WHEN 'unknown' THEN s.due_time IS NULL
              ELSE true END
      AND (%(actor_facets)s::text[] IS NULL
           OR facets_of_event(s.event_id) && %(actor_facets)s::text[])
      AND (%(audience_facets)s::text[] IS NULL
           OR facets_of_event(s.event_id) && %(audience_facets)s::text[])
    OFFSET 0
) m
WHERE %(actor_facets)s::text[] IS NULL
   OR EXISTS (SELECT 1 FROM doers_of_event(m.event_id) d
              WHERE 'actor:' || d.name_key = ANY(%(actor_facets)s::text[]))
ORDER BY m.due_time ASC NULLS LAST, m.created_at, m.event_id
LIMIT %(limit)s;

-- name: statements_by_id
-- Promises and reports with everything that is compared. Their words are not parsed again: in the
-- stored vector, words of the narrative have weight A and those of the quotes weight C.
SELECT m.event_id, m.artifact_uid, m.revision_id, m.category, m.event_time, m.due_time,
       m.due_quote, m.due_start_char, m.due_end_char, m.narrative, m.subject_json, m.actors_json,
       m.confidence, r.title, m.quotes,
       coalesce(r.source_ts, r.ingested_at) AS said_at,
       (SELECT min(v.start_char) FROM event_evidence v WHERE v.event_id = m.event_id) AS place,
       ARRAY(SELECT d.name_key FROM doers_of_event(m.event_id) d) AS who,
       ARRAY(SELECT DISTINCT w.lexeme
             FROM unnest(ts_filter(m.words, '{a}')) AS w
             WHERE w.lexeme ~ '^[[:alpha:]]{3,}$'
               AND w.lexeme NOT IN ('januari', 'februari', 'march', 'april', 'may', 'june', 'juli',
                                    'august', 'septemb', 'octob', 'novemb', 'decemb', 'jan', 'feb',
                                    'mar', 'apr', 'jun', 'jul', 'aug', 'sep', 'sept', 'oct', 'nov',
                                    'dec', 'end')
               AND w.lexeme NOT IN (
                   SELECT n.lexeme FROM event_actor d
                   CROSS JOIN LATERAL unnest(to_tsvector('english', d.ref)) AS n
                   WHERE d.event_id = m.event_id)
               -- The words of the due date are not part of the promised thing: "by Wednesday".
               AND w.lexeme <> ALL (tsvector_to_array(to_tsvector('english',
                                                                  coalesce(m.due_quote, ''))))
             ) AS own_words,
       tsvector_to_array(ts_filter(m.words, '{a,c}')) AS told_words
FROM semantic_event m
JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE m.event_id = ANY(%(ids)s);

-- name: possible_reports
-- For each promise: reports by a person who promised it, or without an actor, that contain the
-- query's words.
SELECT DISTINCT s.event_id
FROM unnest(%(ids)s::uuid[], %(words)s::text[]) AS m (event_id, words)
CROSS JOIN LATERAL (
    SELECT ARRAY(SELECT 'actor:' || d.name_key FROM doers_of_event(m.event_id) d)
           || 'no actor'::text AS facets
) AS who
CROSS JOIN LATERAL (
    SELECT e.event_id FROM visible_event e
    WHERE e.is_latest AND facets_of_event(e.event_id) @> ARRAY['category:Execution']
      AND facets_of_event(e.event_id) && who.facets
      AND words_of_event(e.event_id) @@ m.words::tsquery
    ORDER BY e.event_time DESC NULLS LAST, e.event_id
    LIMIT %(most)s
) AS s;

-- name: rival_promises
-- For each report: promises that contain the query's words, one of which it may fit better.
SELECT DISTINCT s.event_id
FROM unnest(%(words)s::text[]) AS m (words)
CROSS JOIN LATERAL (
    SELECT e.event_id FROM visible_event e
    WHERE e.is_latest AND facets_of_event(e.event_id) @> ARRAY['category:Commitment']
      AND words_of_event(e.event_id) @@ m.words::tsquery
    ORDER BY e.event_time DESC NULLS LAST, e.event_id
    LIMIT %(most)s
) AS s;
