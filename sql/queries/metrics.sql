-- name: metrics_of_work
-- What ended well is told by its extraction: a job that a backfill takes back changes as well, and
-- nothing has ended.
SELECT e.revisions_per_day, e.events_per_day, e.p95_seconds_to_events,
       coalesce(j.failed::float8 / nullif(e.revisions_per_day + j.failed, 0), 0) AS failure_rate
FROM (
    SELECT count(*) AS revisions_per_day, coalesce(sum(x.events), 0)::bigint AS events_per_day,
           percentile_cont(0.95) WITHIN GROUP (
               ORDER BY extract(epoch FROM x.finished_at - r.ingested_at)::float8)
               FILTER (WHERE x.generation = 1) AS p95_seconds_to_events
    FROM extraction x JOIN artifact_revision r USING (artifact_uid, revision_id)
    WHERE x.finished_at >= now() - interval '1 day'
) e, (
    SELECT count(*) AS failed FROM event_jobs
    WHERE status = 'FAILED' AND updated_at >= now() - interval '1 day'
) j;

-- name: metrics_of_calls
SELECT count(*) AS calls_per_day,
       coalesce(sum(prompt_tokens + completion_tokens), 0)::bigint AS tokens_per_day,
       coalesce(count(*) FILTER (WHERE outcome NOT IN ('ok', 'refusal'))::float8
                / nullif(count(*), 0), 0) AS call_failure_rate,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY latency_ms / 1000) AS p95_call_seconds
FROM model_call WHERE called_at >= now() - interval '1 day';

-- name: tokens_by_model
SELECT model, sum(prompt_tokens)::bigint AS prompt_tokens,
       sum(completion_tokens)::bigint AS completion_tokens
FROM model_call WHERE called_at >= now() - interval '1 day' GROUP BY model;

-- name: metrics_of_queue
-- A document waits from its ingest until it has events, also while it is retried. One that has
-- events already waits from the time it is due again; what a backfill asked for is in no hurry.
SELECT count(*) FILTER (WHERE status = 'PENDING') AS pending,
       count(*) FILTER (WHERE status = 'FAILED') AS failed,
       coalesce(max(extract(epoch FROM now() - CASE WHEN generation = 1 THEN created_at
                                                    ELSE least(next_run_at, now()) END))
                FILTER (WHERE status = 'PENDING'
                        AND backfill_id IS NULL),
                0)::float8 AS oldest_pending_seconds
FROM event_jobs;

-- name: any_job_done
SELECT EXISTS (SELECT 1 FROM event_jobs WHERE status = 'DONE') AS is_done;
