-- Every statement that changes a job. Reading is in queue_reading.sql. The view job_transition has
-- the steps that the database allows and records in the ledger; docs/jobs.md draws it.

-- fragment: as_a_new_request
-- Assignments to a job `j`; such a list can be neither a view nor a function. A run in flight loses
-- its lease, because the generation changes.
    status = 'PENDING', attempts = 0, generation = j.generation + 1, next_run_at = now(),
    locked_at = NULL, locked_by = NULL, last_error_code = NULL, last_error_message = NULL,
    origin = %(origin)s, requested_by = %(requested_by)s, trace_id = %(trace_id)s,
    priority = %(priority)s

-- name: insert_jobs
INSERT INTO event_jobs (job_id, artifact_uid, revision_id, max_attempts, backoff_policy, origin,
                        requested_by, trace_id, priority, idempotency_key)
SELECT n.id, n.uid, n.revision, %(max_attempts)s, %(backoff_policy)s, %(origin)s,
       %(requested_by)s, %(trace_id)s, %(priority)s, %(idempotency_key)s
FROM unnest(%(ids)s::uuid[], %(uids)s::text[], %(revisions)s::text[]) AS n (id, uid, revision);

-- name: ensure_jobs
-- A revision without a job (there should be none) gets one when its events are requested.
INSERT INTO event_jobs (artifact_uid, revision_id, max_attempts, origin, requested_by, trace_id,
                        priority)
SELECT artifact_uid, revision_id, coalesce(%(max_attempts)s::int, 5), %(origin)s,
       %(requested_by)s, %(trace_id)s, %(priority)s
FROM artifact_revision
WHERE partition_key = ANY(%(keys)s)
ON CONFLICT (artifact_uid, revision_id, job_type) DO NOTHING;

-- name: ensure_jobs_of_revisions
-- Without a job they could never be extracted again.
INSERT INTO event_jobs (artifact_uid, revision_id, max_attempts, backoff_policy, origin,
                        requested_by, trace_id, priority)
SELECT w.artifact_uid, w.revision_id, %(max_attempts)s, %(backoff_policy)s, %(origin)s,
       %(requested_by)s, %(trace_id)s, %(priority)s
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS w (artifact_uid, revision_id)
ON CONFLICT (artifact_uid, revision_id, job_type) DO NOTHING;

-- name: request_extraction
-- A new request, whatever the result of the last: a run in flight has read labels that are now out
-- of date.
INSERT INTO event_jobs AS j (artifact_uid, revision_id, max_attempts, backoff_policy, origin,
                             requested_by, trace_id, priority, idempotency_key)
SELECT n.uid, n.revision, %(max_attempts)s, %(backoff_policy)s, %(origin)s, %(requested_by)s,
       %(trace_id)s, %(priority)s, %(idempotency_key)s
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS n (uid, revision)
ORDER BY n.uid, n.revision
ON CONFLICT (artifact_uid, revision_id, job_type) DO UPDATE
SET
-- include: as_a_new_request
  , max_attempts = excluded.max_attempts, bypass_cache = false,
    idempotency_key = coalesce(excluded.idempotency_key, j.idempotency_key)
RETURNING artifact_uid, job_id, status AS job_status;

-- name: reset_job
UPDATE event_jobs j
SET
-- include: as_a_new_request
  , max_attempts = %(max_attempts)s, bypass_cache = %(bypass_cache)s
WHERE j.job_id = %(job_id)s;

-- name: reset_failed_jobs
-- The same for all failed jobs, or for those that failed with one code.
UPDATE event_jobs j
SET
-- include: as_a_new_request
  , bypass_cache = %(bypass_cache)s
WHERE j.status = 'FAILED' AND j.job_type = 'extract_events' AND j.tenant_id = current_tenant()
  AND (%(code)s::text IS NULL OR j.last_error_code = %(code)s
       OR starts_with(substring(j.last_error_message FROM 'Last cause: (.*)'), %(code)s || ':'))
RETURNING j.job_id, j.artifact_uid, j.revision_id, j.status;

