-- name: retention_candidates
-- Documents whose time is over by the labels of their latest revision, and those kept until their
-- promises are resolved, with these promises. In the order of their uids, after the one given; or
-- one document alone.
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
-- Of documents with reports: those that the owner of a document sees, its groups aside, or that are
-- for the same audience.
SELECT o.artifact_uid
FROM artifact_revision r
JOIN artifact_revision o ON o.artifact_uid = ANY (%(reports)s::text[]) AND o.is_latest
                        AND o.tenant_id = r.tenant_id
WHERE r.artifact_uid = %(uid)s AND r.is_latest
  AND (o.audience_id = r.audience_id
       OR EXISTS (SELECT 1 FROM audience_member m
                  WHERE m.audience_id = o.audience_id AND m.member IN ('org', 'user:' || r.owner)));
