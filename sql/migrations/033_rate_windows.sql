-- Calls of the last minute or so, by tenant and user ('': the whole tenant), in slots of six seconds.
-- Lost in a crash without harm, hence unlogged; rows change in place.
CREATE UNLOGGED TABLE rate_window (
    tenant_id UUID NOT NULL,
    user_id   TEXT NOT NULL,
    slot      BIGINT NOT NULL,
    calls     BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id, slot)
) WITH (fillfactor = 50);