-- name: reenqueue_revisions
-- Only jobs that are not open: an open job will replace the events anyway. Cached answers are
-- reused, because they are not what is broken.
UPDATE event_jobs j
SET
-- include: as_a_new_request
  , max_attempts = %(max_attempts)s, bypass_cache = false
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS w (artifact_uid, revision_id)
WHERE j.artifact_uid = w.artifact_uid AND j.revision_id = w.revision_id
  AND j.job_type = 'extract_events' AND j.status IN ('DONE', 'FAILED', 'CANCELED');

-- name: reopen_jobs
-- A person or a Dagster backfill requested these again: a new request, whatever the result of the
-- last. A job that a live run holds is left alone.
UPDATE event_jobs j
SET
-- include: as_a_new_request
  , bypass_cache = %(bypass_cache)s
FROM artifact_revision r
WHERE r.artifact_uid = j.artifact_uid AND r.revision_id = j.revision_id
  AND r.partition_key = ANY(%(keys)s) AND j.job_type = 'extract_events'
  AND (j.status <> 'PROCESSING' OR lease_expired(j, %(lease)s));

-- name: ask_again
-- A backfill's requests, in the given order: an earlier one is due earlier.
WITH wanted AS (
    SELECT * FROM unnest(%(job_ids)s::uuid[], %(tokens)s::bigint[]) WITH ORDINALITY
        AS w (job_id, tokens, position)
), asked AS (
    UPDATE event_jobs j
    SET status = 'PENDING', attempts = 0, generation = j.generation + 1, locked_at = NULL,
        locked_by = NULL, last_error_code = NULL, last_error_message = NULL, bypass_cache = false,
        origin = 'backfill', requested_by = %(requested_by)s, trace_id = %(trace_id)s,
        priority = 0, backfill_id = %(backfill_id)s, needs_extractor = %(extractor)s,
        needs_model = %(needs_model)s, needs_extract = %(extract)s, needs_merge = %(merge)s,
        next_run_at = now() - make_interval(
            secs => (cardinality(%(job_ids)s::uuid[]) - w.position) * 0.001)
    FROM wanted w
    -- The state before this statement: the update itself sees no other.
    JOIN event_jobs before ON before.job_id = w.job_id
    WHERE j.job_id = w.job_id AND j.status IN ('DONE', 'FAILED', 'CANCELED')
    RETURNING j.job_id, j.artifact_uid, j.revision_id, j.generation, w.tokens,
              jsonb_build_object(
                  'status', before.status, 'attempts', before.attempts,
                  'origin', before.origin, 'requested_by', before.requested_by,
                  'locked_by', before.locked_by, 'finished_at', before.finished_at,
                  'last_error_code', before.last_error_code,
                  'last_error_message', before.last_error_message) AS job_before
)
INSERT INTO backfill_item (backfill_id, artifact_uid, revision_id, job_id, generation,
                           estimated_tokens, job_before)
SELECT %(backfill_id)s, artifact_uid, revision_id, job_id, generation, tokens, job_before
FROM asked;

-- name: limit_attempts
-- The current setting also applies to older jobs. A job that a live run holds keeps the limit it
-- was claimed with.
UPDATE event_jobs j SET max_attempts = %(max_attempts)s
FROM artifact_revision r
WHERE r.artifact_uid = j.artifact_uid AND r.revision_id = j.revision_id
  AND r.partition_key = ANY(%(keys)s) AND j.job_type = 'extract_events'
  AND j.max_attempts <> %(max_attempts)s
  AND (j.status <> 'PROCESSING' OR lease_expired(j, %(lease)s));

-- name: end_hopeless_jobs
-- A document that kills its run every time must not be tried for ever; and a job that was canceled
-- while its run died is not tried again.
UPDATE event_jobs j
SET status = CASE WHEN j.cancel_requested_at IS NULL THEN 'FAILED' ELSE 'CANCELED' END,
    locked_at = NULL,
    last_error_code = CASE WHEN j.cancel_requested_at IS NULL THEN 'MAX_ATTEMPTS_EXCEEDED'
                           ELSE j.last_error_code END,
    last_error_message = CASE
        WHEN j.cancel_requested_at IS NULL
        THEN format('Gave up after %%s attempts. Last cause: %%s', j.attempts,
                    coalesce(j.last_error_message, 'the run died without a word'))
        ELSE j.last_error_message END
