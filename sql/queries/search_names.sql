-- Which person a name means.

-- name: known_name
-- A name in its compared form, whether a person in an event has it, and whether some document says
-- that an organisation has this name.
SELECT k.key, EXISTS (SELECT 1 FROM event_actor a WHERE a.name_key = k.key) AS is_actor,
       n.type IS NOT NULL AS is_entity, coalesce(n.type = 'org', false) AS is_org
FROM (SELECT name_key(%(name)s) AS key) k
CROSS JOIN LATERAL (
    -- All rows, not only whether one exists: for EXISTS, Postgres would choose a sequential scan.
    SELECT min(e.type) AS type  -- 'org' comes before 'person'
    FROM visible_entity e JOIN artifact_revision r USING (artifact_uid, revision_id)
    WHERE name_key(e.name) = k.key AND e.type IN ('person', 'org') AND r.is_latest
) n;

-- name: names_by_alias
-- Full names for which current documents state this alias, each with one such document.
SELECT name_key(e.name) AS name_key, min(e.artifact_uid) AS said_in
FROM visible_entity e
JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE name_keys(e.aliases) @> ARRAY[%(key)s] AND e.type IN ('person', 'org')
  AND name_key(e.name) <> %(key)s AND r.is_latest
GROUP BY name_key(e.name)
ORDER BY name_key(e.name);

-- name: aliases_in_use
-- The aliases that current documents state for a name and that events use, each with one such
-- document.
SELECT alias.alias_key AS name_key, min(n.artifact_uid) AS said_in
FROM visible_entity n
JOIN artifact_revision r USING (artifact_uid, revision_id)
CROSS JOIN LATERAL unnest(name_keys(n.aliases)) AS alias (alias_key)
WHERE name_key(n.name) = %(key)s AND n.type IN ('person', 'org') AND r.is_latest
  AND EXISTS (SELECT 1 FROM event_actor e WHERE e.name_key = alias.alias_key)
GROUP BY alias.alias_key
ORDER BY alias.alias_key
LIMIT %(limit)s;

-- name: names_with_word
-- Actors whose names contain these words.
SELECT n.name_key
FROM (
    SELECT name_key FROM name_of_tenant
    WHERE words @> array_remove(regexp_split_to_array(%(key)s, '[^[:alnum:]]+'), '')
      AND %(key)s ~ '[[:alnum:]]'
    OFFSET 0
) n
WHERE EXISTS (SELECT 1 FROM event_actor a WHERE a.name_key = n.name_key)
ORDER BY n.name_key
LIMIT %(limit)s;

-- name: shown_names
-- How names are written: as in some event, else as in some document. A name that neither has is
-- left out.
SELECT written.name
FROM unnest(%(keys)s::text[]) WITH ORDINALITY AS k (key, position)
CROSS JOIN LATERAL (
    SELECT coalesce((SELECT a.ref FROM event_actor a WHERE a.name_key = k.key LIMIT 1),
                    (SELECT n.name FROM visible_entity n WHERE name_key(n.name) = k.key LIMIT 1))
               AS name
) written
WHERE written.name IS NOT NULL
ORDER BY k.position;

-- name: people_by_key
SELECT p.name_key, p.name, p.events, p.aliases FROM (
    SELECT k.key AS name_key, k.position,
           coalesce((SELECT a.ref FROM event_actor a WHERE a.name_key = k.key LIMIT 1),
                    (SELECT n.name FROM visible_entity n WHERE name_key(n.name) = k.key LIMIT 1),
                    k.key) AS name,
           (SELECT count(*) FROM visible_event s
            WHERE s.is_latest AND facets_of_event(s.event_id) @> ARRAY['actor:' || k.key])::int
               AS events,
           coalesce((SELECT array_agg(DISTINCT alias ORDER BY alias) FROM visible_entity n
                     JOIN artifact_revision r USING (artifact_uid, revision_id)
                     CROSS JOIN unnest(n.aliases) AS alias
                     WHERE name_key(n.name) = k.key AND r.is_latest), '{}') AS aliases
    FROM unnest(%(keys)s::text[]) WITH ORDINALITY AS k (key, position)
) p
ORDER BY p.events DESC, p.position;
