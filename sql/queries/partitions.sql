-- name: neighbours_of_partitions
-- Where these keys stand in Dagster's list, and which place comes right before each: asked of the
-- keys that matter, since the whole list grows with the memory.
SELECT p.partition AS partition_key, p.id, r.artifact_uid, r.source_system, r.title,
       (SELECT max(q.id) FROM dagster.dynamic_partitions q
        WHERE q.partitions_def_name = 'revisions' AND q.id < p.id) AS before
FROM dagster.dynamic_partitions p
JOIN artifact_revision r ON r.partition_key = p.partition
WHERE p.partitions_def_name = 'revisions' AND p.partition = ANY(%(keys)s)
ORDER BY p.id;

-- name: state_of_partitions
SELECT k.partition_key, r.artifact_uid, r.source_system, r.title, j.status, j.locked_by
FROM unnest(%(keys)s::text[]) AS k (partition_key)
LEFT JOIN artifact_revision r ON r.partition_key = k.partition_key
LEFT JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                      AND j.job_type = 'extract_events';
