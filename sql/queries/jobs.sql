-- fragment: within_reach
-- What may be worked on here. A job of a backfill is for deployments that are new enough, of its
-- model where it names one, and due only while the backfill goes on: what a dead run gives back
-- after a pause is nobody's. What a newer prompt made is left to whoever has that prompt, unless a
-- person asked this very deployment. Nothing is known of ours: all are.
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

-- fragment: in_working_order
-- The order in which jobs are worked on; those of backfills are kept apart by their callers.
ORDER BY j.next_run_at, j.created_at, j.job_id
LIMIT %(limit)s

-- name: claimable_jobs
-- Due jobs, and jobs whose run has not shown a sign of life for a whole lease; those of backfills
-- after all others, with the run that was asked for this very attempt, if one was. Reads only. Each
-- part stops at the limit, by an index in that order: the length of the queue does not matter.
WITH due AS (
    (SELECT j.* FROM event_jobs j
     WHERE j.job_type = 'extract_events' AND j.status = 'PENDING' AND j.next_run_at <= now()
       AND j.backfill_id IS NULL
       AND
-- include: within_reach
-- include: in_working_order
    )
    UNION ALL
    (SELECT j.* FROM event_jobs j
     WHERE j.job_type = 'extract_events' AND j.status = 'PENDING' AND j.next_run_at <= now()
       AND j.backfill_id IS NOT NULL
       AND
-- include: within_reach
-- include: in_working_order
    )
    UNION ALL
    (SELECT j.* FROM event_jobs j
     WHERE j.job_type = 'extract_events' AND j.status = 'PROCESSING'
       AND j.locked_at < now() - make_interval(secs => %(lease)s)
       AND
-- include: within_reach
-- include: in_working_order
    )
)
SELECT j.job_id, j.generation, j.attempts, j.last_error_code, r.partition_key,
       r.artifact_uid, r.revision_id, j.next_run_at, j.backfill_id,
       q.run_key, extract(epoch FROM now() - q.requested_at)::float8 AS requested_seconds_ago
FROM due j
JOIN artifact_revision r USING (artifact_uid, revision_id)
LEFT JOIN job_request q ON q.job_id = j.job_id AND q.generation = j.generation
                       AND q.attempts = j.attempts
ORDER BY j.backfill_id IS NOT NULL, j.next_run_at, j.created_at, j.job_id
LIMIT %(limit)s;

-- name: limit_attempts
-- What the settings say now counts also for jobs from before. What a live run works on keeps the
-- limit it was claimed with.
UPDATE event_jobs j SET max_attempts = %(max_attempts)s
FROM artifact_revision r
WHERE r.artifact_uid = j.artifact_uid AND r.revision_id = j.revision_id
  AND r.partition_key = ANY(%(keys)s) AND j.job_type = 'extract_events'
  AND j.max_attempts <> %(max_attempts)s
  AND NOT (j.status = 'PROCESSING'
           AND j.locked_at >= now() - make_interval(secs => %(lease)s));

-- name: remember_requests
-- Which run was asked for which attempt. A job that is gone meanwhile is left out, and none goes
-- while this is written.
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
-- A run has claimed its jobs: others that waited for it to begin may have theirs.
SELECT pg_notify('event_jobs', '')
WHERE EXISTS (SELECT 1 FROM event_jobs j LEFT JOIN job_request q ON q.job_id = j.job_id
              WHERE j.status = 'PENDING' AND j.next_run_at <= now() AND q.job_id IS NULL);

-- name: next_look_at_jobs
-- In how many seconds a job is due: now while one is being worked on, since its run may die; NULL
-- when none is open.
SELECT extract(epoch FROM min(at) - now())::float8 AS seconds
FROM ((SELECT next_run_at AS at FROM event_jobs
       WHERE status = 'PENDING' ORDER BY next_run_at LIMIT 1)
      UNION ALL
      (SELECT now() FROM event_jobs WHERE status = 'PROCESSING' LIMIT 1)) AS open;

-- name: listen_for_jobs
LISTEN event_jobs;

-- name: listen_for_runs
LISTEN dagster_runs;

-- name: fail_exhausted_jobs
-- A document that kills its run every time must not be tried for ever.
UPDATE event_jobs j
SET status = 'FAILED', locked_at = NULL,
    last_error_code = 'MAX_ATTEMPTS_EXCEEDED',
    last_error_message = format('Gave up after %%s attempts. Last cause: %%s', j.attempts,
                                coalesce(j.last_error_message, 'the run died without a word'))
FROM artifact_revision r
WHERE r.artifact_uid = j.artifact_uid AND r.revision_id = j.revision_id
  AND r.partition_key = ANY(%(keys)s) AND j.job_type = 'extract_events'
  AND j.attempts >= j.max_attempts
  AND (j.status = 'PENDING'
       OR (j.status = 'PROCESSING' AND j.locked_at < now() - make_interval(secs => %(lease)s)));

-- name: ensure_jobs
-- A revision without a job (there should be none) gets one when somebody asks for its events.
INSERT INTO event_jobs (artifact_uid, revision_id, max_attempts, requested_by)
SELECT artifact_uid, revision_id, coalesce(%(max_attempts)s::int, 5), %(requested_by)s
FROM artifact_revision
WHERE partition_key = ANY(%(keys)s)
ON CONFLICT (artifact_uid, revision_id, job_type) DO NOTHING;

