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
       x.events, x.chunks, x.cache_hits,
       ARRAY(SELECT coalesce(r ->> 'reason', 'unknown')
             FROM jsonb_array_elements(x.rejections) r) AS rejections
FROM extraction x
WHERE x.finished_at > %(after)s AND x.finished_at < now() - make_interval(secs => %(delay)s)
ORDER BY x.finished_at;
