-- name: ping
SELECT 1 AS alive;

-- name: count_jobs_by_status
SELECT status, count(*) AS jobs FROM event_jobs GROUP BY status;

-- name: daemon_table_exists
-- Dagster creates its tables at its first start, not our migrations.
SELECT to_regclass('dagster.daemon_heartbeats') IS NOT NULL AS exists;

-- name: daemon_last_heartbeat
-- The sensor daemon is the one that starts extraction.
SELECT max(timestamp) AS last_heartbeat FROM dagster.daemon_heartbeats WHERE daemon_type = 'SENSOR';

-- name: server_version
SELECT current_setting('server_version') AS version;
