-- What a newer prompt renews, its cost, and trials.

-- fragment: outdated
-- The revisions that a backfill of this scope renews.
outdated_revisions(%(extractor)s, %(model)s, %(extract)s, %(merge)s, %(other_models)s,
                   %(artifact_uid)s, %(source_system)s, %(artifact_type)s, %(time_from)s,
                   %(time_to)s, %(category)s)

-- fragment: backfill_columns
backfill_id, status, filter, other_models, extractor, model, extract_version, merge_version,
requested_by, estimate, reason, last_tick_at, last_tick, created_at, finished_at

-- fragment: trial_columns
trial_id, filter, sample, seed, extractor, model, extract_version, merge_version, requested_by,
created_at, finished_at

-- name: outdated_revisions
-- For a plan or a trial: all of them, newest first, latest revisions before superseded ones.
SELECT r.artifact_uid, r.revision_id, r.is_latest, r.chunk_count, r.job_id, r.extractor, r.model,
       r.extract_version, r.merge_version
FROM
-- include: outdated
AS r
ORDER BY r.is_latest DESC, r.ingested_at DESC, r.artifact_uid, r.revision_id;

-- name: count_remaining
-- Revisions that a backfill has not requested yet, including those that another run is working on.
SELECT count(*) AS revisions
FROM
-- include: outdated
AS r
WHERE NOT EXISTS (SELECT 1 FROM backfill_item i
                  WHERE i.backfill_id = %(backfill_id)s AND i.artifact_uid = r.artifact_uid
                    AND i.revision_id = r.revision_id);

-- name: next_revisions
-- The revisions that a backfill requests next. A job in flight is left alone: its result may be
-- newer.
SELECT r.artifact_uid, r.revision_id, r.is_latest, r.chunk_count, j.job_id, r.extractor, r.model,
       r.extract_version, r.merge_version
FROM
-- include: outdated
AS r
JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                 AND j.job_type = 'extract_events'
WHERE j.status IN ('DONE', 'FAILED', 'CANCELED') AND j.job_id <> ALL(%(without)s::uuid[])
  AND NOT EXISTS (SELECT 1 FROM backfill_item i
                  WHERE i.backfill_id = %(backfill_id)s AND i.artifact_uid = r.artifact_uid
                    AND i.revision_id = r.revision_id)
ORDER BY r.is_latest DESC, r.ingested_at DESC, r.artifact_uid, r.revision_id
LIMIT %(limit)s
FOR UPDATE OF j SKIP LOCKED;

-- name: tokens_of_day
-- Model tokens that backfills used on the UTC day of a moment.
SELECT coalesce(sum(prompt_tokens + completion_tokens), 0)::bigint AS tokens
FROM model_call
WHERE backfill_id IS NOT NULL
  AND called_at >= date_trunc('day', coalesce(%(now)s, now()), 'UTC')
  AND called_at < date_trunc('day', coalesce(%(now)s, now()), 'UTC') + interval '1 day';

-- name: tokens_reserved
-- The estimate for requested and unfinished revisions of all backfills: a run may still work on
-- those of a cancelled backfill.
SELECT coalesce(sum(i.estimated_tokens), 0)::bigint AS tokens
FROM event_jobs j
JOIN backfill_item i ON i.backfill_id = j.backfill_id AND i.artifact_uid = j.artifact_uid
                    AND i.revision_id = j.revision_id AND i.generation = j.generation
WHERE j.backfill_id IS NOT NULL AND j.status IN ('PENDING', 'PROCESSING');

-- name: backfill_progress
SELECT count(*) FILTER (WHERE state = 'done') AS done,
       count(*) FILTER (WHERE state = 'failed') AS failed,
       count(*) FILTER (WHERE state = 'working') AS working,
       count(*) FILTER (WHERE state = 'waiting') AS waiting,
       count(*) FILTER (WHERE state = 'overtaken') AS overtaken,
       (SELECT coalesce(sum(prompt_tokens + completion_tokens), 0)::bigint FROM model_call
        WHERE backfill_id = %(backfill_id)s) AS used_tokens,
       (SELECT count(*) FROM model_call WHERE backfill_id = %(backfill_id)s) AS calls
FROM backfill_item_state WHERE backfill_id = %(backfill_id)s;

