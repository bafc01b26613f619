-- Queries about jobs. None of them changes a job.

-- fragment: within_reach
-- Jobs (alias j) that this deployment may work on. A backfill's job is for deployments that are new
-- enough (and of its model, if it names one), and is due only while the backfill runs: a job that a
-- dead run released after a pause is left alone. Events of a newer prompt are left to a deployment
-- that has it, unless a person asked this deployment. Without versions, all jobs qualify. It stays
-- text: a function with subqueries is called for each row, and a view of jobs cannot be locked
-- together with the conditions on their status.
      (%(extractor)s::text IS NULL OR (
           (j.needs_extractor IS NULL
            OR (j.needs_extractor = %(extractor)s AND j.needs_extract <= %(extract)s
                AND j.needs_merge <= %(merge)s))
       AND (j.needs_model IS NULL OR j.needs_model = %(model)s)
       AND (%(by_hand)s OR NOT EXISTS (
               SELECT 1 FROM extraction x
               WHERE x.artifact_uid = j.artifact_uid AND x.revision_id = j.revision_id
                 AND x.extractor = %(extractor)s
                 AND (x.extract_number > %(extract)s OR x.merge_number > %(merge)s)))))
  AND NOT EXISTS (SELECT 1 FROM backfill b
                  WHERE b.backfill_id = j.backfill_id AND b.status IN ('PAUSED', 'CANCELLED'))

-- name: tenants_in_queue
SELECT t.tenant_id FROM tenant t
WHERE EXISTS (SELECT 1 FROM event_jobs j
              WHERE j.tenant_id = t.tenant_id AND j.status = 'PENDING');

-- name: claimable_jobs
-- Due jobs, and jobs whose run has shown no sign of life for a whole lease, each with the run that
-- was requested for this attempt, if any. Tenants take turns; within a tenant the earlier turn
-- comes first (see turn_at); one of ten places is for a backfill. It only reads. Each part stops at
-- its share, by an index in that order, so the length of the queue does not matter.
WITH fresh AS (
    SELECT f.*, row_number() OVER (PARTITION BY f.tenant_id ORDER BY f.turn_at, f.job_id) AS round
    FROM unnest(%(tenants)s::uuid[]) AS t (tenant_id)
    CROSS JOIN LATERAL (
        SELECT j.* FROM event_jobs j
        WHERE j.tenant_id = t.tenant_id AND j.status = 'PENDING' AND j.backfill_id IS NULL
          AND j.job_type = 'extract_events'
          AND j.next_run_at <= coalesce(%(now)s::timestamptz, now())
          AND
-- include: within_reach
    ORDER BY j.turn_at, j.job_id
    LIMIT %(share)s
    ) f
    UNION ALL
    (SELECT j.*, 0 AS round FROM event_jobs j
     WHERE j.job_type = 'extract_events' AND j.status = 'PROCESSING'
       AND j.locked_at < now() - make_interval(secs => %(lease)s)
       AND
-- include: within_reach
     ORDER BY j.locked_at, j.job_id
     LIMIT %(limit)s)
), later AS (
    SELECT f.*, row_number() OVER (PARTITION BY f.tenant_id ORDER BY f.turn_at, f.job_id) AS round
    FROM unnest(%(tenants)s::uuid[]) AS t (tenant_id)
    CROSS JOIN LATERAL (
        SELECT j.* FROM event_jobs j
        WHERE j.tenant_id = t.tenant_id AND j.status = 'PENDING' AND j.backfill_id IS NOT NULL
          AND j.job_type = 'extract_events'
          AND j.next_run_at <= coalesce(%(now)s::timestamptz, now())
          AND
-- include: within_reach
    ORDER BY j.turn_at, j.job_id
    LIMIT %(share)s
    ) f
), due AS (
    SELECT *, row_number() OVER (ORDER BY round, turn_at, job_id) AS place FROM fresh
    UNION ALL
    SELECT *, 10 * row_number() OVER (ORDER BY round, turn_at, job_id) AS place FROM later
)
SELECT j.job_id, j.tenant_id, j.generation, j.attempts, j.last_error_code, r.partition_key,
       r.artifact_uid, j.backfill_id, j.priority, j.trace_id, q.run_key, extract(epoch FROM now() - q.requested_at)::float8 AS requested_seconds_ago
FROM (SELECT * FROM due ORDER BY place, backfill_id IS NOT NULL LIMIT %(limit)s) j
JOIN artifact_revision r USING (artifact_uid, revision_id)
LEFT JOIN job_request q ON q.job_id = j.job_id AND q.generation = j.generation
                       AND q.attempts = j.attempts
ORDER BY j.place, j.backfill_id IS NOT NULL;

-- name: fresh_jobs_waiting
-- Fresh jobs that users wait for and that this deployment can do. A failed job that waits for its
-- next attempt does not count: it may wait for hours.
SELECT count(*) AS jobs FROM (
    SELECT 1 FROM event_jobs j
    WHERE j.status = 'PENDING' AND j.next_run_at <= now() AND j.backfill_id IS NULL
      AND
    -- include: within_reach
    LIMIT 1000) AS due;

