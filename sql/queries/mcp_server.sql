-- Queries of commands that no tool answers.

-- name: latest_events
-- Events of latest revisions with their first quote, by category and time: the demo's table.
SELECT e.category, e.event_time, e.due_time, e.narrative, v.quote, r.title
FROM semantic_event e
JOIN artifact_revision r USING (artifact_uid, revision_id)
CROSS JOIN LATERAL (
    SELECT quote FROM event_evidence v WHERE v.event_id = e.event_id ORDER BY start_char LIMIT 1
) v
WHERE r.is_latest
ORDER BY e.category, e.confidence DESC, e.event_time NULLS LAST, e.narrative;

-- name: extraction_runs
-- The Dagster runs that made the stored events.
SELECT run_id, count(*) AS revisions, sum(events)::bigint AS events
FROM extraction GROUP BY run_id ORDER BY min(finished_at);

-- name: extraction_progress
-- Documents by the state of their latest revision's job. A job without attempts left has its last
-- cause, which a person has to repair.
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

-- name: server_version
SELECT current_setting('server_version') AS version;
