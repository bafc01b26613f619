-- What Dagster stores about a document, and its deletion.

-- name: lineage_tables_exist
-- Dagster creates its tables at its first start.
SELECT to_regclass('dagster.event_logs') IS NOT NULL
   AND to_regclass('dagster.dynamic_partitions') IS NOT NULL
   AND to_regclass('dagster.asset_keys') IS NOT NULL
   AND to_regclass('dagster.asset_event_tags') IS NOT NULL AS exists;

-- name: partitions_of_artifact
SELECT partition_key
FROM artifact_revision WHERE artifact_uid = %(uid)s AND partition_key IS NOT NULL;

-- name: partitions_of_nothing
-- Partition keys of deleted revisions: a run that was under way has written them since.
SELECT l.partition FROM dagster.event_logs l
WHERE l.asset_key = ANY(%(assets)s) AND l.dagster_event_type = ANY(%(types)s)
  AND l.partition IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM artifact_revision r WHERE r.partition_key = l.partition)
UNION
SELECT p.partition FROM dagster.dynamic_partitions p
WHERE NOT EXISTS (SELECT 1 FROM artifact_revision r WHERE r.partition_key = p.partition)
LIMIT %(limit)s;

-- name: delete_lineage_tags
DELETE FROM dagster.asset_event_tags t USING dagster.event_logs l
WHERE l.id = t.event_id AND l.asset_key = ANY(%(assets)s)
  AND l.dagster_event_type = ANY(%(types)s) AND l.partition = ANY(%(keys)s);

-- name: delete_lineage_events
-- Materialisations contain a preview of the events with their quotes. Dagster itself cannot delete
-- one partition. In the index, the type is between asset and partition.
DELETE FROM dagster.event_logs
WHERE asset_key = ANY(%(assets)s) AND dagster_event_type = ANY(%(types)s)
  AND partition = ANY(%(keys)s);

-- name: delete_lineage_previews
-- Each asset also has a copy of its last materialisation. Letters beyond ASCII are escaped in it,
-- so it is found by the digits at the end of a key.
UPDATE dagster.asset_keys SET last_materialization = NULL
WHERE EXISTS (SELECT 1 FROM unnest(%(keys)s::text[]) AS key
              WHERE position(split_part(key, ':', -1) IN last_materialization) > 0);

-- name: delete_lineage_partitions
DELETE FROM dagster.dynamic_partitions WHERE partition = ANY(%(keys)s);

-- name: delete_trial_pages
-- Pages of prompt trials that mention an artifact.
WITH page AS (
    SELECT id FROM dagster.event_logs
    WHERE asset_key = %(asset)s AND position(%(uid)s IN event) > 0
), tag AS (
    DELETE FROM dagster.asset_event_tags t USING page p WHERE t.event_id = p.id
), copy AS (
    UPDATE dagster.asset_keys SET last_materialization = NULL
    WHERE asset_key = %(asset)s AND position(%(uid)s IN last_materialization) > 0
)
DELETE FROM dagster.event_logs l USING page p WHERE l.id = p.id;

-- name: titles_of_artifact
SELECT DISTINCT title FROM artifact_revision WHERE artifact_uid = %(uid)s AND title <> '';

-- name: runs_of_document
-- The runs that worked on it, or name it. Run it before its entries are deleted.
SELECT run_id FROM dagster.run_tags WHERE key = 'artifact' AND value = %(uid)s
UNION
SELECT run_id FROM dagster.run_tags
WHERE key IN ('dagster/partition', 'dagster/asset_partition_range_start',
              'dagster/asset_partition_range_end')
  AND value = ANY(%(keys)s)
UNION
SELECT run_id FROM dagster.event_logs
WHERE asset_key = ANY(%(assets)s) AND dagster_event_type = ANY(%(types)s)
  AND partition = ANY(%(keys)s);

-- name: forget_title_tags
DELETE FROM dagster.run_tags t USING dagster.run_tags a
WHERE a.key = 'artifact' AND a.value = %(uid)s AND t.run_id = a.run_id AND t.key = 'title';

-- name: forget_in_run_tags
UPDATE dagster.run_tags SET value = replace_all(value, %(names)s, %(instead)s)
WHERE run_id = ANY(%(runs)s) AND value <> replace_all(value, %(names)s, %(instead)s);

-- name: forget_in_runs
UPDATE dagster.runs SET run_body = replace_all(run_body, %(names)s, %(instead)s),
                        partition = replace_all(partition, %(names)s, %(instead)s)
WHERE run_id = ANY(%(runs)s);

-- name: forget_in_events_of_runs
UPDATE dagster.event_logs SET event = replace_all(event, %(names)s, %(instead)s)
WHERE run_id = ANY(%(runs)s) AND event <> replace_all(event, %(names)s, %(instead)s);

-- name: forget_in_ticks
UPDATE dagster.job_ticks SET tick_body = replace_all(tick_body, %(names)s, %(instead)s)
WHERE tick_body <> replace_all(tick_body, %(names)s, %(instead)s);

-- name: forget_in_sensors
UPDATE dagster.instigators
SET instigator_body = replace_all(instigator_body, %(names)s, %(instead)s)
WHERE instigator_body <> replace_all(instigator_body, %(names)s, %(instead)s);

-- name: forget_in_backfills
UPDATE dagster.bulk_actions SET body = replace_all(body, %(names)s, %(instead)s)
WHERE body <> replace_all(body, %(names)s, %(instead)s);

-- name: forget_cached_partitions
-- A cache, which Dagster fills again.
UPDATE dagster.asset_keys SET cached_status_data = NULL
WHERE EXISTS (SELECT 1 FROM unnest(%(names)s::text[]) AS name
              WHERE position(name IN cached_status_data) > 0);