-- name: last_endings
-- How the latest jobs of a backfill ended.
SELECT count(*) AS ended, count(*) FILTER (WHERE state = 'failed') AS failed
FROM (SELECT state FROM backfill_item_state
      WHERE backfill_id = %(backfill_id)s AND state IN ('done', 'failed')
      ORDER BY ended_at DESC LIMIT %(limit)s) AS last;

-- name: open_backfill
SELECT
-- include: backfill_columns
FROM backfill WHERE status IN ('RUNNING', 'PAUSED');

-- name: lock_open_backfill
-- Serialises ticks and commands.
SELECT
-- include: backfill_columns
FROM backfill WHERE status IN ('RUNNING', 'PAUSED') FOR UPDATE;

-- name: try_open_backfill
-- No row if another tick holds the lock.
SELECT
-- include: backfill_columns
FROM backfill WHERE status IN ('RUNNING', 'PAUSED') FOR UPDATE SKIP LOCKED;

-- name: last_backfill
SELECT
-- include: backfill_columns
FROM backfill ORDER BY created_at DESC LIMIT 1;

-- name: get_backfill
SELECT
-- include: backfill_columns
FROM backfill WHERE backfill_id = %(backfill_id)s;

-- name: start_backfill
-- No row if a backfill is open.
INSERT INTO backfill (filter, other_models, extractor, model, extract_version, merge_version,
                      requested_by, estimate)
VALUES (%(filter)s, %(other_models)s, %(extractor)s, %(model)s, %(extract_version)s,
        %(merge_version)s, %(requested_by)s, %(estimate)s)
ON CONFLICT ((true)) WHERE status IN ('RUNNING', 'PAUSED') DO NOTHING
RETURNING
-- include: backfill_columns
;

-- name: set_backfill_status
UPDATE backfill
SET status = %(status)s, reason = %(reason)s,
    finished_at = CASE WHEN %(status)s IN ('DONE', 'CANCELLED') THEN now() END
WHERE backfill_id = %(backfill_id)s
RETURNING
-- include: backfill_columns
;

-- name: note_tick
UPDATE backfill SET last_tick_at = now(), last_tick = %(note)s
WHERE backfill_id = %(backfill_id)s;

-- name: backfill_wants_a_tick
SELECT EXISTS (SELECT 1 FROM backfill WHERE status = 'RUNNING') AS running,
       EXISTS (SELECT 1 FROM event_jobs j JOIN backfill b USING (backfill_id)
               WHERE b.status IN ('PAUSED', 'CANCELLED')
                 AND without_live_run(j, %(lease)s)) AS withdrawing;

-- name: never_backfilled
-- Whether there are outdated revisions that no backfill to these versions ever requested. False
-- after a person cancelled such a backfill, which must not start by itself.
SELECT NOT EXISTS (SELECT 1 FROM backfill
                   WHERE status = 'CANCELLED' AND extractor = %(extractor)s
                     AND extract_version = %(extract_version)s
                     AND merge_version = %(merge_version)s)
   AND EXISTS (
    SELECT 1 FROM
    -- include: outdated
    AS r
    WHERE NOT EXISTS (
        SELECT 1 FROM backfill_item i JOIN backfill b USING (backfill_id)
        WHERE i.artifact_uid = r.artifact_uid AND i.revision_id = r.revision_id
          AND b.extractor = %(extractor)s AND b.extract_version = %(extract_version)s
          AND b.merge_version = %(merge_version)s)
) AS due;

-- name: version_counts
-- Which versions made the events of all revisions.
SELECT extractor, model, extract_version, merge_version, count(*) AS revisions
FROM extraction
GROUP BY extractor, model, extract_version, merge_version
ORDER BY revisions DESC, extractor, model, extract_version, merge_version;

-- name: chunks_to_price
-- The chunks of these revisions in their order, each with the context of its question.
SELECT f.artifact_type, f.title, f.author, f.participants, f.source_ts, w.position, c.content_hash,
       c.token_count
FROM unnest(%(uids)s::text[], %(revisions)s::text[])
     WITH ORDINALITY AS w (artifact_uid, revision_id, position)
JOIN revision_chunk c USING (artifact_uid, revision_id)
CROSS JOIN LATERAL (
    SELECT r.artifact_type, r.title, r.author, r.participants, r.source_ts
    FROM revision_chunk same
    JOIN artifact_revision r USING (artifact_uid, revision_id)
    WHERE same.artifact_uid = c.artifact_uid AND same.content_hash = c.content_hash
    ORDER BY r.ingested_at, r.revision_id LIMIT 1
) f
ORDER BY w.position, c.chunk_index;

