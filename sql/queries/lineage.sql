-- name: lineage_tables_exist
-- Dagster creates its tables at its first start.
SELECT to_regclass('dagster.event_logs') IS NOT NULL
   AND to_regclass('dagster.dynamic_partitions') IS NOT NULL
   AND to_regclass('dagster.asset_keys') IS NOT NULL
   AND to_regclass('dagster.asset_event_tags') IS NOT NULL AS exists;

-- name: partitions_of_artifact
SELECT coalesce(array_agg(partition_key), '{}') AS keys
FROM artifact_revision WHERE artifact_uid = %(uid)s AND partition_key IS NOT NULL;

-- name: delete_lineage_tags
DELETE FROM dagster.asset_event_tags t USING dagster.event_logs l
WHERE l.id = t.event_id AND l.asset_key = ANY(%(assets)s) AND l.partition = ANY(%(keys)s);

-- name: delete_lineage_events
-- Materialisations carry a preview of the events with their quotes. Dagster itself cannot forget
-- one partition.
DELETE FROM dagster.event_logs WHERE asset_key = ANY(%(assets)s) AND partition = ANY(%(keys)s);

-- name: delete_lineage_previews
-- Each asset also keeps a copy of its last materialisation.
UPDATE dagster.asset_keys SET last_materialization = NULL
WHERE EXISTS (SELECT 1 FROM unnest(%(keys)s::text[]) AS key
              WHERE position(key IN last_materialization) > 0);

-- name: delete_lineage_partitions
DELETE FROM dagster.dynamic_partitions WHERE partition = ANY(%(keys)s);

-- name: delete_trial_pages
-- Pages of prompt trials that tell of an artifact.
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
