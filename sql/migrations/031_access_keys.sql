-- Keys with which clients prove who they are. A key is shown once; what is kept of it is a hash.
CREATE TABLE access_key (
    prefix       TEXT PRIMARY KEY CHECK (prefix ~ '^mcpmem_[0-9A-Za-z]{10}$'),
    hash         TEXT NOT NULL,
    tenant_id    UUID NOT NULL DEFAULT current_tenant() REFERENCES tenant (tenant_id) ON DELETE CASCADE,
    user_id      TEXT NOT NULL CHECK (user_id ~ '\S' AND length(user_id) <= 200),
    groups       TEXT[] NOT NULL DEFAULT '{}',
    scopes       TEXT[] NOT NULL
                 CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['read', 'write', 'admin']),
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    expires_at   TIMESTAMPTZ,
    last_used_at TIMESTAMPTZ,
    revoked_at   TIMESTAMPTZ
);
CREATE INDEX access_key_of_tenant ON access_key (tenant_id);
