-- name: count_broken_evidence
SELECT count(*) AS broken
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS wanted (artifact_uid, revision_id)
CROSS JOIN LATERAL broken_evidence(wanted.artifact_uid, wanted.revision_id);

-- fragment: unproved_evidence
-- Over the whole database: quotes that are not the text at their offsets, are too long, or whose
-- text is gone.
    SELECT v.*
    FROM (SELECT DISTINCT artifact_uid, revision_id FROM event_evidence) r
    CROSS JOIN LATERAL broken_evidence(r.artifact_uid, r.revision_id) b
    JOIN event_evidence v USING (evidence_id)
    UNION
    SELECT v.* FROM event_evidence v
    WHERE array_length(regexp_split_to_array(btrim(v.quote), '\s+'), 1) > 25

-- name: find_broken_evidence
SELECT evidence_id, event_id, artifact_uid, revision_id, start_char, end_char
FROM (
    -- include: unproved_evidence
) unproved
LIMIT %(limit)s;

-- name: find_events_without_evidence
SELECT e.event_id, e.artifact_uid, e.revision_id
FROM semantic_event e
WHERE NOT EXISTS (SELECT 1 FROM event_evidence v WHERE v.event_id = e.event_id)
LIMIT %(limit)s;

-- name: find_artifacts_without_latest
-- More than one latest is impossible by a unique index.
SELECT artifact_uid FROM artifact_revision
GROUP BY artifact_uid HAVING NOT bool_or(is_latest)
LIMIT %(limit)s;

-- name: make_newest_latest
UPDATE artifact_revision r SET is_latest = true, latest_since = clock_timestamp()
FROM (
    SELECT DISTINCT ON (artifact_uid) artifact_uid, revision_id FROM artifact_revision
    WHERE artifact_uid IN (SELECT artifact_uid FROM artifact_revision
                           GROUP BY artifact_uid HAVING NOT bool_or(is_latest))
    ORDER BY artifact_uid, latest_since DESC, ingested_at DESC, revision_id
) newest
WHERE r.artifact_uid = newest.artifact_uid AND r.revision_id = newest.revision_id;

-- name: find_abandoned_jobs
SELECT job_id, locked_by FROM event_jobs
WHERE status = 'PROCESSING'
  AND (locked_at IS NULL OR locked_at < now() - make_interval(secs => %(lease)s))
LIMIT %(limit)s;

-- name: release_abandoned_jobs
UPDATE event_jobs SET status = 'PENDING', locked_at = NULL, next_run_at = now()
WHERE status = 'PROCESSING'
  AND (locked_at IS NULL OR locked_at < now() - make_interval(secs => %(lease)s));

-- name: reenqueue_unproved_revisions
UPDATE event_jobs j
SET status = 'PENDING', attempts = 0, generation = j.generation + 1, next_run_at = now(),
    locked_at = NULL, locked_by = NULL, requested_by = %(requested_by)s
FROM (
    SELECT artifact_uid, revision_id FROM (
    -- include: unproved_evidence
    ) unproved
    UNION
    SELECT e.artifact_uid, e.revision_id FROM semantic_event e
    WHERE NOT EXISTS (SELECT 1 FROM event_evidence v WHERE v.event_id = e.event_id)
) broken
WHERE j.artifact_uid = broken.artifact_uid AND j.revision_id = broken.revision_id
  AND j.job_type = 'extract_events' AND j.status IN ('DONE', 'FAILED');

-- name: count_artifacts_in_index
SELECT count(*) AS expected FROM artifact_revision;

-- name: count_chunks_in_index
SELECT count(*) AS expected FROM revision_chunk c
JOIN artifact_revision r USING (artifact_uid, revision_id) WHERE r.is_chunked;

-- name: count_events_in_index
SELECT count(*) AS expected FROM semantic_event;

-- name: count_memories_in_index
SELECT count(*) AS expected FROM memory;

-- name: sample_artifacts_in_index
SELECT artifact_id AS id FROM artifact_revision ORDER BY random() LIMIT %(limit)s;

-- name: sample_chunks_in_index
SELECT c.chunk_id AS id FROM revision_chunk c
JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE r.is_chunked ORDER BY random() LIMIT %(limit)s;

-- name: sample_events_in_index
SELECT event_id AS id FROM semantic_event ORDER BY random() LIMIT %(limit)s;

-- name: sample_memories_in_index
SELECT memory_id AS id FROM memory ORDER BY random() LIMIT %(limit)s;
