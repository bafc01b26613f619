-- name: count_revisions
SELECT count(*) AS revisions FROM artifact_revision;
