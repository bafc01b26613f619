-- name: normalise_name
SELECT name_key(%(name)s) AS key;

-- name: actor_exists
SELECT 1 AS found FROM event_actor WHERE name_key = %(key)s LIMIT 1;

-- name: names_by_alias
-- Full names for which some document states this alias.
SELECT DISTINCT name_key(name) AS name_key FROM revision_entity
WHERE name_keys(aliases) @> ARRAY[%(key)s]::text[] AND type IN ('person', 'org')
LIMIT 20;

-- name: names_with_word
-- Actors who have these as words of their name.
SELECT n.name_key
FROM (
    SELECT name_key FROM actor_name
    WHERE words @> array_remove(regexp_split_to_array(%(key)s, '[^[:alnum:]]+'), '')
      AND %(key)s ~ '[[:alnum:]]'
    OFFSET 0
) n
WHERE EXISTS (SELECT 1 FROM event_actor a WHERE a.name_key = n.name_key)
ORDER BY n.name_key
LIMIT %(limit)s;

-- name: people_by_key
SELECT p.* FROM (
    SELECT k.key AS name_key, k.position,
           coalesce((SELECT a.ref FROM event_actor a WHERE a.name_key = k.key LIMIT 1), k.key)
               AS name,
           (SELECT count(*) FROM event_entry s
            WHERE s.is_latest AND facets_of_event(s.event_id) @> ARRAY['actor:' || k.key])::int
               AS events,
           coalesce((SELECT array_agg(DISTINCT alias) FROM revision_entity n
                     CROSS JOIN unnest(n.aliases) AS alias
                     WHERE name_key(n.name) = k.key), '{}') AS aliases
    FROM unnest(%(keys)s::text[]) WITH ORDINALITY AS k (key, position)
) p
ORDER BY p.events DESC, p.position;

-- name: aliases_of
SELECT k.key AS name_key,
       coalesce((SELECT array_agg(DISTINCT alias ORDER BY alias) FROM revision_entity n
                 CROSS JOIN unnest(n.aliases) AS alias
                 WHERE name_key(n.name) = k.key), '{}') AS aliases
FROM unnest(%(keys)s::text[]) AS k (key);

-- name: stakeholders
-- Who took part in these events (or in all that pass the filters), most involved first.
WITH involved AS (
    SELECT a.name_key, a.ref, a.role, s.event_id, s.event_time
    FROM event_entry s
    JOIN event_actor a USING (event_id)
    WHERE (%(ids)s::uuid[] IS NULL OR s.event_id = ANY(%(ids)s)) AND
    -- include: entry_filters
), roles AS (
    SELECT name_key, jsonb_object_agg(role, times) AS roles
    FROM (SELECT name_key, role, count(*) AS times FROM involved GROUP BY name_key, role) r
    GROUP BY name_key
)
SELECT i.name_key, max(i.ref) AS name, r.roles, count(DISTINCT i.event_id)::int AS events,
       min(i.event_time) AS first_time, max(i.event_time) AS last_time,
       (array_agg(DISTINCT i.event_id))[1:%(examples)s] AS example_ids
FROM involved i JOIN roles r USING (name_key)
GROUP BY i.name_key, r.roles
ORDER BY count(DISTINCT i.event_id) DESC, i.name_key
LIMIT %(limit)s;
