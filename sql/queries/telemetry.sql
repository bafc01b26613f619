-- What /metrics shows. Nothing here reads more than what waits, or what came since the last look.

-- name: jobs_by_status
-- Those that are done are the bulk of the table: estimated from its statistics.
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
-- How long the request waits that waits longest, without those of backfills.
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
-- From where counting begins in a process that has just started.
SELECT coalesce((SELECT max(id) FROM job_event), 0) AS job_event,
       coalesce((SELECT max(call_id) FROM model_call), 0) AS model_call,
       now() AS extraction;

-- name: job_transitions_since
-- Rows become visible in another order than their numbers: the last seconds wait for the next look.
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
-- belongs to the trace of the last request; its calls say which it belonged to before.
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
-- `called_at` is when it was written down: it ended before that.
SELECT job_id, run_id, attempt, chunk_index, kind, model, outcome, prompt_tokens,
       completion_tokens, latency_ms / 1000 AS seconds, called_at
FROM model_call
WHERE job_id = ANY (%(job_ids)s::uuid[])
ORDER BY call_id;

-- name: spans_that_asked
-- The span of the call that made a job, by its trace: from the change that it made in the same
-- transaction, else from the audit.
SELECT t.trace_id, coalesce(
    (SELECT e.span_id FROM log.events e
     WHERE e.trace_id = t.trace_id AND e.span_id IS NOT NULL LIMIT 1),
    (SELECT c.span_id FROM tool_calls c
     WHERE c.trace_id = t.trace_id AND c.kind = 'tool' LIMIT 1)) AS span_id
FROM unnest(%(trace_ids)s::text[]) AS t (trace_id);
