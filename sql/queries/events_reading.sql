-- Events and their evidence.

-- name: get_event
SELECT e.event_id, e.artifact_uid, e.revision_id, e.category, e.event_time, e.due_time,
       e.due_quote, e.due_start_char, e.due_end_char, e.narrative, e.subject_json, e.actors_json,
       e.confidence, r.title, e.is_latest, e.extraction_run_id,
       x.extractor, x.model, x.extract_version AS prompt_version, x.merge_version, x.requested_by,
       x.run_id AS dagster_run_id, x.finished_at AS extracted_at, e.created_at
FROM semantic_event e
LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
LEFT JOIN extraction x USING (artifact_uid, revision_id)
WHERE e.event_id = %(event_id)s;

-- name: events_extracted_later
-- Those of these events that the last replacement before a moment does not name. If the log has
-- none, the time of their extraction decides: it may be older than the log.
WITH asked AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(uids)s::text[], %(aggregates)s::uuid[],
                         %(revisions)s::text[]) AS a (event_id, artifact_uid, aggregate_id, revision_id)
),
last_one AS MATERIALIZED (
    SELECT r.artifact_uid, r.revision_id, l.payload, x.finished_at
    FROM (SELECT DISTINCT artifact_uid, aggregate_id, revision_id FROM asked) r
    LEFT JOIN extraction x USING (artifact_uid, revision_id)
    LEFT JOIN LATERAL (
        SELECT payload FROM log.events
        WHERE aggregate_id = r.aggregate_id AND aggregate_type = 'artifact'
          AND event_type = 'events.replaced' AND payload ->> 'revision_id' = r.revision_id
          AND timestamp <= %(as_of)s
        ORDER BY version DESC LIMIT 1
    ) l ON true
)
SELECT a.event_id FROM asked a JOIN last_one o USING (artifact_uid, revision_id)
WHERE CASE WHEN o.payload IS NULL THEN o.finished_at > %(as_of)s
           ELSE NOT (o.payload -> 'added' ? a.event_id::text
                     OR o.payload -> 'kept' ? a.event_id::text) END;

-- name: evidence_in_context
-- The evidence of one event, each quote with `context` characters of the text on each side.
SELECT v.evidence_id, v.quote, v.start_char, v.end_char, v.chunk_id, v.match_kind, r.artifact_id,
       CASE WHEN %(context)s > 0 THEN
           substr(t.content, greatest(v.start_char - %(context)s, 0) + 1,
                  v.start_char - greatest(v.start_char - %(context)s, 0)) END AS text_before,
       CASE WHEN %(context)s > 0 THEN substr(t.content, v.end_char + 1, %(context)s) END
           AS text_after
FROM event_evidence v
LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
LEFT JOIN revision_text t USING (artifact_uid, revision_id)
WHERE v.event_id = %(event_id)s
ORDER BY v.start_char, v.evidence_id;

-- name: evidence_of_events
SELECT v.event_id, v.quote, v.start_char, v.end_char, v.chunk_id, v.match_kind
FROM event_evidence v
WHERE v.event_id = ANY(%(ids)s::uuid[])
ORDER BY v.event_id, v.start_char, v.evidence_id;

-- name: list_events_of_revision
SELECT e.event_id, e.artifact_uid, e.revision_id, e.category, e.event_time, e.due_time,
       e.due_quote, e.due_start_char, e.due_end_char, e.narrative, e.subject_json, e.actors_json,
       e.confidence, r.title
FROM semantic_event e
LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE e.artifact_uid = %(uid)s AND e.revision_id = %(revision)s
ORDER BY e.event_time DESC NULLS LAST, e.created_at DESC, e.event_id;

-- name: count_broken_evidence
SELECT count(*) AS broken
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS wanted (artifact_uid, revision_id)
CROSS JOIN LATERAL broken_evidence(wanted.artifact_uid, wanted.revision_id);

-- name: find_broken_evidence
-- Over the whole database: quotes that differ from the text at their offsets, are too long, or
-- whose text is gone.
SELECT count(*) OVER () AS total, event_id, artifact_uid, revision_id, start_char, end_char
FROM (
    SELECT v.*
    FROM (SELECT DISTINCT artifact_uid, revision_id FROM event_evidence) r
    CROSS JOIN LATERAL broken_evidence(r.artifact_uid, r.revision_id) b
    JOIN event_evidence v USING (evidence_id)
    UNION
    SELECT v.* FROM event_evidence v
    WHERE array_length(regexp_split_to_array(btrim(v.quote), '\s+'), 1) > 25
) unproved
LIMIT %(limit)s;
