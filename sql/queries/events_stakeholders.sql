-- Who took part in events.

-- name: stakeholders
-- Who took part in the same events, most involved first, under the names that events use.
WITH considered AS MATERIALIZED (
    SELECT s.event_id, s.event_time, s.due_time, s.confidence
    FROM visible_event s
    WHERE (%(ids)s::uuid[] IS NULL OR s.event_id = ANY(%(ids)s)) AND
    -- include: entry_filters
    ORDER BY s.event_time DESC NULLS LAST, s.created_at DESC, s.event_id
    LIMIT %(considered)s
), involved AS (
    -- An entry has the due date of a promise in place of its time, but the person took part when
    -- promising.
    SELECT a.name_key, a.ref, a.role, c.event_id, c.event_time, c.confidence,
           CASE WHEN c.due_time IS NULL THEN c.event_time
                ELSE (SELECT e.event_time FROM semantic_event e WHERE e.event_id = c.event_id)
           END AS happened
    FROM considered c
    CROSS JOIN LATERAL (
        SELECT d.name_key, d.ref, d.role FROM event_actor d
        WHERE d.event_id = c.event_id OFFSET 0
    ) a
), roles AS (
    SELECT name_key, jsonb_object_agg(role, times) AS roles
    FROM (SELECT name_key, role, count(DISTINCT event_id) AS times
          FROM involved GROUP BY name_key, role) r
    GROUP BY name_key
), people AS (
    SELECT name_key, max(ref) AS name,
           count(DISTINCT event_id)::int AS events,
           min(happened) AS first_time, max(happened) AS last_time, count(*) OVER ()::int AS total
    FROM involved
    GROUP BY name_key
    ORDER BY count(DISTINCT event_id) DESC, name_key
    LIMIT %(limit)s
)
SELECT p.*, r.roles,
       (SELECT n.type FROM visible_entity n
        JOIN artifact_revision v USING (artifact_uid, revision_id)
        WHERE name_key(n.name) = p.name_key AND n.type IN ('person', 'org') AND v.is_latest
        GROUP BY n.type ORDER BY count(*) DESC, n.type DESC LIMIT 1) AS type,
       ARRAY(SELECT e.event_id
             FROM (SELECT DISTINCT i.event_id, i.confidence, i.event_time
                   FROM involved i WHERE i.name_key = p.name_key) e
             ORDER BY e.confidence DESC, e.event_time DESC NULLS LAST, e.event_id
             LIMIT %(examples)s) AS example_ids
FROM people p JOIN roles r USING (name_key)
ORDER BY p.events DESC, p.name_key;

-- name: aliases_of
SELECT k.key AS name_key,
       coalesce((SELECT array_agg(DISTINCT alias ORDER BY alias) FROM visible_entity n
                 JOIN artifact_revision r USING (artifact_uid, revision_id)
                 CROSS JOIN unnest(n.aliases) AS alias
                 WHERE name_key(n.name) = k.key AND r.is_latest), '{}') AS aliases
FROM unnest(%(keys)s::text[]) AS k (key);
