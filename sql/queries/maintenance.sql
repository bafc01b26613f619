-- name: sweep_cache
-- Answers about passages that no revision has go at once: their document was deleted, some while
-- the question was asked. A merge answer is about events, which are no passage of a revision:
-- whether a run could ask for it again is not known, and after that long it is hardly worth a call.
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
WHERE schemaname IN ('public', 'dagster')
  AND n_dead_tup > %(dead_rows)s AND n_dead_tup > n_live_tup * %(dead_share)s::float8
ORDER BY n_dead_tup DESC;

-- name: try_housekeeping_lock
SELECT pg_try_advisory_lock(hashtext('mcp-memory housekeeping')) AS ours;

-- name: release_housekeeping_lock
SELECT pg_advisory_unlock(hashtext('mcp-memory housekeeping'));
