-- Connections, migrations, and ids by their first characters.

-- name: tune_connection
-- Settings of a connection. Filters differ from call to call, so each call needs its own plan. The
-- matches of a common word must fit into memory. Starting parallel workers takes longer than most
-- searches. Times are UTC in and out, because days are computed from them, whatever the server's
-- time zone is.
SELECT set_config('TimeZone', 'UTC', false),
       set_config('plan_cache_mode', 'force_custom_plan', false),
       set_config('work_mem', '64MB', false), set_config('jit', 'off', false),
       set_config('max_parallel_workers_per_gather', '0', false);

-- name: serve_principal
-- From now on the connection works for this principal.
SELECT set_config('role', %(role)s, false), set_config('memory.tenant', %(tenant)s, false),
       set_config('memory.user', %(user)s, false), set_config('memory.marks', %(marks)s, false);

-- name: lock_migrations
-- Held by the session: two processes that start at once migrate one after the other.
SELECT pg_advisory_lock(%(key)s);

-- name: unlock_migrations
SELECT pg_advisory_unlock(%(key)s);

-- name: create_migration_table
CREATE TABLE IF NOT EXISTS schema_migration (
    number     INT PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- name: migration_table_exists
SELECT to_regclass('schema_migration') IS NOT NULL;

-- name: applied_migrations
SELECT number, name, checksum FROM schema_migration ORDER BY number;

-- name: record_migration
INSERT INTO schema_migration (number, name, checksum)
VALUES (%(number)s, %(name)s, %(checksum)s);

-- name: artifacts_by_prefix
-- Documents whose id begins with the given text.
SELECT artifact_uid AS id, title AS name FROM artifact_revision
WHERE is_latest AND artifact_uid BETWEEN %(low)s AND %(high)s
ORDER BY artifact_uid LIMIT %(limit)s;

-- name: artifacts_by_revision_prefix
-- The same by an artifact_id of one of their revisions.
SELECT DISTINCT artifact_uid AS id, title AS name FROM artifact_revision
WHERE artifact_id BETWEEN %(low)s AND %(high)s
ORDER BY artifact_uid LIMIT %(limit)s;

-- name: revisions_by_prefix
SELECT revision_id AS id, to_char(ingested_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') AS name
FROM artifact_revision
WHERE artifact_uid = %(uid)s AND starts_with(revision_id, %(prefix)s)
ORDER BY ingested_at, revision_id;

-- name: events_by_prefix
-- Events whose id begins with the given text.
SELECT event_id::text AS id, left(narrative, 60) AS name FROM semantic_event
WHERE event_id BETWEEN %(low)s AND %(high)s
ORDER BY event_id LIMIT %(limit)s;

-- name: jobs_by_prefix
-- Jobs whose id begins with the given text.
SELECT job_id::text AS id, status AS name FROM event_jobs
WHERE job_id BETWEEN %(low)s AND %(high)s AND tenant_id = current_tenant()
ORDER BY job_id LIMIT %(limit)s;
