-- name: state_of_partitions
SELECT k.partition_key, r.artifact_uid, r.source_system, r.title, j.status, j.locked_by
FROM unnest(%(keys)s::text[]) AS k (partition_key)
LEFT JOIN artifact_revision r ON r.partition_key = k.partition_key
LEFT JOIN event_jobs j ON j.artifact_uid = r.artifact_uid AND j.revision_id = r.revision_id
                      AND j.job_type = 'extract_events';
