-- Parts that several statements share. Before, their text was included in each statement and assumed
-- an alias of the table there. Postgres inlines views, functions without subqueries, and functions in
-- FROM, so the plans are the same as before.

-- Whether the run that holds a job has shown no sign of life for so many seconds.
CREATE FUNCTION lease_expired(held event_jobs, seconds FLOAT8) RETURNS BOOLEAN
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN held.status = 'PROCESSING' AND held.locked_at < now() - make_interval(secs => seconds);

-- Whether no live run holds an open job.
CREATE FUNCTION without_live_run(waiting event_jobs, seconds FLOAT8) RETURNS BOOLEAN
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN waiting.status = 'PENDING' OR lease_expired(waiting, seconds);

CREATE VIEW job_details WITH (security_invoker = true) AS
SELECT j.job_id, j.artifact_uid, j.revision_id, j.status, j.attempts, j.max_attempts, j.created_at,
       j.updated_at, j.locked_by, j.locked_at, j.last_error_code, j.last_error_message,
       j.next_run_at, j.origin, j.requested_by, j.priority, j.backoff_policy, j.idempotency_key,
       j.started_at, j.finished_at, j.cancel_requested_at, j.trace_id, j.generation, j.backfill_id,
       (SELECT jsonb_build_object(
                   'extractor', x.extractor, 'model', x.model,
                   'prompt_version', x.extract_version, 'merge_version', x.merge_version,
                   'requested_by', x.requested_by, 'dagster_run_id', x.run_id,
                   'finished_at', x.finished_at, 'events', x.events)
        FROM extraction x
        WHERE x.artifact_uid = j.artifact_uid AND x.revision_id = j.revision_id) AS extracted
FROM event_jobs j
WHERE j.job_type = 'extract_events';
COMMENT ON VIEW job_details IS
    'Jobs that extract events, and how the stored events of their revisions were made.';
GRANT SELECT ON job_details TO memory_app;

CREATE VIEW backfill_item_state AS
SELECT i.backfill_id, coalesce(x.finished_at, j.updated_at) AS ended_at,
       CASE WHEN x.job_id = i.job_id AND x.generation >= i.generation
                 AND x.extractor = b.extractor
                 AND x.extract_number >= version_number(b.extract_version)
                 AND x.merge_number >= version_number(b.merge_version) THEN 'done'
            WHEN j.generation IS DISTINCT FROM i.generation THEN 'overtaken'
            WHEN j.status IN ('FAILED', 'CANCELED') THEN 'failed'
            WHEN j.status = 'PROCESSING' THEN 'working'
            ELSE 'waiting' END AS state
FROM backfill_item i
JOIN backfill b USING (backfill_id)
LEFT JOIN event_jobs j ON j.job_id = i.job_id
LEFT JOIN extraction x ON x.artifact_uid = i.artifact_uid AND x.revision_id = i.revision_id;
COMMENT ON VIEW backfill_item_state IS
    'The states of the revisions that a backfill requested. A revision is done if it has the backfill''s versions, whichever run made it. It is overtaken if another request came later and an older deployment made its events.';

