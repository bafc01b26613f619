-- Webhooks: who wants to be told of which changes, and what became of the messages.

CREATE TABLE log.webhook_subscriptions (
    subscription_id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    url             TEXT NOT NULL,
    types           TEXT[] NOT NULL CHECK (cardinality(types) > 0),
    category        TEXT NULL,                  -- of events.replaced: only events of this category
    actor           TEXT NULL,                  -- and only those in which this person takes part
    include_content BOOLEAN NOT NULL DEFAULT false,
    -- A message for each new event, instead of one for each change.
    per_event       BOOLEAN NOT NULL GENERATED ALWAYS AS
        (category IS NOT NULL OR actor IS NOT NULL OR include_content) STORED,
    secret          TEXT NOT NULL,
    previous_secret TEXT NULL,                  -- signs too, until receivers have the new one
    previous_until  TIMESTAMPTZ NULL,
    status          VARCHAR(20) NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'disabled')),
    disabled_reason TEXT NULL,
    failures        INTEGER NOT NULL DEFAULT 0, -- in a row
    not_before      TIMESTAMPTZ NULL,           -- nothing is sent before then
    last_success_at TIMESTAMPTZ NULL,
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    CHECK ((status = 'disabled') = (disabled_reason IS NOT NULL)),
    CHECK ((previous_secret IS NULL) = (previous_until IS NULL))
);
CREATE INDEX idx_webhook_subscriptions_active ON log.webhook_subscriptions (subscription_id)
    WHERE status = 'active';

ALTER TABLE log.event_outbox
    ADD COLUMN item_id UUID NULL,               -- the event that the message is about
    ADD COLUMN first_attempt_at TIMESTAMPTZ NULL,
    ADD CONSTRAINT outbox_subscription FOREIGN KEY (subscription_id)
        REFERENCES log.webhook_subscriptions (subscription_id) ON DELETE CASCADE,
    DROP CONSTRAINT event_outbox_event_id_subscription_id_key,
    ADD CONSTRAINT one_message UNIQUE NULLS NOT DISTINCT (event_id, subscription_id, item_id);
CREATE INDEX idx_outbox_subscription ON log.event_outbox (subscription_id, next_attempt_at);

-- The last messages of each subscription. A message that has ended leaves the outbox for here.
CREATE TABLE log.webhook_deliveries (
    id              BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id UUID NOT NULL
        REFERENCES log.webhook_subscriptions (subscription_id) ON DELETE CASCADE,
    message_id      UUID NOT NULL,              -- webhook-id, without its prefix
    event_type      VARCHAR(255) NOT NULL,
    outcome         VARCHAR(20) NOT NULL CHECK (outcome IN ('delivered', 'failed', 'dropped')),
    attempts        INTEGER NOT NULL,
    error           TEXT NULL,
    created_at      TIMESTAMPTZ NOT NULL,       -- when the change was made
    ended_at        TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX idx_webhook_deliveries ON log.webhook_deliveries (subscription_id, id DESC);

-- In the transaction that makes the change: a message exists if and only if its change does. Where
-- there is no subscription, one look at an empty index is all that it costs.
CREATE FUNCTION log.fill_outbox() RETURNS TRIGGER AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM log.webhook_subscriptions WHERE status = 'active') THEN
        RETURN NULL;
    END IF;
    INSERT INTO log.event_outbox (
        event_id, event_type, aggregate_id, aggregate_type, tenant_id, subscription_id, item_id,
        event_data
    )
    SELECT n.event_id, n.event_type, n.aggregate_id, n.aggregate_type, n.tenant_id,
           s.subscription_id, item.event_id,
           jsonb_build_object(
               'version', n.version,
               'timestamp', to_char(n.timestamp AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
               'payload', CASE WHEN item.event_id IS NULL THEN n.payload
                               ELSE n.payload - '{added,removed,kept}'::text[]
                                    || jsonb_build_object('event_id', item.event_id) END)
    FROM appended n
    JOIN log.webhook_subscriptions s ON s.status = 'active' AND n.event_type = ANY (s.types)
    CROSS JOIN LATERAL (
        SELECT NULL::uuid AS event_id WHERE NOT (s.per_event AND n.event_type = 'events.replaced')
        UNION ALL
        SELECT e.event_id
        FROM jsonb_array_elements_text(n.payload -> 'added') AS added (id)
        JOIN public.semantic_event e ON e.event_id = added.id::uuid
        WHERE s.per_event AND n.event_type = 'events.replaced' AND e.is_latest
          AND (s.category IS NULL OR e.category = s.category)
          AND (s.actor IS NULL OR EXISTS (
              SELECT 1 FROM public.event_actor a
              WHERE a.event_id = e.event_id
                AND string_to_array(a.name_key, ' ')
                    @> string_to_array(public.name_key(s.actor), ' ')))
    ) item;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER fill_outbox
    AFTER INSERT ON log.events
    REFERENCING NEW TABLE AS appended
    FOR EACH STATEMENT EXECUTE FUNCTION log.fill_outbox();
