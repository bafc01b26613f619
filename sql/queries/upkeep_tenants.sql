-- Deleting a tenant.

-- name: begin_to_delete_tenant
-- From here on its keys and tokens are refused, and it cannot be resumed.
UPDATE tenant SET status = 'deleting' WHERE tenant_id = %(tenant_id)s AND status <> 'deleting';

-- name: keys_in_force
SELECT prefix FROM access_key WHERE tenant_id = %(tenant_id)s AND revoked_at IS NULL ORDER BY prefix;

-- name: count_rows_of_tenant
-- The numbers of rows that a person would miss.
SELECT (SELECT count(DISTINCT artifact_uid) FROM artifact_revision WHERE tenant_id = %(tenant_id)s)
           AS documents,
       (SELECT count(*) FROM artifact_revision WHERE tenant_id = %(tenant_id)s) AS revisions,
       (SELECT count(*) FROM semantic_event WHERE tenant_id = %(tenant_id)s) AS events,
       (SELECT count(*) FROM memory WHERE tenant_id = %(tenant_id)s) AS memories,
       (SELECT count(DISTINCT (owner, conversation_id)) FROM history_turn
        WHERE tenant_id = %(tenant_id)s) AS conversations,
       (SELECT count(*) FROM event_jobs WHERE tenant_id = %(tenant_id)s) AS jobs,
       (SELECT count(*) FROM log.webhook_subscriptions WHERE tenant_id = %(tenant_id)s) AS webhooks,
       (SELECT count(*) FROM access_key WHERE tenant_id = %(tenant_id)s) AS keys;

-- name: documents_of_tenant
SELECT DISTINCT artifact_uid FROM artifact_revision WHERE tenant_id = %(tenant_id)s LIMIT %(limit)s;

-- name: tables_of_tenants
SELECT name FROM table_of_tenants ORDER BY place, name;

-- name: forget_rows_of_tenant
SELECT forget_rows_of_tenant(%(name)s, %(tenant_id)s, %(limit)s) AS gone;

-- name: let_names_go
-- For this transaction, the log allows deleting who made the changes of a tenant.
SELECT set_config('memory.forgets_tenant', %(tenant_id)s::text, true) AS tenant;

-- name: forget_actors_of_tenant
UPDATE log.events SET actor_id = NULL, metadata = '{}'
WHERE (timestamp, event_id) IN (
    SELECT timestamp, event_id FROM log.events
    WHERE tenant_id = %(tenant_id)s AND (actor_id IS NOT NULL OR metadata <> '{}')
    LIMIT %(limit)s);

-- name: remove_tenant
-- With its audiences.
DELETE FROM tenant WHERE tenant_id = %(tenant_id)s;