-- Revisions whose events a deployment of these versions may renew: at least one version is older, and
-- none is newer. Another model or extractor counts only if that is requested.
CREATE FUNCTION outdated_revisions(
    extractor_now TEXT, model_now TEXT, extract_now INT, merge_now INT, other_models BOOLEAN,
    uid TEXT, source TEXT, type TEXT, time_from TIMESTAMPTZ, time_to TIMESTAMPTZ, wanted_category TEXT
) RETURNS TABLE (
    artifact_uid TEXT, revision_id TEXT, is_latest BOOLEAN, ingested_at TIMESTAMPTZ,
    chunk_count INT, job_id UUID, extractor TEXT, model TEXT, extract_version TEXT,
    merge_version TEXT
) LANGUAGE sql STABLE AS $$
    SELECT r.artifact_uid, r.revision_id, r.is_latest, r.ingested_at, r.chunk_count, x.job_id,
           x.extractor, x.model, x.extract_version, x.merge_version
    FROM extraction x
    JOIN artifact_revision r USING (artifact_uid, revision_id)
    WHERE (x.extractor <> extractor_now
           OR (x.extract_number <= extract_now AND x.merge_number <= merge_now))
      AND ((x.extractor = extractor_now
            AND (x.extract_number < extract_now OR x.merge_number < merge_now))
           OR (other_models AND (x.extractor <> extractor_now OR x.model <> model_now)))
      AND (uid IS NULL OR r.artifact_uid = uid)
      AND (source IS NULL OR r.source_system = source)
      AND (type IS NULL OR r.artifact_type = type)
      AND (time_from IS NULL OR coalesce(r.source_ts, r.ingested_at) >= time_from)
      AND (time_to IS NULL OR coalesce(r.source_ts, r.ingested_at) <= time_to)
      AND (wanted_category IS NULL
           OR EXISTS (SELECT 1 FROM semantic_event e
                      WHERE e.artifact_uid = r.artifact_uid AND e.revision_id = r.revision_id
                        AND e.category = wanted_category))
$$;

CREATE VIEW listed_key AS
SELECT k.prefix, k.tenant_id, t.name AS tenant, k.user_id AS "user", k.groups, k.scopes,
       k.created_at, k.expires_at, k.last_used_at, k.revoked_at
FROM access_key k
JOIN tenant t USING (tenant_id);
COMMENT ON VIEW listed_key IS 'Keys as they are shown: with the name of their tenant, without their hash.';

-- Who promises or does an event, not whom it is for. If no role says so, all actors.
CREATE FUNCTION doers_of_event(id UUID) RETURNS TABLE (name_key TEXT)
    LANGUAGE sql STABLE AS $$
    SELECT a.name_key
    FROM (SELECT d.name_key, d.role IN ('owner', 'contributor') AS does,
                 bool_or(d.role IN ('owner', 'contributor')) OVER () AS some_do
          FROM event_actor d WHERE d.event_id = id) a
    WHERE a.does OR NOT a.some_do
$$;

-- What is embedded of an event: a narrative often does not repeat what its document is about.
CREATE FUNCTION text_of_event(narrative TEXT, document_title TEXT) RETURNS TEXT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN narrative || CASE WHEN document_title <> '' THEN E'\n' || document_title ELSE '' END;

-- It includes the fields that searches filter by, so another confidence is another entry.
CREATE FUNCTION hash_of_memory(content TEXT, type TEXT, confidence FLOAT8) RETURNS TEXT
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN concat_ws('/', hash_of_text(content), type, confidence);

-- A query from some words of a text.
CREATE FUNCTION some_words(words TSVECTOR) RETURNS TSQUERY
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (SELECT string_agg(quote_literal(w.lexeme), ' & ')::tsquery
            FROM (SELECT lexeme FROM unnest(words) WHERE lexeme ~ '^[a-z]+$' LIMIT 5) w);

-- How many changes stand after a position, counted to ten thousand, since when, and whether a reader
-- has to wait for one.
CREATE FUNCTION log.changes_after(after_transaction XID8, after_number BIGINT)
    RETURNS TABLE (changes BIGINT, oldest TIMESTAMPTZ, unreadable BOOLEAN)
    LANGUAGE sql STABLE AS $$
    SELECT count(*), min(waiting.timestamp),
           coalesce(bool_or(waiting.tid >= pg_snapshot_xmin(pg_current_snapshot())), false)
    FROM (SELECT e.timestamp, e.transaction_id AS tid FROM log.events e
          WHERE (e.transaction_id, e.sequence_number) > (after_transaction, after_number)
          ORDER BY e.transaction_id, e.sequence_number LIMIT 10000) waiting
$$;

-- Whether a process holds the lock of a projection's leader.
CREATE FUNCTION log.is_led(projection TEXT) RETURNS BOOLEAN
    LANGUAGE sql STABLE
    RETURN EXISTS (
        SELECT 1 FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND l.classid = (hashtext('mcp-memory projection')::bigint & 4294967295)::oid
          AND l.objid = (hashtext(projection)::bigint & 4294967295)::oid);
