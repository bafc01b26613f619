-- The index in Chroma: what should stand there, what does, and its generations.

-- name: lock_index
-- One writer of Chroma at a time, until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtext('mcp-memory'), hashtext('index'));

-- fragment: text_of_event
-- A narrative often leaves unsaid what its whole document is about.
e.narrative || CASE WHEN e.document_title <> '' THEN E'\n' || e.document_title ELSE '' END

-- fragment: hash_of_memory
-- With what searches filter by: another confidence is another entry.
concat_ws('/', hash_of_text(m.content), m.type, m.confidence)

-- fragment: expected_entries
-- Everything that should stand in Chroma for the owners: latest revisions whose text is there, their
-- chunks and events, and memories.
    SELECT 'artifacts' AS collection, r.artifact_id AS id, r.artifact_uid AS owner,
           (SELECT CASE WHEN count(*) = 1 THEN min(c.content_hash)
                        ELSE hash_of_text(string_agg(c.content_hash, '' ORDER BY c.chunk_index)) END
            FROM revision_chunk c
            WHERE c.artifact_uid = r.artifact_uid AND c.revision_id = r.revision_id) AS hash
    FROM artifact_revision r JOIN revision_text t USING (artifact_uid, revision_id)
    WHERE r.is_latest AND r.artifact_uid = ANY (%(owners)s::text[])
    UNION ALL
    SELECT 'artifact_chunks', c.chunk_id, c.artifact_uid, c.content_hash
    FROM artifact_revision r
    JOIN revision_text t USING (artifact_uid, revision_id)
    JOIN revision_chunk c USING (artifact_uid, revision_id)
    WHERE r.is_latest AND r.is_chunked AND r.artifact_uid = ANY (%(owners)s::text[])
    UNION ALL
    SELECT 'events', e.event_id::text, e.artifact_uid, hash_of_text(
    -- include: text_of_event
    )
    FROM artifact_revision r JOIN semantic_event e USING (artifact_uid, revision_id)
    WHERE r.is_latest AND r.artifact_uid = ANY (%(owners)s::text[])
    UNION ALL
    SELECT 'memory', m.memory_id, m.memory_id,
    -- include: hash_of_memory
    FROM memory m WHERE m.memory_id = ANY (%(owners)s::text[])

-- name: index_difference
-- Entries of these owners that do not stand in Chroma as they should: with the hash that they should
-- have, or NULL when they should not be there.
SELECT collection, id, coalesce(w.owner, s.owner) AS owner, w.hash AS wanted,
       s.owner IS NOT NULL AS stands
FROM (
-- include: expected_entries
) w
FULL JOIN (
    SELECT collection, id, owner, hash FROM index_entry
    WHERE generation = %(generation)s AND owner = ANY (%(owners)s::text[])
) s USING (collection, id)
WHERE w.hash IS NULL OR s.hash IS NULL OR w.hash <> s.hash;

-- name: chunks_to_embed
-- These chunks, and all chunks of these artifacts, whose vectors make up theirs; in their order.
WITH wanted AS (
    SELECT c.artifact_uid, c.revision_id, c.chunk_index FROM revision_chunk c
    WHERE c.chunk_id = ANY (%(chunks)s::text[])
    UNION
    SELECT c.artifact_uid, c.revision_id, c.chunk_index
    FROM artifact_revision r JOIN revision_chunk c USING (artifact_uid, revision_id)
    WHERE r.artifact_id = ANY (%(artifacts)s::text[])
)
SELECT artifact_uid AS owner, r.artifact_id, r.is_chunked, c.chunk_id, c.content_hash AS hash
FROM wanted
JOIN revision_chunk c USING (artifact_uid, revision_id, chunk_index)
JOIN artifact_revision r USING (artifact_uid, revision_id)
ORDER BY artifact_uid, revision_id, chunk_index;

-- name: texts_of_chunks
SELECT c.chunk_id AS id, text_of_chunk(c.text, t.content, c.start_char, c.end_char) AS text
FROM revision_chunk c JOIN revision_text t USING (artifact_uid, revision_id)
WHERE c.chunk_id = ANY (%(ids)s::text[]);

-- name: texts_of_events
SELECT e.event_id::text AS id, e.artifact_uid AS owner,
-- include: text_of_event
AS text
FROM semantic_event e WHERE e.event_id = ANY (%(ids)s::uuid[]);

-- name: texts_of_memories
SELECT m.memory_id AS id, m.memory_id AS owner, m.content AS text, m.type, m.confidence,
-- include: hash_of_memory
AS hash
FROM memory m WHERE m.memory_id = ANY (%(ids)s::text[]);

-- name: announce_entries
-- Before Chroma is written: whatever happens then, these may stand there.
INSERT INTO index_entry (generation, collection, id, owner, hash)
SELECT %(generation)s, e.collection, e.id, e.owner, NULL
FROM unnest(%(collections)s::text[], %(ids)s::text[], %(owners)s::text[])
     AS e (collection, id, owner)
