-- name: count_broken_evidence
SELECT count(*) AS broken
FROM unnest(%(uids)s::text[], %(revisions)s::text[]) AS wanted (artifact_uid, revision_id)
JOIN event_evidence v USING (artifact_uid, revision_id)
JOIN revision_text t USING (artifact_uid, revision_id)
WHERE substr(t.content, v.start_char + 1, v.end_char - v.start_char) <> v.quote;

-- name: find_broken_evidence
-- Over the whole database: quotes that are not the text at their offsets, are too long, or whose
-- text is gone.
SELECT v.evidence_id, v.event_id, v.artifact_uid, v.revision_id, v.start_char, v.end_char
FROM event_evidence v
LEFT JOIN revision_text t USING (artifact_uid, revision_id)
WHERE t.content IS NULL
   OR substr(t.content, v.start_char + 1, v.end_char - v.start_char) <> v.quote
   OR array_length(regexp_split_to_array(btrim(v.quote), '\s+'), 1) > 25
LIMIT %(limit)s;

-- name: find_events_without_evidence
SELECT e.event_id, e.artifact_uid, e.revision_id
FROM semantic_event e
WHERE NOT EXISTS (SELECT 1 FROM event_evidence v WHERE v.event_id = e.event_id)
LIMIT %(limit)s;
