-- name: record_tool_calls
-- A batch of calls, of any tenants. Not waited for on disk: a crash of Postgres itself may lose the
-- last moments of the audit, as a crash of the caller may.
WITH fast AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO tool_calls (
    task_id, tenant_id, principal, kind, transport, trace_id, span_id, parent_span_id, tool_name,
    parameters, result, error, tokens_used, cost_dollars, latency_ms, created_at, completed_at
)
SELECT c.task_id, c.tenant_id, c.principal, c.kind, c.transport, c.trace_id, c.span_id,
       c.parent_span_id, c.tool_name, c.parameters, c.result, c.error, c.tokens_used,
       c.cost_dollars, c.latency_ms, c.created_at, c.completed_at
FROM fast, jsonb_to_recordset(%(calls)s::text::jsonb) AS c (
    task_id uuid, tenant_id uuid, principal text, kind text, transport text, trace_id text,
    span_id text, parent_span_id text, tool_name text, parameters jsonb, result jsonb, error text,
    tokens_used int, cost_dollars numeric, latency_ms int, created_at timestamptz,
    completed_at timestamptz
);

-- name: missing_audit_partitions
SELECT count(*) FILTER (WHERE to_regclass(
           'audit.tool_calls_' || to_char(month, '"y"YYYY"m"MM')) IS NULL) AS missing
FROM generate_series(date_trunc('month', %(first)s::date::timestamp),
                     date_trunc('month', %(first)s::date::timestamp)
                     + make_interval(months => %(months)s::int - 1), interval '1 month') AS m (month);

-- name: make_audit_partitions
SELECT name FROM audit.make_partitions(%(first)s::date, %(months)s::int) AS made (name);

-- name: old_audit_partitions
-- Those whose last call was made before the given moment, oldest first.
SELECT c.relname AS name
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
CROSS JOIN LATERAL (SELECT to_timestamp(substring(c.relname FROM 'y(\d+m\d+)$'), 'YYYY"m"MM')
                           AT TIME ZONE current_setting('TimeZone') AS month) m
WHERE i.inhparent = 'tool_calls'::regclass AND c.relname <> 'tool_calls_default'
  AND (m.month + interval '1 month') AT TIME ZONE 'UTC' <= %(before)s
ORDER BY m.month;

-- name: drop_audit_partition
SELECT audit.drop_partition(%(name)s);

-- name: forget_in_audit
-- Of the calls that stored or named a document: hashes of texts go, ids and lengths stay. While its
-- jobs are there: calls that stored it are known by them.
UPDATE tool_calls c
SET parameters = (SELECT jsonb_object_agg(p.key, CASE WHEN jsonb_typeof(p.value) = 'object'
                                                      THEN p.value - 'sha256' ELSE p.value END)
                  FROM jsonb_each(c.parameters) p)
WHERE c.parameters <> '{}'
  AND (c.task_id = ANY (ARRAY(SELECT job_id FROM event_jobs WHERE artifact_uid = %(uid)s))
       OR c.parameters @> jsonb_build_object('artifact_uid', %(uid)s::text));
