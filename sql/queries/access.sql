-- Keys and tenants. Read before a principal is known, on separate connections.

-- name: add_key
INSERT INTO access_key (prefix, hash, tenant_id, user_id, groups, scopes, expires_at)
VALUES (%(prefix)s, %(hash)s, %(tenant_id)s, %(user_id)s, %(groups)s, %(scopes)s,
        now() + make_interval(days => %(days)s));

-- name: list_keys
SELECT k.* FROM listed_key k
WHERE %(tenant_id)s::uuid IS NULL OR k.tenant_id = %(tenant_id)s
ORDER BY k.created_at, k.prefix;

-- name: find_keys
-- By the first characters of the prefix.
SELECT k.* FROM listed_key k WHERE k.prefix LIKE %(start)s || '%%' LIMIT 2;

-- name: revoke_key
UPDATE access_key SET revoked_at = coalesce(revoked_at, now()) WHERE prefix = %(prefix)s;

-- name: key_to_verify
-- Whether the key is valid is decided by the server's clock, the same for every process.
SELECT k.hash, k.tenant_id, k.user_id, k.groups, k.scopes, k.last_used_at,
       k.revoked_at IS NULL AND t.status = 'active' AND k.user_id <> 'system'
           AND (k.expires_at IS NULL OR k.expires_at > now()) AS holds
FROM access_key k
JOIN tenant t USING (tenant_id)
WHERE k.prefix = %(prefix)s;

-- name: note_use_of_key
-- At most once a minute per key.
UPDATE access_key SET last_used_at = now()
WHERE prefix = %(prefix)s
  AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');

-- name: tenant_named
-- By name or by id.
SELECT tenant_id, name, status FROM tenant
WHERE name = %(name)s OR tenant_id::text = %(name)s;

-- name: add_tenant
-- No row if the name is taken.
INSERT INTO tenant (name) VALUES (%(name)s)
ON CONFLICT (name) DO NOTHING
RETURNING tenant_id, name, status, created_at, 0::bigint AS keys;

-- name: list_tenants
-- All tenants, or the one with this id.
SELECT t.tenant_id, t.name, t.status, t.created_at,
       (SELECT count(*) FROM access_key k
        WHERE k.tenant_id = t.tenant_id AND k.revoked_at IS NULL
          AND (k.expires_at IS NULL OR k.expires_at > now())) AS keys
FROM tenant t
WHERE %(tenant_id)s::uuid IS NULL OR t.tenant_id = %(tenant_id)s
ORDER BY t.created_at, t.name;

-- name: set_tenant_status
-- Changes nothing if it already has that status.
UPDATE tenant SET status = %(status)s
WHERE tenant_id = %(tenant_id)s AND status <> %(status)s;

-- name: audiences_by_id
SELECT audience_id, tenant_id, members FROM audience WHERE audience_id = ANY (%(ids)s::int[]);

-- name: database_seconds
-- The clock that all servers count by.
SELECT extract(epoch FROM clock_timestamp())::float8 AS seconds;

-- name: add_calls
-- The calls that a server has admitted since its last report, of all its users. Always in one
-- order, so that two servers never wait for each other.
INSERT INTO rate_window AS w (tenant_id, user_id, slot, calls)
SELECT * FROM unnest(%(tenants)s::uuid[], %(users)s::text[], %(slots)s::bigint[], %(calls)s::bigint[])
    AS told (tenant_id, user_id, slot, calls)
ORDER BY tenant_id, user_id, slot
ON CONFLICT (tenant_id, user_id, slot) DO UPDATE SET calls = w.calls + excluded.calls;

-- name: calls_of_all_servers
SELECT w.tenant_id, w.user_id, w.slot, w.calls
FROM unnest(%(tenants)s::uuid[], %(users)s::text[]) AS asked (tenant_id, user_id)
JOIN rate_window w USING (tenant_id, user_id)
WHERE w.slot >= %(since)s;

-- name: forget_calls
DELETE FROM rate_window WHERE slot < %(before)s;
