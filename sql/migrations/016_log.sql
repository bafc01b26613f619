-- The log: every transaction that changes the memory appends what happened. Everything derived
-- from it (the index, deliveries, notifications) reads it in order, with a checkpoint.
CREATE SCHEMA log;

CREATE SEQUENCE log.event_sequence_seq;

-- Payloads carry ids, never text: deleting a document rewrites nothing here.
CREATE TABLE log.events (
    event_id        UUID NOT NULL DEFAULT gen_random_uuid(),
    aggregate_type  VARCHAR(255) NOT NULL,
    aggregate_id    UUID NOT NULL,              -- of an artifact: uuid5 of its uid
    event_type      VARCHAR(255) NOT NULL,
    tenant_id       UUID NULL,
    actor_id        VARCHAR(255) NULL,          -- who caused it
    trace_id        VARCHAR(32) NULL,
    span_id         VARCHAR(16) NULL,
    version         INTEGER NOT NULL,           -- of the aggregate, after this change
    timestamp       TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    payload         JSONB NOT NULL,
    metadata        JSONB NOT NULL DEFAULT '{}', -- correlation_id, causation_id, user_id, source
    created_at      TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    sequence_number BIGINT NOT NULL DEFAULT nextval('log.event_sequence_seq'),
    -- Of the transaction that made the change; of a later one when that changed the same aggregate
    -- first (it waited for it): so that (transaction_id, sequence_number) is the order of every
    -- aggregate's versions too.
    transaction_id  XID8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT valid_version CHECK (version > 0),
    -- Both must contain the partition key. That a version is given once is kept by log.aggregates.
    PRIMARY KEY (event_id, timestamp),
    CONSTRAINT unique_aggregate_version UNIQUE (aggregate_id, aggregate_type, version, timestamp)
) PARTITION BY RANGE (timestamp);
ALTER SEQUENCE log.event_sequence_seq OWNED BY log.events.sequence_number;

-- The order in which readers take changes.
CREATE INDEX idx_events_position ON log.events (transaction_id, sequence_number);
CREATE INDEX idx_events_sequence ON log.events (sequence_number);
-- Streams of one aggregate are loaded by unique_aggregate_version.
CREATE INDEX idx_events_aggregate_type ON log.events (aggregate_type);
CREATE INDEX idx_events_event_type ON log.events (event_type, created_at DESC);
CREATE INDEX idx_events_timestamp ON log.events (timestamp);
CREATE INDEX idx_events_tenant_id ON log.events (tenant_id) WHERE tenant_id IS NOT NULL;
CREATE INDEX idx_events_type_tenant_timestamp
    ON log.events (aggregate_type, tenant_id, timestamp) WHERE tenant_id IS NOT NULL;