ON CONFLICT (generation, collection, id) DO UPDATE SET hash = NULL, owner = excluded.owner;

-- name: unconfirmed_entries
SELECT EXISTS (SELECT 1 FROM index_entry WHERE hash IS NULL) AS exist;

-- name: confirm_entries
UPDATE index_entry s SET hash = e.hash
FROM unnest(%(collections)s::text[], %(ids)s::text[], %(hashes)s::text[])
     AS e (collection, id, hash)
WHERE s.generation = %(generation)s AND s.collection = e.collection AND s.id = e.id;

-- name: forget_entries
DELETE FROM index_entry s
USING unnest(%(collections)s::text[], %(ids)s::text[]) AS e (collection, id)
WHERE s.generation = %(generation)s AND s.collection = e.collection AND s.id = e.id;

-- name: doubt_entries
-- What was found in Chroma otherwise than it is told here: it is written again, or deleted.
INSERT INTO index_entry (generation, collection, id, owner, hash)
SELECT %(generation)s, e.collection, e.id, %(owner)s, NULL
FROM unnest(%(collections)s::text[], %(ids)s::text[]) AS e (collection, id)
ON CONFLICT (generation, collection, id) DO UPDATE SET hash = NULL
RETURNING owner;

-- name: owners_of_index
-- A page of all that have entries: artifacts and memories in the order of their ids.
SELECT owner FROM (
    (SELECT artifact_uid AS owner FROM artifact_revision
     WHERE is_latest AND artifact_uid > %(after)s ORDER BY artifact_uid LIMIT %(limit)s)
    UNION ALL
    (SELECT memory_id FROM memory WHERE memory_id > %(after)s ORDER BY memory_id LIMIT %(limit)s)
) o
ORDER BY owner LIMIT %(limit)s;

-- name: owners_with_entries
-- The same, of those that have entries now.
SELECT DISTINCT owner FROM index_entry
WHERE generation = %(generation)s AND owner > %(after)s ORDER BY owner LIMIT %(limit)s;

-- name: entries_of_collection
SELECT id, owner, hash FROM index_entry
WHERE generation = %(generation)s AND collection = %(collection)s AND id > %(after)s
ORDER BY id LIMIT %(limit)s;

-- name: entries_by_id
SELECT id, owner, hash FROM index_entry
WHERE generation = %(generation)s AND collection = %(collection)s AND id = ANY (%(ids)s::text[]);

-- name: sample_of_entries
SELECT id, hash FROM index_entry
WHERE generation = %(generation)s AND collection = %(collection)s
ORDER BY random() LIMIT %(limit)s;

-- name: count_entries
SELECT collection, count(*) AS entries FROM index_entry
WHERE generation = %(generation)s GROUP BY collection;

-- name: count_entries_of_owner
SELECT count(*) AS entries FROM index_entry
JOIN index_generation g USING (generation) WHERE g.state = 'serving' AND owner = %(owner)s;

-- name: serving_generation
SELECT * FROM index_generation WHERE state = 'serving';

-- name: live_generations
-- Those that are kept up to date, the one that serves first.
SELECT * FROM index_generation WHERE state IN ('serving', 'filling') ORDER BY state DESC;

-- name: begin_generation
-- The first one serves at once: there is none beside it.
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

-- name: generation_is_made
UPDATE index_generation SET made_at = now() WHERE generation = %(generation)s;

-- name: unfilled_generation
SELECT * FROM index_generation
WHERE state IN ('serving', 'filling') AND filled_at IS NULL
ORDER BY generation DESC LIMIT 1;

-- name: pass_owners
UPDATE index_generation SET filled_after = %(after)s WHERE generation = %(generation)s;

-- name: retire_others
-- Before another takes their place, unless that was given up meanwhile.
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
-- Its entries follow.
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
SELECT DISTINCT ON (text_hash) text_hash, vector FROM embedding_cache
WHERE model = %(model)s AND text_hash = ANY (%(hashes)s::text[]);

-- name: keep_embeddings
INSERT INTO embedding_cache (model, text_hash, owner, vector)
SELECT DISTINCT ON (e.hash, e.owner) %(model)s, e.hash, e.owner, e.vector
FROM unnest(%(hashes)s::text[], %(owners)s::text[], %(vectors)s::bytea[])
     AS e (hash, owner, vector)
ON CONFLICT (model, text_hash, owner) DO UPDATE SET used_at = now();

-- name: forget_embeddings
DELETE FROM embedding_cache WHERE owner = ANY (%(owners)s::text[]);

-- name: sweep_embeddings
-- Those that were not used for the given days and that no entry stands for.
DELETE FROM embedding_cache k
WHERE k.used_at < now() - make_interval(days => %(days)s)
  AND NOT EXISTS (SELECT 1 FROM index_entry s
                  WHERE s.owner = k.owner
                    AND s.generation IN (SELECT generation FROM index_generation
                                         WHERE state IN ('serving', 'filling'))
                    AND split_part(s.hash, '/', 1) = k.text_hash);