-- name: reopen_jobs
-- Somebody asked for these again: a new request, whatever became of the last. What a live run
-- works on is left alone.
UPDATE event_jobs j
SET status = 'PENDING', attempts = 0, generation = j.generation + 1, next_run_at = now(),
    locked_at = NULL, locked_by = NULL, requested_by = %(requested_by)s,
    bypass_cache = %(fresh)s
FROM artifact_revision r
WHERE r.artifact_uid = j.artifact_uid AND r.revision_id = j.revision_id
  AND r.partition_key = ANY(%(keys)s) AND j.job_type = 'extract_events'
  AND NOT (j.status = 'PROCESSING'
           AND j.locked_at >= now() - make_interval(secs => %(lease)s));

-- name: claim_jobs
-- Two runs never get the same job: rows another run is claiming are skipped.
WITH due AS (
    SELECT j.job_id, r.partition_key, r.token_count,
           CASE WHEN j.status = 'PROCESSING' THEN j.locked_by END AS dead_run_id
    FROM event_jobs j
    JOIN artifact_revision r USING (artifact_uid, revision_id)
    WHERE r.partition_key = ANY(%(keys)s) AND j.job_type = 'extract_events'
      AND j.attempts < j.max_attempts
      AND ((j.status = 'PENDING' AND j.next_run_at <= now())
           OR (j.status = 'PROCESSING'
               AND j.locked_at < now() - make_interval(secs => %(lease)s)))
      AND
    -- include: within_reach
    ORDER BY j.job_id
    FOR UPDATE OF j SKIP LOCKED
)
UPDATE event_jobs j
SET status = 'PROCESSING', locked_at = now(), locked_by = %(run_id)s, attempts = j.attempts + 1
FROM due
WHERE j.job_id = due.job_id
RETURNING j.job_id, j.artifact_uid, j.revision_id, due.partition_key, j.attempts, j.max_attempts,
          j.generation, j.requested_by, j.requested_at, j.bypass_cache, due.token_count,
          due.dead_run_id;

-- name: heartbeat_jobs
-- A job whose last transaction is under way is locked: the others do not wait for it. Nobody can
-- take it meanwhile, and it counts as held.
WITH free AS (
    SELECT job_id FROM event_jobs
    WHERE locked_by = %(run_id)s AND status = 'PROCESSING' AND job_id = ANY(%(job_ids)s)
    ORDER BY job_id
    FOR UPDATE SKIP LOCKED
), refreshed AS (
    UPDATE event_jobs j SET locked_at = now() FROM free WHERE j.job_id = free.job_id
)
SELECT job_id FROM event_jobs
WHERE locked_by = %(run_id)s AND status = 'PROCESSING' AND job_id = ANY(%(job_ids)s);

-- name: hold_job
-- Only the holder of the lease may write; the row stays locked until the transaction ends.
SELECT job_id FROM event_jobs
WHERE job_id = %(job_id)s AND locked_by = %(run_id)s AND generation = %(generation)s
  AND status = 'PROCESSING'
FOR UPDATE;

-- name: complete_job
UPDATE event_jobs
SET status = 'DONE', locked_at = NULL, last_error_code = NULL, last_error_message = NULL,
    bypass_cache = false
WHERE job_id = %(job_id)s;

-- name: fail_job
UPDATE event_jobs
SET status = %(status)s, locked_at = NULL,
    next_run_at = now() + make_interval(secs => %(wait)s),
    last_error_code = %(code)s, last_error_message = %(message)s
WHERE job_id = %(job_id)s AND locked_by = %(run_id)s AND generation = %(generation)s
  AND status = 'PROCESSING'
RETURNING status;

-- name: silent_runs
-- Of these runs, those that gave no sign of life for a whole lease: no claim, no heartbeat, no end
-- of a job.
SELECT run_id FROM unnest(%(run_ids)s::text[]) AS run_id
WHERE NOT EXISTS (
    SELECT 1 FROM event_jobs j
    WHERE j.locked_by = run_id AND j.updated_at >= now() - make_interval(secs => %(lease)s));

-- name: stored_by_run
-- Revisions whose events are those that this run stored.
SELECT r.partition_key, e.events
FROM extraction e JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE e.run_id = %(run_id)s;

-- name: release_jobs
-- What a dead run held is due again at once.
UPDATE event_jobs
SET status = 'PENDING', locked_at = NULL, next_run_at = now(),
    last_error_code = %(code)s, last_error_message = %(message)s
WHERE locked_by = %(run_id)s AND status = 'PROCESSING'
RETURNING job_id, artifact_uid, revision_id, attempts;

-- name: extraction_progress
-- Documents by what became of their latest revision's job. A job that was given up names its last
-- cause: that is what a person has to mend.
SELECT coalesce(j.status, 'NONE') AS status, c.code, count(*) AS documents,
       min(j.last_error_message) AS message
FROM artifact_revision r
LEFT JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                      AND j.job_type = 'extract_events'
CROSS JOIN LATERAL (
    SELECT CASE WHEN j.status IN ('PENDING', 'FAILED')
                THEN coalesce(substring(j.last_error_message FROM 'Last cause: ([A-Z_]+): '),
                              j.last_error_code) END AS code
) c
WHERE r.is_latest AND (%(uid)s::text IS NULL OR r.artifact_uid = %(uid)s)
GROUP BY 1, 2
ORDER BY documents DESC, 1, 2;
