-- Health, cleaning, figures of operation and retention.

-- name: ping
SELECT 1 AS alive;

-- name: sweep_cache
-- Answers about passages that no revision has are deleted at once: their document was deleted, some
-- during the call. A merge answer is about events, not about a passage, so it is unknown whether a
-- run could use it again; after this time it is hardly worth a call.
DELETE FROM extraction_cache c
WHERE c.ctid IN (
    SELECT k.ctid FROM extraction_cache k
    WHERE (k.context_hash <> 'event_merge'
           AND NOT EXISTS (SELECT 1 FROM revision_chunk r
                           WHERE r.content_hash = passage_of(k.chunk_hash)))
       OR (k.created_at < now() - make_interval(days => %(days)s)
           AND (k.context_hash = 'event_merge'
                OR (NOT (k.prompt_version = ANY(%(versions)s) AND k.model = %(model)s)
                    AND NOT EXISTS (SELECT 1 FROM extraction e
                                    WHERE e.model = k.model
                                      AND k.prompt_version = e.extract_version))))
    LIMIT %(limit)s);

-- name: tables_to_vacuum
SELECT schemaname, relname FROM pg_stat_user_tables
WHERE schemaname = ANY(%(schemas)s)
  AND n_dead_tup > %(dead_rows)s AND n_dead_tup > n_live_tup * %(dead_share)s::float8
ORDER BY n_dead_tup DESC;

-- name: sweep_embeddings
-- Vectors that were not used for the given days and that no entry needs.
DELETE FROM embedding_cache k
WHERE k.used_at < now() - make_interval(days => %(days)s)
  AND NOT EXISTS (SELECT 1 FROM index_entry s
                  WHERE s.owner = k.owner
                    AND s.generation IN (SELECT generation FROM index_generation
                                         WHERE state IN ('serving', 'filling'))
                    AND split_part(s.hash, '/', 1) = k.text_hash);

-- name: rebuild_passage_statistics
-- One row instead of one per change. Chunks and changes are read at the same moment: what other
-- transactions add meanwhile is not counted, and their rows stay.
WITH folded AS (DELETE FROM passage_statistics), counted AS (
    INSERT INTO passage_statistics (tenant_id, passages, characters)
    SELECT tenant_id, count(*), sum(length) FROM chunk_entry GROUP BY tenant_id
    RETURNING passages
)
SELECT coalesce(sum(passages), 0)::bigint AS passages FROM counted;

-- name: metrics_of_work
-- An extraction shows that a job ended well. A job's row alone does not: a backfill that takes a
-- job back changes it as well.
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
-- A document waits from its ingest until it has events, also while it is retried. A document with
-- events waits from the time it is due again. Requests of a backfill do not count.
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

-- name: retention_candidates
-- Documents that have expired by the labels of their latest revision, and documents that are kept
-- until their promises are resolved, with these promises. In the order of their uids, after the
-- given one; or one document alone.
SELECT r.artifact_uid, r.tenant_id, r.retention_policy AS policy, r.title,
       r.source_system, d.due, p.promises
FROM artifact_revision r
CROSS JOIN LATERAL (
    SELECT CASE r.retention_policy
               WHEN '1y' THEN greatest(r.ingested_at, r.latest_since) + interval '1 year'
               WHEN 'custom' THEN r.expires_at END AS due
) d
CROSS JOIN LATERAL (
    SELECT CASE WHEN r.retention_policy = 'until_resolved' THEN
               ARRAY(SELECT e.event_id FROM semantic_event e
                     WHERE e.artifact_uid = r.artifact_uid AND e.revision_id = r.revision_id
                       AND e.category = 'Commitment')
               ELSE '{}' END AS promises
) p
WHERE r.is_latest AND r.retention_policy <> 'forever'
  AND r.artifact_uid > %(after)s
  AND (%(uid)s::text IS NULL OR r.artifact_uid = %(uid)s)
  AND (d.due < %(now)s
       OR (cardinality(p.promises) > 0
           AND EXISTS (SELECT 1 FROM event_jobs j
                       WHERE j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                         AND j.job_type = 'extract_events' AND j.status = 'DONE')))
ORDER BY r.artifact_uid
LIMIT %(limit)s;

-- name: reports_owner_sees
-- Those of these documents with reports that the owner of a document sees without the help of a
-- group, or that have the same audience.
SELECT o.artifact_uid
FROM artifact_revision r
JOIN artifact_revision o ON o.artifact_uid = ANY (%(reports)s::text[]) AND o.is_latest
                        AND o.tenant_id = r.tenant_id
WHERE r.artifact_uid = %(uid)s AND r.is_latest
  AND (o.audience_id = r.audience_id
       OR EXISTS (SELECT 1 FROM audience_member m
                  WHERE m.audience_id = o.audience_id AND m.member IN ('org', 'user:' || r.owner)));
