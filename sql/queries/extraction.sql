-- Answers of the model, their cost, and the limit on concurrent calls.

-- name: get_answers
-- By the number of the key that they answer, from 1.
SELECT k.number, c.answer, c.created_at
FROM unnest(%(chunk_hashes)s::text[], %(context_hashes)s::text[], %(prompt_versions)s::text[],
            %(models)s::text[], %(tenant_ids)s::uuid[])
     WITH ORDINALITY AS k (chunk_hash, context_hash, prompt_version, model, tenant_id, number)
JOIN extraction_cache c USING (tenant_id, chunk_hash, context_hash, prompt_version, model);

-- fragment: new_calls
INSERT INTO model_call (job_id, generation, kind, model, outcome, prompt_tokens,
                        completion_tokens, cached_tokens, latency_ms, counted_tokens, run_id,
                        attempt, chunk_index, trace_id, span_id, backfill_id, tenant_id)
SELECT c.*, CASE WHEN j.generation = c.generation THEN j.backfill_id END,
       coalesce(j.tenant_id, current_tenant())
FROM unnest(
    %(job_ids)s::uuid[], %(generations)s::int[], %(kinds)s::text[], %(call_models)s::text[],
    %(outcomes)s::text[], %(prompt_tokens)s::int[], %(completion_tokens)s::int[],
    %(cached_tokens)s::int[], %(latencies)s::float8[], %(counted_tokens)s::int[],
    %(run_ids)s::text[], %(attempts)s::int[], %(chunks)s::int[], %(trace_ids)s::text[],
    %(span_ids)s::text[])
     AS c (job_id, generation, kind, model, outcome, prompt_tokens, completion_tokens,
           cached_tokens, latency_ms, counted_tokens, run_id, attempt, chunk_index, trace_id,
           span_id)
LEFT JOIN event_jobs j ON j.job_id = c.job_id

-- name: record_calls
-- include: new_calls
;

-- name: keep_answers
-- The answer and its cost are stored together or not at all.
WITH kept AS (
    INSERT INTO extraction_cache (
        chunk_hash, context_hash, prompt_version, model, tenant_id, answer
    )
    SELECT * FROM unnest(%(chunk_hashes)s::text[], %(context_hashes)s::text[],
                         %(prompt_versions)s::text[], %(models)s::text[], %(tenant_ids)s::uuid[],
                         %(answers)s::jsonb[])
    ON CONFLICT (tenant_id, chunk_hash, context_hash, prompt_version, model)
        DO UPDATE SET answer = excluded.answer, created_at = now()
)
-- include: new_calls
;

-- name: take_call_slot
-- The first slot that no run holds. A session can take its own advisory lock again, so its own
-- slots are excluded before any is tried.
WITH free AS MATERIALIZED (
    SELECT slot FROM generate_series(1, %(most)s) AS slot WHERE slot <> ALL (%(taken)s::int[])
)
SELECT slot FROM free
WHERE pg_try_advisory_lock(hashtext('mcp-memory model calls'), slot)
LIMIT 1;

-- name: give_back_call_slot
SELECT pg_advisory_unlock(hashtext('mcp-memory model calls'), %(slot)s) AS was_held;
