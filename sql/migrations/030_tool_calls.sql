-- The audit: every call of a tool, a resource, a prompt, a page or a command. Texts stand here as
-- their length and hash, never as they are. A partition for each month; old ones are dropped whole.
CREATE SCHEMA audit;

CREATE TABLE tool_calls (
    id             UUID NOT NULL DEFAULT gen_random_uuid(),
    task_id        UUID NULL,                  -- the job that the call requested or asked about
    agent_id       UUID NULL,                  -- the agent that called, when one did
    tenant_id      UUID NOT NULL DEFAULT current_tenant(),
    principal      VARCHAR(255) NOT NULL,      -- the user who asked
    kind           VARCHAR(20) NOT NULL
        CHECK (kind IN ('tool', 'resource', 'prompt', 'page', 'command')),
    transport      VARCHAR(20) NOT NULL CHECK (transport IN ('http', 'stdio', 'command')),
    trace_id       VARCHAR(32) NULL,
    span_id        VARCHAR(16) NULL,
    parent_span_id VARCHAR(16) NULL,
    tool_name      VARCHAR(255) NOT NULL,
    parameters     JSONB NULL,                 -- numbers and ids as they are; texts: length and hash
    result         JSONB NULL,                 -- ids and counts of the answer
    error          TEXT NULL,                  -- the error's code; null: it went well
    tokens_used    INTEGER NOT NULL DEFAULT 0, -- of models that were asked during the call
    cost_dollars   DECIMAL(10, 6) NOT NULL DEFAULT 0,
    latency_ms     INTEGER NULL,
    created_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    completed_at   TIMESTAMPTZ NULL,
    PRIMARY KEY (id, created_at),
    CONSTRAINT valid_latency CHECK (latency_ms IS NULL OR latency_ms >= 0),
    CONSTRAINT valid_tool_tokens CHECK (tokens_used >= 0),
    CONSTRAINT valid_tool_cost CHECK (cost_dollars >= 0)
) PARTITION BY RANGE (created_at);
COMMENT ON TABLE tool_calls IS 'Audit log of all tool invocations';
COMMENT ON COLUMN tool_calls.trace_id IS 'OpenTelemetry trace ID for distributed tracing';
COMMENT ON COLUMN tool_calls.span_id IS 'OpenTelemetry span ID for this specific call';

CREATE INDEX idx_tool_calls_task ON tool_calls (task_id, created_at DESC)
    WHERE task_id IS NOT NULL;
CREATE INDEX idx_tool_calls_agent ON tool_calls (agent_id, created_at DESC)
    WHERE agent_id IS NOT NULL;
CREATE INDEX idx_tool_calls_trace ON tool_calls (trace_id, span_id) WHERE trace_id IS NOT NULL;
CREATE INDEX idx_tool_calls_tool_name ON tool_calls (tool_name, created_at DESC);
CREATE INDEX idx_tool_calls_errors ON tool_calls (tool_name, created_at DESC)
    WHERE error IS NOT NULL;
CREATE INDEX idx_tool_calls_params_gin ON tool_calls USING GIN (parameters jsonb_path_ops)
    WHERE parameters IS NOT NULL;

-- Never needed while partitions are made ahead; a call must not go unrecorded for want of one.
CREATE TABLE audit.tool_calls_default PARTITION OF tool_calls DEFAULT;

-- Partitions for the months from `first` on. Rows that went to the default partition meanwhile
-- move into theirs.
CREATE FUNCTION audit.make_partitions(first DATE, months INTEGER) RETURNS SETOF TEXT AS $$
DECLARE
    since TIMESTAMPTZ;
    until TIMESTAMPTZ;
    name TEXT;
BEGIN
    -- One at a time: several processes look after the same audit.
    PERFORM pg_advisory_xact_lock(hashtext('mcp-memory'), hashtext('audit partitions'));
    FOR n IN 0 .. months - 1 LOOP
        since := (date_trunc('month', first::timestamp) + make_interval(months => n))
                 AT TIME ZONE 'UTC';
        until := (date_trunc('month', first::timestamp) + make_interval(months => n + 1))
                 AT TIME ZONE 'UTC';
        name := 'tool_calls_' || to_char(since AT TIME ZONE 'UTC', '"y"YYYY"m"MM');
        CONTINUE WHEN to_regclass('audit.' || name) IS NOT NULL;
        EXECUTE format('CREATE TABLE audit.%I (LIKE tool_calls INCLUDING ALL)', name);
        EXECUTE format(
            'WITH moved AS (DELETE FROM audit.tool_calls_default '
            'WHERE created_at >= $1 AND created_at < $2 RETURNING *) '
            'INSERT INTO audit.%I SELECT * FROM moved', name) USING since, until;
        EXECUTE format(
            'ALTER TABLE tool_calls ATTACH PARTITION audit.%I FOR VALUES FROM (%L) TO (%L)',
            name, since, until);
        RETURN NEXT name;
    END LOOP;
END;
$$ LANGUAGE plpgsql;

SELECT audit.make_partitions((now() AT TIME ZONE 'UTC')::date, 4);

CREATE FUNCTION audit.drop_partition(name TEXT) RETURNS VOID AS $$
BEGIN
    EXECUTE format('ALTER TABLE tool_calls DETACH PARTITION audit.%I', name);
    EXECUTE format('DROP TABLE audit.%I', name);
END;
$$ LANGUAGE plpgsql;
