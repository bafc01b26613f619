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
