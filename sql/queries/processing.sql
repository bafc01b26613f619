-- A revision becomes stored events.

-- name: tenant_of_job
SELECT tenant_id FROM event_jobs WHERE job_id = %(job_id)s;

-- name: revision_to_extract
SELECT r.artifact_uid, r.revision_id, r.title, r.source_system, r.source_url, r.is_chunked,
       t.content
FROM artifact_revision r
JOIN revision_text t USING (artifact_uid, revision_id)
WHERE r.artifact_uid = %(uid)s AND r.revision_id = %(revision)s;

-- name: first_contexts
-- For each chunk of a revision: the labels of the revision in which the passage first appeared.
-- "Next Friday" meant the Friday after it was written, and the cached answer of that time can be
-- reused. It is one sort of the artifact's chunks: a self-join would compare all pairs whenever the
-- statistics are out of date.
SELECT r.artifact_type, r.title, r.author, r.participants, r.source_ts, x.chunk_index
FROM (
    SELECT c.chunk_index, c.revision_id,
           first_value(c.revision_id) OVER (PARTITION BY c.content_hash
                                            ORDER BY of.ingested_at, of.revision_id) AS first
    FROM revision_chunk c
    JOIN artifact_revision of USING (artifact_uid, revision_id)
    WHERE c.artifact_uid = %(uid)s
) x
JOIN artifact_revision r ON r.artifact_uid = %(uid)s AND r.revision_id = x.first
WHERE x.revision_id = %(revision)s
ORDER BY x.chunk_index;

-- name: delete_events_of_revision
-- Evidence follows by its foreign key.
DELETE FROM semantic_event WHERE artifact_uid = %(uid)s AND revision_id = %(revision)s
RETURNING event_id;

-- name: insert_events
INSERT INTO semantic_event (
    event_id, artifact_uid, revision_id, category, event_time, due_time, due_quote,
    due_start_char, due_end_char, narrative, subject_json, actors_json, confidence,
    extraction_run_id, quotes, document_title
)
SELECT e.id, %(uid)s, %(revision)s, e.category, e.time, e.due, e.due_quote, e.due_start, e.due_end,
       e.narrative, e.subject, e.actors, e.confidence, %(job_id)s, e.quotes, %(title)s
FROM unnest(%(ids)s::uuid[], %(categories)s::text[], %(times)s::timestamptz[],
            %(dues)s::timestamptz[], %(due_quotes)s::text[], %(due_starts)s::int[],
            %(due_ends)s::int[], %(narratives)s::text[], %(subjects)s::jsonb[], %(actors)s::jsonb[],
            %(confidences)s::float8[], %(quotes)s::text[])
     AS e (id, category, time, due, due_quote, due_start, due_end, narrative, subject, actors,
           confidence, quotes);

-- name: insert_evidence
INSERT INTO event_evidence (
    event_id, artifact_uid, revision_id, chunk_id, start_char, end_char, quote, match_kind
)
SELECT v.id, %(uid)s, %(revision)s, v.chunk_id, v.start_char, v.end_char, v.quote, v.kind
FROM unnest(%(ids)s::uuid[], %(chunk_ids)s::text[], %(starts)s::int[], %(ends)s::int[],
            %(quotes)s::text[], %(kinds)s::text[])
     AS v (id, chunk_id, start_char, end_char, quote, kind);

-- name: delete_entities_of_revision
DELETE FROM revision_entity WHERE artifact_uid = %(uid)s AND revision_id = %(revision)s;

-- name: insert_entities
-- Aliases are JSON, because Postgres has no array of lists of different lengths.
INSERT INTO revision_entity (artifact_uid, revision_id, type, name, aliases)
SELECT %(uid)s, %(revision)s, e.type, e.name,
       ARRAY(SELECT jsonb_array_elements_text(e.aliases))
FROM unnest(%(types)s::text[], %(names)s::text[], %(aliases)s::jsonb[])
     AS e (type, name, aliases);

-- name: record_extraction
INSERT INTO extraction (
    artifact_uid, revision_id, job_id, generation, run_id, requested_by, extractor, model,
    extract_version, merge_version, chunks, cache_hits, events, unasked_merges, rejections,
    refusals, seconds
) VALUES (
    %(uid)s, %(revision)s, %(job_id)s, %(generation)s, %(run_id)s, %(requested_by)s, %(extractor)s,
    %(model)s, %(extract_version)s, %(merge_version)s, %(chunks)s, %(cache_hits)s, %(events)s,
    %(unasked_merges)s, %(rejections)s, %(refusals)s, %(seconds)s
)
ON CONFLICT (artifact_uid, revision_id) DO UPDATE
SET job_id = excluded.job_id, generation = excluded.generation, run_id = excluded.run_id,
    requested_by = excluded.requested_by, extractor = excluded.extractor, model = excluded.model,
    extract_version = excluded.extract_version, merge_version = excluded.merge_version,
    chunks = excluded.chunks, cache_hits = excluded.cache_hits, events = excluded.events,
    unasked_merges = excluded.unasked_merges, rejections = excluded.rejections, refusals = excluded.refusals, seconds = excluded.seconds,
    finished_at = now();

-- name: extraction_of
-- The versions that made the events of a revision.
SELECT extractor, model, extract_version FROM extraction
WHERE artifact_uid = %(uid)s AND revision_id = %(revision)s;

-- name: spans_that_asked
-- The span of the call that made a job, by its trace: from the change in the same transaction, else
-- from the audit.
SELECT t.trace_id, coalesce(
    (SELECT e.span_id FROM log.events e
     WHERE e.trace_id = t.trace_id AND e.span_id IS NOT NULL LIMIT 1),
    (SELECT c.span_id FROM tool_calls c
     WHERE c.trace_id = t.trace_id AND c.kind = 'tool' LIMIT 1)) AS span_id
FROM unnest(%(trace_ids)s::text[]) AS t (trace_id);
