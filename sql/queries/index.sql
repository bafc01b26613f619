-- The index in Chroma: expected entries, stored entries, and generations.

-- name: lock_index
-- One writer of Chroma at a time, until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtext('mcp-memory'), hashtext('index'));

-- name: index_difference
-- Entries of these owners that differ from the expected ones: with the expected hash, or NULL if
-- the entry should not exist.
SELECT tenant_id, collection, id, coalesce(w.owner, s.owner) AS owner, w.hash,
       s.owner IS NOT NULL AS stands
FROM (
    -- All entries that Chroma should have for the owners: latest revisions with a text, their chunks
    -- and events, and memories.
    SELECT r.tenant_id, 'artifacts' AS collection, r.artifact_id AS id, r.artifact_uid AS owner,
           (SELECT CASE WHEN count(*) = 1 THEN min(c.content_hash)
                        ELSE hash_of_text(string_agg(c.content_hash, '' ORDER BY c.chunk_index)) END
            FROM revision_chunk c
            WHERE c.artifact_uid = r.artifact_uid AND c.revision_id = r.revision_id) AS hash
    FROM artifact_revision r JOIN revision_text t USING (artifact_uid, revision_id)
    WHERE r.is_latest AND r.artifact_uid = ANY (%(owners)s::text[])
    UNION ALL
    SELECT r.tenant_id, 'artifact_chunks', c.chunk_id, c.artifact_uid, c.content_hash
    FROM artifact_revision r
    JOIN revision_text t USING (artifact_uid, revision_id)
    JOIN revision_chunk c USING (artifact_uid, revision_id)
    WHERE r.is_latest AND r.is_chunked AND r.artifact_uid = ANY (%(owners)s::text[])
    UNION ALL
    SELECT r.tenant_id, 'events', e.event_id::text, e.artifact_uid,
           hash_of_text(text_of_event(e.narrative, e.document_title))
    FROM artifact_revision r JOIN semantic_event e USING (artifact_uid, revision_id)
    WHERE r.is_latest AND r.artifact_uid = ANY (%(owners)s::text[])
    UNION ALL
    SELECT m.tenant_id, 'memory', m.memory_id, m.memory_id,
           hash_of_memory(m.content, m.type, m.confidence)
    FROM memory m WHERE m.memory_id = ANY (%(owners)s::text[])
) w
FULL JOIN (
    SELECT tenant_id, collection, id, owner, hash FROM index_entry
    WHERE generation = %(generation)s AND owner = ANY (%(owners)s::text[])
) s USING (tenant_id, collection, id)
WHERE w.hash IS NULL OR s.hash IS NULL OR w.hash <> s.hash;

-- name: texts_to_embed
-- The texts of entries: of chunks, events and memories, and for a document all its chunks, whose
-- vectors make up its own, in their order. Texts that are gone meanwhile are left out: a later
-- change handles them.
WITH wanted AS (
    SELECT c.artifact_uid, c.revision_id, c.chunk_index FROM revision_chunk c
    WHERE c.chunk_id = ANY (%(chunks)s::text[])
    UNION
    SELECT c.artifact_uid, c.revision_id, c.chunk_index
    FROM artifact_revision r JOIN revision_chunk c USING (artifact_uid, revision_id)
    WHERE r.artifact_id = ANY (%(documents)s::text[])
)
(SELECT r.tenant_id, artifact_uid AS owner, c.chunk_id AS id, c.content_hash AS hash,
        text_of_chunk(c.text, t.content, c.start_char, c.end_char) AS text,
        c.content_hash AS text_hash, r.artifact_id AS document,
        count(*) OVER (PARTITION BY artifact_uid, revision_id) AS parts,
        NULL AS type, NULL::float AS confidence
 FROM wanted
 JOIN revision_chunk c USING (artifact_uid, revision_id, chunk_index)
 JOIN revision_text t USING (artifact_uid, revision_id)
 JOIN artifact_revision r USING (artifact_uid, revision_id)
 ORDER BY artifact_uid, revision_id, chunk_index)
UNION ALL
SELECT e.tenant_id, e.artifact_uid, e.event_id::text, hash_of_text(t.text), t.text,
       hash_of_text(t.text), NULL, 0, NULL, NULL
FROM semantic_event e
CROSS JOIN LATERAL (SELECT text_of_event(e.narrative, e.document_title) AS text OFFSET 0) t
WHERE e.event_id = ANY (%(events)s::uuid[])
UNION ALL
SELECT m.tenant_id, m.memory_id, m.memory_id, hash_of_memory(m.content, m.type, m.confidence),
       m.content, hash_of_text(m.content), NULL, 0, m.type, m.confidence
FROM memory m WHERE m.memory_id = ANY (%(memories)s::text[]);

-- name: announce_entries
-- Before Chroma is written: from now on these entries may exist there.
INSERT INTO index_entry (generation, tenant_id, collection, id, owner, hash)
SELECT %(generation)s, e.tenant_id, e.collection, e.id, e.owner, NULL
FROM unnest(%(tenants)s::uuid[], %(collections)s::text[], %(ids)s::text[], %(owners)s::text[])
     AS e (tenant_id, collection, id, owner)
