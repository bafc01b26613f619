-- Metrics, traces and the audit. Queries of /metrics read only what is waiting, or what came since
-- the last read.

-- name: jobs_by_status
-- Done jobs are most of the table, so their number is estimated from its statistics.
WITH counted AS MATERIALIZED (
    SELECT s.status, (SELECT count(*) FROM event_jobs j WHERE j.status = s.status) AS jobs
    FROM (VALUES ('PENDING'), ('PROCESSING'), ('FAILED'), ('CANCELED')) AS s (status)
)
SELECT status, jobs FROM counted
UNION ALL
SELECT 'DONE', greatest(0, (SELECT reltuples FROM pg_class
                            WHERE oid = 'event_jobs'::regclass)::bigint
                           - (SELECT sum(jobs) FROM counted))::bigint;

-- name: oldest_pending_job
-- How long the oldest request has waited, without those of backfills.
SELECT extract(epoch FROM now() - min(requested_at))::float8 AS seconds FROM event_jobs
WHERE status = 'PENDING' AND backfill_id IS NULL;

-- name: outbox_by_status
SELECT 'pending' AS status, count(*) AS messages,
       extract(epoch FROM now() - min(created_at))::float8 AS oldest_seconds
FROM log.event_outbox WHERE status = 'pending'
UNION ALL
SELECT 'failed', count(*), extract(epoch FROM now() - min(created_at))::float8
FROM log.event_outbox WHERE status = 'failed';

-- name: telemetry_positions
-- Where counting begins in a process that has just started.
SELECT coalesce((SELECT max(id) FROM job_event), 0) AS job_event,
       coalesce((SELECT max(call_id) FROM model_call), 0) AS model_call,
       now() AS extraction;

-- name: job_transitions_since
-- Rows become visible in another order than their numbers, so the last seconds wait for the next
-- read.
SELECT coalesce(e.prev_status, 'NONE') AS prev_status, e.next_status,
       coalesce(e.detail ->> 'error', '') AS error, count(*) AS transitions,
       max(e.id) AS position
FROM job_event e
WHERE e.id > %(after)s AND e.ts < now() - make_interval(secs => %(delay)s)
GROUP BY 1, 2, 3;

-- name: model_calls_since
SELECT kind, model, outcome, count(*) AS calls,
       sum(prompt_tokens)::bigint AS prompt_tokens,
       sum(completion_tokens)::bigint AS completion_tokens,
       sum(cached_tokens)::bigint AS cached_tokens,
       max(call_id) AS position,
       array_agg((latency_ms / 1000)::float8) AS latencies
FROM model_call
WHERE call_id > %(after)s AND called_at < now() - make_interval(secs => %(delay)s)
GROUP BY kind, model, outcome;

-- name: extractions_since
SELECT x.extractor, x.finished_at,
       (SELECT coalesce(sum(s.value::float8), 0) FROM jsonb_each_text(x.seconds) s) AS seconds,
       x.events,
       ARRAY(SELECT coalesce(r ->> 'reason', 'unknown')
             FROM jsonb_array_elements(x.rejections) r) AS rejections
FROM extraction x
WHERE x.finished_at > %(after)s AND x.finished_at < now() - make_interval(secs => %(delay)s)
ORDER BY x.finished_at;

-- name: known_trace
SELECT EXISTS (SELECT 1 FROM tool_calls WHERE trace_id = %(trace_id)s)
    OR EXISTS (SELECT 1 FROM event_jobs WHERE trace_id = %(trace_id)s)
    OR EXISTS (SELECT 1 FROM model_call WHERE trace_id = %(trace_id)s)
    OR EXISTS (SELECT 1 FROM log.events WHERE trace_id = %(trace_id)s) AS known;

-- name: traced_jobs
-- The jobs of a trace, of a document or of an id, oldest first. A job that was requested again
-- belongs to the trace of the last request; its calls have the earlier one.
SELECT j.job_id, j.artifact_uid, j.revision_id, j.status, j.requested_by, j.trace_id,
       j.requested_at, j.started_at, j.finished_at, j.last_error_code, r.title
FROM event_jobs j
JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE j.job_id IN (
    SELECT t.job_id FROM event_jobs t WHERE t.trace_id = %(trace_id)s
    UNION SELECT m.job_id FROM model_call m WHERE m.trace_id = %(trace_id)s
    UNION SELECT d.job_id FROM event_jobs d WHERE d.artifact_uid = %(artifact_uid)s
    UNION SELECT %(job_id)s::uuid)
ORDER BY j.requested_at, j.job_id
LIMIT %(limit)s;

-- name: traced_calls
SELECT task_id, principal, transport, trace_id, span_id, parent_span_id, tool_name, error,
       tokens_used, cost_dollars::float8 AS cost_dollars, created_at,
       extract(epoch FROM completed_at - created_at)::float8 AS seconds
FROM tool_calls
WHERE trace_id = ANY (%(trace_ids)s::text[])
ORDER BY created_at
LIMIT %(limit)s;

-- name: traced_transitions
SELECT job_id, ts, next_status, detail FROM job_event
WHERE job_id = ANY (%(job_ids)s::uuid[])
ORDER BY id;

-- name: traced_model_calls
-- `called_at` is when the call was recorded, which is after its end.
SELECT job_id, run_id, attempt, chunk_index, kind, model, outcome, prompt_tokens,
       completion_tokens, latency_ms / 1000 AS seconds, called_at
FROM model_call
WHERE job_id = ANY (%(job_ids)s::uuid[])
ORDER BY call_id;

-- name: record_tool_calls
-- A batch of calls, of any tenants. The commit does not wait for the disk: a crash of Postgres
-- itself may lose the last moments of the audit, as a crash of the caller may.
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
-- Partitions whose last call was made before the given moment, oldest first.
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
