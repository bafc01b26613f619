-- name: lock_migrations
-- Held for the session: two processes that start at once migrate one after the other.
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