CREATE INDEX idx_events_trace ON log.events (trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX idx_events_created_brin ON log.events USING BRIN (created_at);
CREATE INDEX idx_events_payload ON log.events USING GIN (payload jsonb_path_ops);

-- Never needed while partitions are made ahead; a change must not be refused for want of one.
CREATE TABLE log.events_default PARTITION OF log.events DEFAULT;

-- Partitions for the months from `first` on. Rows that went to the default partition meanwhile
-- move into theirs.
CREATE FUNCTION log.make_partitions(first DATE, months INTEGER) RETURNS SETOF TEXT AS $$
DECLARE
    month DATE;
    name TEXT;
BEGIN
    -- One at a time: two workers may look after the same log.
    PERFORM pg_advisory_xact_lock(hashtext('mcp-memory'), hashtext('log partitions'));
    FOR n IN 0 .. months - 1 LOOP
        month := (date_trunc('month', first) + make_interval(months => n))::date;
        name := 'events_' || to_char(month, '"y"YYYY"m"MM');
        CONTINUE WHEN to_regclass('log.' || name) IS NOT NULL;
        EXECUTE format('CREATE TABLE log.%I (LIKE log.events INCLUDING ALL)', name);
        IF EXISTS (SELECT 1 FROM log.events_default
                   WHERE timestamp >= month::timestamp AT TIME ZONE 'UTC'
                     AND timestamp < (month + interval '1 month') AT TIME ZONE 'UTC') THEN
            LOCK TABLE log.events_default IN ACCESS EXCLUSIVE MODE;
            ALTER TABLE log.events_default DISABLE TRIGGER refuse_change;
            EXECUTE format(
                'WITH moved AS (DELETE FROM log.events_default '
                'WHERE timestamp >= $1 AND timestamp < $2 RETURNING *) '
                'INSERT INTO log.%I SELECT * FROM moved', name)
                USING month::timestamp AT TIME ZONE 'UTC',
                      (month + interval '1 month') AT TIME ZONE 'UTC';
            ALTER TABLE log.events_default ENABLE TRIGGER refuse_change;
        END IF;
        EXECUTE format(
            'ALTER TABLE log.events ATTACH PARTITION log.%I FOR VALUES FROM (%L) TO (%L)',
            name, month::timestamp AT TIME ZONE 'UTC',
            (month + interval '1 month') AT TIME ZONE 'UTC');
        RETURN NEXT name;
    END LOOP;
END;
$$ LANGUAGE plpgsql;

CREATE FUNCTION log.refuse_change() RETURNS TRIGGER AS $$
BEGIN
    RAISE EXCEPTION 'the log is append-only: % of % is refused', lower(TG_OP), TG_TABLE_NAME
        USING ERRCODE = 'object_not_in_prerequisite_state';
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER refuse_change
    BEFORE UPDATE OR DELETE ON log.events
    FOR EACH ROW EXECUTE FUNCTION log.refuse_change();
CREATE TRIGGER refuse_truncate
    BEFORE TRUNCATE ON log.events
    FOR EACH STATEMENT EXECUTE FUNCTION log.refuse_change();

SELECT log.make_partitions((now() AT TIME ZONE 'UTC')::date, 4);

-- One wake-up for each transaction: Postgres drops equal notifications of the same one.
CREATE FUNCTION log.notify_readers() RETURNS TRIGGER AS $$
BEGIN
    PERFORM pg_notify('memory_log', '');
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER notify_readers
    AFTER INSERT ON log.events
    FOR EACH STATEMENT EXECUTE FUNCTION log.notify_readers();

-- The head of every aggregate. Appending compares and sets it: a unique constraint over
-- (aggregate, version) alone cannot stand on a partitioned table.
CREATE TABLE log.aggregates (
    aggregate_type VARCHAR(255) NOT NULL,
    aggregate_id   UUID NOT NULL,
    version        INTEGER NOT NULL CHECK (version > 0),
    transaction_id XID8 NOT NULL,               -- of its last change
    PRIMARY KEY (aggregate_type, aggregate_id)
) WITH (fillfactor = 80);

-- The version a change gets. An expectation that is not met ends the transaction.
CREATE FUNCTION log.next_version(version INTEGER, expected INTEGER) RETURNS INTEGER AS $$
BEGIN
    IF expected IS NOT NULL AND version <> expected + 1 THEN
        RAISE EXCEPTION 'Concurrency conflict: expected version %, found %', expected, version - 1
            USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN version;
END;
$$ LANGUAGE plpgsql;

CREATE TABLE log.event_snapshots (
    id             UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    aggregate_type VARCHAR(255) NOT NULL,
    aggregate_id   UUID NOT NULL,
    state_data     JSONB NOT NULL,
    version        INTEGER NOT NULL,
    event_sequence BIGINT NOT NULL,             -- of the last change it includes
    state_at       TIMESTAMPTZ NOT NULL,        -- when that change happened
    created_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT unique_snapshot_version UNIQUE (aggregate_type, aggregate_id, version)
);

-- How far each projection is, how it stands, and what it is trying.
CREATE TABLE log.projection_checkpoints (
    projection_name   VARCHAR(255) PRIMARY KEY,
    last_event_id     UUID NULL,
    last_event_type   VARCHAR(255) NULL,
    last_processed_at TIMESTAMPTZ NULL,
    events_processed  BIGINT NOT NULL DEFAULT 0,
    transaction_id    XID8 NOT NULL,            -- with sequence_number: every change up to here is done
    sequence_number   BIGINT NOT NULL,
    status            VARCHAR(20) NOT NULL DEFAULT 'rebuilding'
        CHECK (status IN ('running', 'paused', 'rebuilding')),
    rebuilt_at        TIMESTAMPTZ NULL,         -- null: it has yet to be derived from Postgres
    leader            TEXT NULL,                -- host and process that works on it
    heartbeat_at      TIMESTAMPTZ NULL,
    -- Written before the work, so that a process that dies on a change has counted.
    batch_size        INTEGER NULL,             -- of the batch begun last; null after a success
    attempts          INTEGER NOT NULL DEFAULT 0, -- at the next change alone
    fault             TEXT NULL,                -- what it waits for
    fault_code        VARCHAR(50) NULL,
    fault_since       TIMESTAMPTZ NULL,
    created_at        TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at        TIMESTAMPTZ NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CREATE TRIGGER update_projection_checkpoints_updated_at
    BEFORE UPDATE ON log.projection_checkpoints
    FOR EACH ROW EXECUTE FUNCTION update_updated_at_column();

CREATE TABLE log.dead_letter_queue (
    id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id         UUID NOT NULL,
    projection_name  VARCHAR(255) NOT NULL,
    event_type       VARCHAR(255) NOT NULL,
    event_data       JSONB NOT NULL,            -- the change, as it is replayed
    error_message    TEXT NOT NULL,
    error_stacktrace TEXT NULL,
    retry_count      INTEGER NOT NULL DEFAULT 0,
    first_failed_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    last_failed_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    status           VARCHAR(20) NOT NULL DEFAULT 'failed'
        CHECK (status IN ('failed', 'retrying', 'resolved')),
    resolved_at      TIMESTAMPTZ NULL,
    resolved_by      VARCHAR(255) NULL,
    UNIQUE (event_id, projection_name),
    CHECK ((status = 'resolved') = (resolved_at IS NOT NULL))
);
CREATE INDEX idx_dlq_status ON log.dead_letter_queue (status);
CREATE INDEX idx_dlq_first_failed_at ON log.dead_letter_queue (first_failed_at);
CREATE INDEX idx_dlq_projection_status ON log.dead_letter_queue (projection_name, status);
CREATE INDEX idx_dlq_active_failures ON log.dead_letter_queue (projection_name, first_failed_at)
    WHERE status <> 'resolved';
CREATE INDEX idx_dlq_resolved_at ON log.dead_letter_queue (resolved_at)
    WHERE resolved_at IS NOT NULL;

-- What is to be delivered to subscribers.
CREATE TABLE log.event_outbox (
    id              UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    event_id        UUID NOT NULL,
    event_type      VARCHAR(255) NOT NULL,
    aggregate_id    UUID NOT NULL,
    aggregate_type  VARCHAR(255) NOT NULL,
    tenant_id       UUID NULL,
    event_data      JSONB NOT NULL,             -- the change: ids, never text, never a secret
    subscription_id UUID NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    published_at    TIMESTAMPTZ NULL,
    retry_count     INTEGER NOT NULL DEFAULT 0,
    last_error      TEXT NULL,
    status          VARCHAR(20) NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'published', 'failed')),
    next_attempt_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    leased_by       TEXT NULL,
    leased_until    TIMESTAMPTZ NULL,
    UNIQUE (event_id, subscription_id)
);
CREATE INDEX idx_outbox_status_created ON log.event_outbox (status, created_at);
CREATE INDEX idx_outbox_pending ON log.event_outbox (next_attempt_at) WHERE status = 'pending';
CREATE INDEX idx_outbox_tenant_id ON log.event_outbox (tenant_id) WHERE tenant_id IS NOT NULL;
CREATE INDEX idx_outbox_failed ON log.event_outbox (created_at) WHERE status = 'failed';
CREATE INDEX idx_outbox_published_at ON log.event_outbox (published_at)
    WHERE published_at IS NOT NULL;