-- name: known_answers
-- Which of these questions have a cached answer, by number.
SELECT k.number
FROM unnest(%(chunk_hashes)s::text[], %(context_hashes)s::text[], %(prompt_versions)s::text[],
            %(models)s::text[])
     WITH ORDINALITY AS k (chunk_hash, context_hash, prompt_version, model, number)
JOIN extraction_cache c USING (chunk_hash, context_hash, prompt_version, model)
WHERE c.tenant_id = current_tenant();

-- fragment: rates
SELECT count(*) AS calls, coalesce(sum(completion_tokens), 0)::bigint AS completion_tokens,
       coalesce(sum(prompt_tokens) FILTER (WHERE counted_tokens > 0), 0)::bigint AS billed_tokens,
       coalesce(sum(counted_tokens) FILTER (WHERE prompt_tokens > 0), 0)::bigint AS counted_tokens

-- name: call_rates_of_jobs
-- The cost of a model's extraction calls for these jobs.
-- include: rates
FROM model_call
WHERE kind = 'extract' AND model = %(model)s AND outcome = 'ok'
  AND job_id = ANY(%(job_ids)s::uuid[]);

-- name: recent_call_rates
-- The cost of the model's extraction calls among the latest jobs.
-- include: rates
FROM (SELECT * FROM model_call ORDER BY call_id DESC LIMIT 20000) AS recent
WHERE kind = 'extract' AND model = %(model)s AND outcome = 'ok';

-- name: merge_calls_of_jobs
-- The cost of the last merge questions about these revisions.
SELECT c.job_id, count(*) AS calls, sum(c.prompt_tokens)::bigint AS prompt_tokens,
       sum(c.completion_tokens)::bigint AS completion_tokens
FROM model_call c
JOIN (SELECT job_id, max(generation) AS generation FROM model_call
      WHERE kind = 'merge' AND outcome = 'ok' AND job_id = ANY(%(job_ids)s::uuid[])
      GROUP BY job_id) AS last USING (job_id, generation)
WHERE c.kind = 'merge' AND c.outcome = 'ok'
GROUP BY c.job_id;

-- name: start_trial
INSERT INTO prompt_trial (filter, sample, seed, extractor, model, extract_version, merge_version,
                          requested_by)
VALUES (%(filter)s, %(sample)s, %(seed)s, %(extractor)s, %(model)s, %(extract_version)s,
        %(merge_version)s, %(requested_by)s)
RETURNING
-- include: trial_columns
;

-- name: add_trial_revision
INSERT INTO prompt_trial_revision (
    trial_id, artifact_uid, revision_id, position, extract_version, merge_version, events,
    comparison, rejected_before, rejected, calls, cache_hits, prompt_tokens, completion_tokens,
    error
)
SELECT %(trial_id)s, %(uid)s, %(revision)s, %(position)s, %(extract_version)s, %(merge_version)s,
       %(events)s, %(comparison)s, %(rejected_before)s, %(rejected)s, %(calls)s, %(cache_hits)s,
       %(prompt_tokens)s, %(completion_tokens)s, %(error)s
-- A document that was deleted meanwhile leaves no row here.
WHERE EXISTS (SELECT 1 FROM artifact_revision
              WHERE artifact_uid = %(uid)s AND revision_id = %(revision)s);

-- name: finish_trial
UPDATE prompt_trial SET finished_at = now() WHERE trial_id = %(trial_id)s;

-- name: get_trial
SELECT
-- include: trial_columns
FROM prompt_trial WHERE trial_id = %(trial_id)s;

-- name: trial_revisions
SELECT t.artifact_uid, t.revision_id, t.position, t.extract_version, t.merge_version, t.comparison,
       t.rejected_before, t.rejected, t.calls, t.cache_hits, t.prompt_tokens, t.completion_tokens,
       t.error, r.title, r.partition_key, r.source_system
FROM prompt_trial_revision t
JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE t.trial_id = %(trial_id)s
ORDER BY t.position;

-- name: rejections_of_revision
SELECT coalesce((SELECT jsonb_array_length(rejections) FROM extraction
                 WHERE artifact_uid = %(uid)s AND revision_id = %(revision)s), 0) AS rejected;
