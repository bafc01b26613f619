-- Whose a row is. Everything that was stored so far belongs to the default tenant.
CREATE TABLE tenant (
    tenant_id  UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    name       TEXT NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    status     TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

INSERT INTO tenant (tenant_id, name) VALUES ('00000000-0000-0000-0000-000000000000', 'default');

-- The tenant of the transaction (setting memory.tenant); the default one where none is set.
CREATE FUNCTION current_tenant() RETURNS UUID LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(nullif(current_setting('memory.tenant', true), '')::uuid,
                    '00000000-0000-0000-0000-000000000000'::uuid)
$$;