-- Positions are made of this cluster's transaction ids. A dump restored into another cluster
-- brings them along, without meaning there: `mcp-memory log rebase` gives them new ones.
CREATE TABLE log.cluster (
    only_row          BOOLEAN PRIMARY KEY DEFAULT true CHECK (only_row),
    system_identifier BIGINT NOT NULL
);
INSERT INTO log.cluster (system_identifier)
SELECT system_identifier FROM pg_control_system();

-- Give every change a position of this cluster, in the order they had, and take what stands on
-- positions along. Nothing is appended or read until it has committed.
CREATE FUNCTION log.rebase(OUT changes BIGINT, OUT checkpoints BIGINT) AS $$
BEGIN
    LOCK TABLE log.events, log.aggregates, log.projection_checkpoints IN ACCESS EXCLUSIVE MODE;
    CREATE TEMPORARY TABLE rebased ON COMMIT DROP AS
    SELECT event_id, timestamp, transaction_id, sequence_number,
           row_number() OVER (ORDER BY transaction_id, sequence_number) AS rank
    FROM log.events;
    ALTER TABLE log.events DISABLE TRIGGER refuse_change;
    -- Before every transaction of any cluster: the ids of ordinary ones begin with 3.
    UPDATE log.events e SET transaction_id = '2', sequence_number = r.rank
    FROM rebased r WHERE r.event_id = e.event_id AND r.timestamp = e.timestamp;
    GET DIAGNOSTICS changes = ROW_COUNT;
    ALTER TABLE log.events ENABLE TRIGGER refuse_change;
    UPDATE log.projection_checkpoints c
    SET transaction_id = '2', leader = NULL,
        sequence_number = (SELECT count(*) FROM rebased r
                           WHERE (r.transaction_id, r.sequence_number)
                                 <= (c.transaction_id, c.sequence_number));
    GET DIAGNOSTICS checkpoints = ROW_COUNT;
    UPDATE log.aggregates SET transaction_id = '2';
    UPDATE log.event_snapshots s SET event_sequence = e.sequence_number
    FROM log.events e
    WHERE e.aggregate_id = s.aggregate_id AND e.aggregate_type = s.aggregate_type
      AND e.version = s.version;
    PERFORM setval('log.event_sequence_seq', greatest(changes, 1), changes > 0);
    UPDATE log.cluster SET system_identifier = (SELECT p.system_identifier
                                                FROM pg_control_system() p);
END;
$$ LANGUAGE plpgsql;