ON CONFLICT (generation, tenant_id, collection, id)
DO UPDATE SET hash = NULL, owner = excluded.owner;

-- name: unconfirmed_entries
SELECT EXISTS (SELECT 1 FROM index_entry WHERE hash IS NULL) AS exist;

-- name: confirm_entries
-- After Chroma was written: the hash of each written entry; entries without a hash do not exist.
WITH done AS (
    SELECT * FROM unnest(%(tenants)s::uuid[], %(collections)s::text[], %(ids)s::text[],
                         %(hashes)s::text[]) AS d (tenant_id, collection, id, hash)
), gone AS (
    DELETE FROM index_entry s USING done d
    WHERE s.generation = %(generation)s AND s.tenant_id = d.tenant_id
      AND s.collection = d.collection AND s.id = d.id AND d.hash IS NULL
)
UPDATE index_entry s SET hash = d.hash FROM done d
WHERE s.generation = %(generation)s AND s.tenant_id = d.tenant_id
  AND s.collection = d.collection AND s.id = d.id AND d.hash IS NOT NULL;

-- name: tenants_without_collections
-- Those of the tenants that have no collections in a generation yet.
SELECT tenant_id FROM unnest(%(tenants)s::uuid[]) AS w (tenant_id)
WHERE NOT EXISTS (SELECT 1 FROM index_collections c
                  WHERE c.generation = %(generation)s AND c.tenant_id = w.tenant_id);

-- name: tenants_with_collections
SELECT tenant_id FROM index_collections WHERE generation = %(generation)s ORDER BY tenant_id;

-- name: collections_are_made
INSERT INTO index_collections (generation, tenant_id) VALUES (%(generation)s, %(tenant_id)s)
ON CONFLICT DO NOTHING;

-- name: forget_index_of_tenant
-- The tenant's collections are gone from every generation.
WITH collections AS (DELETE FROM index_collections WHERE tenant_id = %(tenant_id)s),
     cached AS (DELETE FROM embedding_cache WHERE tenant_id = %(tenant_id)s)
DELETE FROM index_entry WHERE tenant_id = %(tenant_id)s;

-- name: doubt_entries
-- Entries of Chroma that differ from `index_entry`: they are written again, or deleted.
INSERT INTO index_entry (generation, tenant_id, collection, id, owner, hash)
SELECT %(generation)s, e.tenant_id, e.collection, e.id, %(owner)s, NULL
FROM unnest(%(tenants)s::uuid[], %(collections)s::text[], %(ids)s::text[])
     AS e (tenant_id, collection, id)
ON CONFLICT (generation, tenant_id, collection, id) DO UPDATE SET hash = NULL
RETURNING owner;

-- name: owners_of_index
-- A page of all owners of entries: artifacts and memories in the order of their ids.
SELECT owner FROM (
    (SELECT artifact_uid AS owner FROM artifact_revision
     WHERE is_latest AND artifact_uid > %(after)s ORDER BY artifact_uid LIMIT %(limit)s)
    UNION ALL
    (SELECT memory_id FROM memory WHERE memory_id > %(after)s ORDER BY memory_id LIMIT %(limit)s)
) o
ORDER BY owner LIMIT %(limit)s;

-- name: owners_with_entries
-- The same, for owners that have entries now.
SELECT DISTINCT owner FROM index_entry
WHERE generation = %(generation)s AND owner > %(after)s ORDER BY owner LIMIT %(limit)s;

-- name: entries_of_collection
SELECT id FROM index_entry
WHERE generation = %(generation)s AND tenant_id = %(tenant_id)s AND collection = %(collection)s
  AND id > %(after)s
ORDER BY id LIMIT %(limit)s;

-- name: entries_by_id
SELECT id, hash FROM index_entry
WHERE generation = %(generation)s AND tenant_id = %(tenant_id)s AND collection = %(collection)s
  AND id = ANY (%(ids)s::text[]);

-- name: sample_of_entries
SELECT id FROM index_entry
WHERE generation = %(generation)s AND tenant_id = %(tenant_id)s AND collection = %(collection)s
ORDER BY random() LIMIT %(limit)s;

-- name: count_entries
SELECT count(*) FROM index_entry
WHERE generation = %(generation)s AND tenant_id = %(tenant_id)s AND collection = %(collection)s;

-- name: serving_generation
SELECT * FROM index_generation WHERE state = 'serving';

-- name: serving_collections
-- The same for a search: whether its tenant has collections, and whether the principal may see all
-- their entries.
SELECT g.*, sees_whole_tenant() AS sees_all,
       EXISTS (SELECT 1 FROM index_collections c
               WHERE c.generation = g.generation AND c.tenant_id = current_tenant()) AS is_made
FROM index_generation g WHERE state = 'serving';

