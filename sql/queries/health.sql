-- name: ping
SELECT 1 AS alive;

-- name: count_jobs_by_status
SELECT status, count(*) AS jobs FROM event_jobs GROUP BY status;

-- name: server_version
SELECT current_setting('server_version') AS version;
