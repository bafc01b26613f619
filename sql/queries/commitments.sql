-- name: list_commitments
-- Each promise with the later report (an Execution with a common actor, or with none) that shares
-- most of its own words, if enough of them: those that are neither names, numbers nor months.
WITH promised AS MATERIALIZED (
    SELECT e.*, r.title, r.artifact_type, r.source_system,
           coalesce(r.source_ts, r.ingested_at) AS said_at,
           ARRAY(SELECT 'actor:' || a.name_key FROM event_actor a WHERE a.event_id = e.event_id)
               || 'no actor'::text AS who,
           ARRAY(SELECT DISTINCT w.lexeme
                 FROM unnest(to_tsvector('english', e.narrative)) AS w
                 WHERE w.lexeme ~ '^[[:alpha:]]{3,}$'
                   AND w.lexeme NOT IN ('januari', 'februari', 'march', 'april', 'june', 'juli',
                                        'august', 'septemb', 'octob', 'novemb', 'decemb', 'end')
                   AND w.lexeme NOT IN (
                       SELECT n.lexeme FROM event_actor a
                       CROSS JOIN LATERAL unnest(to_tsvector('english', a.ref)) AS n
                       WHERE a.event_id = e.event_id)) AS own_words
    FROM (
        SELECT s.event_id FROM event_entry s
        WHERE s.is_latest AND facets_of_event(s.event_id) @> ARRAY['category:Commitment']
          AND (%(due_from)s::timestamptz IS NULL OR s.event_time >= %(due_from)s)
          AND (%(due_to)s::timestamptz IS NULL OR s.event_time <= %(due_to)s)
          AND (%(actor_facets)s::text[] IS NULL
               OR facets_of_event(s.event_id) && %(actor_facets)s::text[])
        ORDER BY s.event_time ASC NULLS LAST, s.created_at, s.event_id
        LIMIT %(limit)s OFFSET %(offset)s
    ) page
    JOIN semantic_event e USING (event_id)
    JOIN artifact_revision r USING (artifact_uid, revision_id)
), near AS MATERIALIZED (
    -- For all promises at once: reports by any of their actors, or by nobody, with any of the words.
    SELECT s.event_id FROM event_entry s
    WHERE s.is_latest AND facets_of_event(s.event_id) @> ARRAY['category:Execution']
      AND facets_of_event(s.event_id) && ARRAY(SELECT DISTINCT unnest(who) FROM promised)
      AND words_of_event(s.event_id) @@ (
          SELECT string_agg(DISTINCT word, ' | ')::tsquery
          FROM promised CROSS JOIN unnest(own_words) AS word)
), common AS (
    SELECT p.event_id AS promise, x.event_id, count(*) AS shared
    FROM near
    JOIN semantic_event x USING (event_id)
    CROSS JOIN LATERAL unnest(tsvector_to_array(x.words)) AS said (word)
    JOIN (SELECT event_id, unnest(own_words) AS word FROM promised) p USING (word)
    GROUP BY p.event_id, x.event_id
    HAVING count(*) >= %(least)s
), done AS (
    SELECT DISTINCT ON (p.event_id) p.event_id AS promise, x.event_id
    FROM common c
    JOIN promised p ON p.event_id = c.promise
    JOIN semantic_event x ON x.event_id = c.event_id
    JOIN artifact_revision xr ON xr.artifact_uid = x.artifact_uid
                             AND xr.revision_id = x.revision_id
    WHERE c.shared >= %(share)s * cardinality(p.own_words)
      AND coalesce(x.event_time, xr.source_ts, xr.ingested_at) >= p.said_at
      AND facets_of_event(x.event_id) && p.who
    ORDER BY p.event_id, c.shared DESC, x.event_time NULLS LAST, x.event_id
)
SELECT p.event_id, p.artifact_uid, p.revision_id, p.category, p.event_time, p.narrative,
       p.subject_json, p.actors_json, p.confidence, p.created_at, p.title, p.artifact_type,
       p.source_system, p.said_at, d.event_id AS done_by
FROM promised p
LEFT JOIN done d ON d.promise = p.event_id
ORDER BY p.event_time ASC NULLS LAST, p.created_at, p.event_id;