-- name: visible_entries
-- Which of these the principal may see: documents, chunks, events or memories.
SELECT r.artifact_id AS id FROM artifact_revision r WHERE r.artifact_id = ANY (%(ids)s::text[])
UNION ALL
SELECT c.chunk_id FROM revision_chunk c WHERE c.chunk_id = ANY (%(ids)s::text[])
UNION ALL
SELECT e.event_id::text FROM semantic_event e WHERE e.event_id = ANY (%(events)s::uuid[])
UNION ALL
SELECT m.memory_id FROM memory m WHERE m.memory_id = ANY (%(ids)s::text[]);

-- name: all_visible_entries
-- All entries of a collection that the principal may see, up to a limit.
(SELECT r.artifact_id AS id
 FROM visible_chunk s JOIN artifact_revision r USING (artifact_uid, revision_id)
 WHERE %(collection)s = 'artifacts' AND s.chunk_index = 0 LIMIT %(limit)s)
UNION ALL
(SELECT c.chunk_id
 FROM visible_chunk s JOIN revision_chunk c USING (artifact_uid, revision_id, chunk_index)
 WHERE %(collection)s = 'artifact_chunks' AND s.is_chunked LIMIT %(limit)s)
UNION ALL
(SELECT s.event_id::text FROM visible_event s
 WHERE %(collection)s = 'events' AND s.is_latest LIMIT %(limit)s)
UNION ALL
(SELECT m.memory_id FROM visible_memory m WHERE %(collection)s = 'memory' LIMIT %(limit)s);

-- name: live_generations
-- The generations that are kept up to date, the serving one first.
SELECT * FROM index_generation WHERE state IN ('serving', 'filling') ORDER BY state DESC;

-- name: begin_generation
-- The first generation serves at once, because there is no other.
INSERT INTO index_generation (state, provider, model, dimension, adopts)
VALUES (CASE WHEN EXISTS (SELECT 1 FROM index_generation WHERE state <> 'retired')
             THEN 'filling' ELSE 'serving' END,
        %(provider)s, %(model)s, %(dimension)s,
        NOT EXISTS (SELECT 1 FROM index_generation))
RETURNING *;

-- name: abandon_filling
UPDATE index_generation SET state = 'retired' WHERE state = 'filling';

-- name: lose_generation
UPDATE index_generation SET state = CASE state WHEN 'serving' THEN 'lost' ELSE 'retired' END
WHERE generation = %(generation)s AND state IN ('serving', 'filling');

-- name: unfilled_generation
SELECT * FROM index_generation
WHERE state IN ('serving', 'filling') AND filled_at IS NULL
ORDER BY generation DESC LIMIT 1;

-- name: pass_owners
UPDATE index_generation SET filled_after = %(after)s WHERE generation = %(generation)s;

-- name: retire_others
-- Retire the other generations before this one serves, unless it was abandoned meanwhile.
UPDATE index_generation SET state = 'retired'
WHERE state IN ('serving', 'lost') AND generation <> %(generation)s
  AND EXISTS (SELECT 1 FROM index_generation
              WHERE generation = %(generation)s AND state IN ('serving', 'filling'));

-- name: serve_generation
UPDATE index_generation SET state = 'serving', filled_at = now()
WHERE generation = %(generation)s AND state IN ('serving', 'filling');

-- name: retired_generations
SELECT * FROM index_generation WHERE state = 'retired';

-- name: forget_generation
-- Its entries follow by their foreign key.
DELETE FROM index_generation WHERE generation = %(generation)s AND state = 'retired';

-- name: progress_of_filling
-- How many owners the newest generation has passed, and how many there are.
WITH newest AS (
    SELECT generation, filled_after, filled_at FROM index_generation
    WHERE state IN ('serving', 'filling') ORDER BY generation DESC LIMIT 1
)
SELECT n.generation, n.filled_at IS NOT NULL AS is_filled,
       (SELECT count(*) FROM artifact_revision WHERE is_latest)
       + (SELECT count(*) FROM memory) AS owners,
       (SELECT count(*) FROM artifact_revision WHERE is_latest AND artifact_uid <= n.filled_after)
       + (SELECT count(*) FROM memory WHERE memory_id <= n.filled_after) AS passed
FROM newest n;

-- name: cached_embeddings
SELECT DISTINCT ON (k.tenant_id, k.text_hash) k.tenant_id, k.text_hash AS hash, k.vector
FROM unnest(%(tenants)s::uuid[], %(hashes)s::text[]) AS w (tenant_id, hash)
JOIN embedding_cache k ON k.tenant_id = w.tenant_id AND k.text_hash = w.hash
WHERE k.model = %(model)s;

-- name: keep_embeddings
INSERT INTO embedding_cache (tenant_id, model, text_hash, owner, vector)
SELECT DISTINCT ON (e.hash, e.owner) e.tenant_id, %(model)s, e.hash, e.owner, e.vector
FROM unnest(%(tenants)s::uuid[], %(hashes)s::text[], %(owners)s::text[], %(vectors)s::bytea[])
     AS e (tenant_id, hash, owner, vector)
ON CONFLICT (tenant_id, model, text_hash, owner) DO UPDATE SET used_at = now();
