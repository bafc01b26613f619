-- Whether the processes of the stack are alive.

-- name: daemon_table_exists
-- Dagster creates its tables at its first start, not our migrations.
SELECT to_regclass('dagster.daemon_heartbeats') IS NOT NULL AS exists;

-- name: daemon_last_heartbeat
-- The sensor daemon is the one that starts extraction.
SELECT max(timestamp) AS last_heartbeat FROM dagster.daemon_heartbeats WHERE daemon_type = 'SENSOR';

-- name: worker_listens
SELECT 1 FROM pg_stat_activity
WHERE application_name = 'mcp-memory worker' AND datname = current_database()
  AND backend_start >= to_timestamp(%(since)s);