-- name: remember_requests
-- The run that was requested for each attempt. A job that is gone meanwhile is left out, and none
-- can be deleted while this is written.
INSERT INTO job_request (job_id, generation, attempts, run_key)
SELECT j.job_id, asked.generation, asked.attempts, asked.run_key
FROM unnest(%(job_ids)s::uuid[], %(generations)s::int[], %(attempts)s::int[], %(run_keys)s::text[])
     AS asked (job_id, generation, attempts, run_key)
JOIN event_jobs j ON j.job_id = asked.job_id
FOR KEY SHARE OF j
ON CONFLICT (job_id) DO UPDATE
SET generation = EXCLUDED.generation, attempts = EXCLUDED.attempts, run_key = EXCLUDED.run_key,
    requested_at = now();

-- name: forget_requests
-- A claimed job is in the hands of its run.
DELETE FROM job_request WHERE job_id = ANY(%(job_ids)s::uuid[]);

-- name: tell_of_waiting_jobs
-- A run has claimed its jobs: jobs that waited for it to begin may get a run now.
SELECT pg_notify('event_jobs', '')
WHERE EXISTS (SELECT 1 FROM event_jobs j LEFT JOIN job_request q ON q.job_id = j.job_id
              WHERE j.status = 'PENDING' AND j.next_run_at <= now() AND q.job_id IS NULL);

-- name: silent_runs
-- Those of these runs that gave no sign of life for a whole lease: no claim, no heartbeat, no end
-- of a job.
SELECT run_id FROM unnest(%(run_ids)s::text[]) AS run_id
WHERE NOT EXISTS (
    SELECT 1 FROM event_jobs j
    WHERE j.locked_by = run_id AND j.updated_at >= now() - make_interval(secs => %(lease)s));

-- name: stuck_runs
-- Runs that send heartbeats although none of their jobs has progressed for this long.
SELECT locked_by AS run_id, count(*) AS jobs,
       extract(epoch FROM now() - max(progress_at))::float8 AS seconds
FROM event_jobs
WHERE status = 'PROCESSING' AND locked_by IS NOT NULL
GROUP BY locked_by
HAVING max(progress_at) < now() - make_interval(secs => %(seconds)s)
   AND max(locked_at) >= now() - make_interval(secs => %(lease)s)
ORDER BY locked_by;

-- name: stored_by_run
-- Revisions whose stored events are from this run.
SELECT r.partition_key, e.events
FROM extraction e JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE e.run_id = %(run_id)s;

-- name: job_of_revision
SELECT d.*
FROM job_details d
JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE d.artifact_uid = %(uid)s
  AND CASE WHEN %(revision)s::text IS NULL THEN r.is_latest
           ELSE d.revision_id = %(revision)s END;

-- name: job_by_id
SELECT d.* FROM job_details d WHERE d.job_id = %(job_id)s;

-- name: status_of_job
SELECT status FROM event_jobs WHERE job_id = %(job_id)s;

-- name: lock_job_of_revision
SELECT job_id FROM event_jobs
WHERE artifact_uid = %(uid)s AND revision_id = %(revision)s AND job_type = 'extract_events'
FOR UPDATE;

-- name: job_history
-- The last transitions of a job, oldest first.
SELECT ts, prev_status, next_status, coalesce(detail, '{}') AS detail FROM (
    SELECT id, ts, prev_status, next_status, detail FROM job_event
    WHERE job_id = %(job_id)s ORDER BY ts DESC, id DESC LIMIT %(limit)s
) AS last ORDER BY id;

-- name: list_jobs
SELECT j.job_id, j.status, j.attempts, j.max_attempts, j.last_error_code, j.last_error_message,
       j.updated_at, j.origin, j.artifact_uid, j.revision_id, r.title
FROM (
    SELECT * FROM event_jobs j
    WHERE %(status)s::text IS NULL OR j.status = %(status)s
    ORDER BY j.updated_at DESC, j.job_id
    LIMIT %(limit)s
) j
LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
ORDER BY j.updated_at DESC, j.job_id;

-- name: page_of_jobs
-- The newest first: of one state, or all.
SELECT j.job_id::text AS job_id, j.artifact_uid, j.revision_id, r.title, j.status, j.attempts,
       j.max_attempts, j.priority, j.origin, j.requested_by, j.created_at, j.finished_at, j.last_error_code,
       j.last_error_message
FROM (
    SELECT * FROM event_jobs j
    WHERE j.tenant_id = current_tenant() AND (%(status)s::text IS NULL OR j.status = %(status)s)
      AND (%(before)s::timestamptz IS NULL
           OR (j.created_at, j.job_id) < (%(before)s, %(before_id)s))
    ORDER BY j.created_at DESC, j.job_id DESC
    LIMIT %(limit)s
) j
LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
ORDER BY j.created_at DESC, j.job_id DESC;

-- name: count_jobs_by_status
SELECT status, count(*) AS jobs FROM event_jobs GROUP BY status;