FROM artifact_revision r
WHERE r.artifact_uid = j.artifact_uid AND r.revision_id = j.revision_id
  AND r.partition_key = ANY(%(keys)s) AND j.job_type = 'extract_events'
  AND (j.attempts >= j.max_attempts OR j.cancel_requested_at IS NOT NULL)
  AND without_live_run(j, %(lease)s);

-- name: claim_jobs
-- Two runs never get the same job: rows that another run is claiming are skipped.
WITH due AS (
    SELECT j.job_id, r.partition_key, r.token_count,
           CASE WHEN j.status = 'PROCESSING' THEN j.locked_by END AS dead_run_id
    FROM event_jobs j
    JOIN artifact_revision r USING (artifact_uid, revision_id)
    WHERE r.partition_key = ANY(%(keys)s) AND j.job_type = 'extract_events'
      AND j.attempts < j.max_attempts
      AND ((j.status = 'PENDING' AND j.next_run_at <= now()) OR lease_expired(j, %(lease)s))
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
          j.generation, j.origin,
          CASE WHEN %(answers)s = 'stored' THEN 'stored' WHEN j.bypass_cache THEN 'new'
               ELSE 'known' END AS answers,
          j.locked_by AS run_id, due.token_count,
          j.requested_at, j.backoff_policy, j.trace_id, due.dead_run_id;

-- name: heartbeat_jobs
-- A job whose final transaction is running is locked. The others do not wait for it: no other run
-- can take it meanwhile, so it counts as held.
WITH free AS (
    SELECT job_id FROM event_jobs
    WHERE locked_by = %(run_id)s AND status = 'PROCESSING' AND job_id = ANY(%(job_ids)s)
    ORDER BY job_id
    FOR UPDATE SKIP LOCKED
), refreshed AS (
    UPDATE event_jobs j
    SET locked_at = now(),
        progress_at = CASE WHEN j.job_id = ANY(%(progressed)s) THEN now() ELSE j.progress_at END
    FROM free WHERE j.job_id = free.job_id
)
SELECT job_id, cancel_requested_at IS NOT NULL AS canceled FROM event_jobs
WHERE locked_by = %(run_id)s AND status = 'PROCESSING' AND job_id = ANY(%(job_ids)s);

-- name: hold_job
-- Only the holder of the lease may write; the row stays locked until the transaction ends.
SELECT cancel_requested_at IS NOT NULL AS canceled FROM event_jobs
WHERE job_id = %(job_id)s AND locked_by = %(run_id)s AND generation = %(generation)s
  AND status = 'PROCESSING'
FOR UPDATE;

-- name: complete_job
UPDATE event_jobs
SET status = 'DONE', locked_at = NULL, last_error_code = NULL, last_error_message = NULL,
    bypass_cache = false
WHERE job_id = %(job_id)s;

-- name: fail_job
-- A job that was to be canceled becomes CANCELED: there is no further attempt.
UPDATE event_jobs
SET status = CASE WHEN cancel_requested_at IS NULL THEN %(status)s ELSE 'CANCELED' END,
    locked_at = NULL, next_run_at = now() + make_interval(secs => %(wait)s),
    last_error_code = %(code)s, last_error_message = %(message)s
WHERE job_id = %(job_id)s AND locked_by = %(run_id)s AND generation = %(generation)s
  AND status = 'PROCESSING'
RETURNING status;

-- name: release_jobs
-- The jobs of a dead run are due again at once.
UPDATE event_jobs
SET status = CASE WHEN cancel_requested_at IS NULL THEN 'PENDING' ELSE 'CANCELED' END,
    locked_at = NULL, next_run_at = now(),
    last_error_code = %(code)s, last_error_message = %(message)s
WHERE locked_by = %(run_id)s AND status = 'PROCESSING'
RETURNING job_id, artifact_uid, revision_id, status;

-- name: release_abandoned_jobs
UPDATE event_jobs
SET status = CASE WHEN cancel_requested_at IS NULL THEN 'PENDING' ELSE 'CANCELED' END,
    locked_at = NULL, next_run_at = now()
WHERE status = 'PROCESSING'
  AND (locked_at IS NULL OR locked_at < now() - make_interval(secs => %(lease)s));

-- name: act_as
-- The acting user, for the ledger, until the end of the transaction.
SELECT set_config('memory.actor', coalesce(%(who)s, ''), true);

-- name: cancel_job
-- At once if no live run holds the job; otherwise at the next safe point of its run.
UPDATE event_jobs j
SET status = CASE WHEN without_live_run(j, %(lease)s) THEN 'CANCELED' ELSE j.status END,
    locked_at = CASE WHEN without_live_run(j, %(lease)s) THEN NULL ELSE j.locked_at END,
    cancel_requested_at = coalesce(j.cancel_requested_at, now())
WHERE j.job_id = %(job_id)s AND j.status IN ('PENDING', 'PROCESSING')
  AND j.tenant_id = current_tenant()
RETURNING j.status;

-- name: cancel_held_job
-- By its own run, when all work on it has stopped.
UPDATE event_jobs SET status = 'CANCELED', locked_at = NULL
WHERE job_id = %(job_id)s AND locked_by = %(run_id)s AND generation = %(generation)s
  AND status = 'PROCESSING' AND cancel_requested_at IS NOT NULL;

-- name: withdraw_waiting
-- Waiting jobs of stopped backfills return to their earlier state. A job that a live run holds is
-- left to it, because it is paid for.
WITH waiting AS (
    SELECT i.backfill_id, i.job_id, i.job_before
    FROM event_jobs j
    JOIN backfill b ON b.backfill_id = j.backfill_id
    JOIN backfill_item i ON i.backfill_id = j.backfill_id AND i.artifact_uid = j.artifact_uid
                        AND i.revision_id = j.revision_id AND i.generation = j.generation
    WHERE b.status IN ('PAUSED', 'CANCELLED')
      AND without_live_run(j, %(lease)s)
    ORDER BY j.job_id
    FOR UPDATE OF j
), put_back AS (
    UPDATE event_jobs j
    SET status = w.job_before ->> 'status', attempts = (w.job_before ->> 'attempts')::int,
        -- An item from before the ledger has its origin under the old name.
        origin = coalesce(w.job_before ->> 'origin', w.job_before ->> 'requested_by'),
        requested_by = CASE WHEN w.job_before ? 'origin' THEN w.job_before ->> 'requested_by' END,
        finished_at = (w.job_before ->> 'finished_at')::timestamptz, locked_at = NULL,
        locked_by = w.job_before ->> 'locked_by',
        last_error_code = w.job_before ->> 'last_error_code',
        last_error_message = w.job_before ->> 'last_error_message',
        backfill_id = NULL, needs_extractor = NULL, needs_model = NULL, needs_extract = 0,
        needs_merge = 0
    FROM waiting w WHERE j.job_id = w.job_id
    RETURNING w.backfill_id, j.job_id
)
DELETE FROM backfill_item i USING put_back p
WHERE i.backfill_id = p.backfill_id AND i.job_id = p.job_id;

-- name: forget_failed
-- Failed revisions may be requested once more.
WITH failed AS (
    SELECT i.job_id, i.generation FROM backfill_item i
    JOIN event_jobs j ON j.job_id = i.job_id AND j.generation = i.generation
    WHERE i.backfill_id = %(backfill_id)s AND j.status = 'FAILED'
    FOR UPDATE OF j
), freed AS (
    UPDATE event_jobs j SET backfill_id = NULL FROM failed f WHERE j.job_id = f.job_id
)
DELETE FROM backfill_item i USING failed f
WHERE i.backfill_id = %(backfill_id)s AND i.job_id = f.job_id;

-- name: delete_jobs_of_artifact
-- With their history, and the stored answers of idempotency keys.
WITH answers AS (DELETE FROM idempotent_request WHERE artifact_uid = %(uid)s)
DELETE FROM event_jobs WHERE artifact_uid = %(uid)s;
