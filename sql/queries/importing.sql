-- What an import compares its files with, and what it records about them.

-- name: latest_hashes
-- For imports: whether a document is unchanged, and where it was seen. A document without its text
-- counts as changed.
SELECT r.artifact_uid,
       CASE WHEN EXISTS (SELECT 1 FROM revision_text t WHERE t.artifact_uid = r.artifact_uid
                                                         AND t.revision_id = r.revision_id)
            THEN r.content_hash ELSE '' END AS content_hash,
       r.artifact_type, r.source_system, r.source_id, r.source_url,
       coalesce(a.addresses, '{}') AS addresses
FROM artifact_revision r
LEFT JOIN (
    -- An array, because hardly any document has a second address.
    SELECT artifact_uid, array_agg(address ORDER BY address) AS addresses FROM import_address
    WHERE artifact_uid = ANY (%(uids)s::text[]) GROUP BY artifact_uid
) a USING (artifact_uid)
WHERE r.artifact_uid = ANY (%(uids)s::text[]) AND r.is_latest;

-- name: note_addresses
INSERT INTO import_address (artifact_uid, address)
SELECT DISTINCT n.uid, n.address
FROM unnest(%(uids)s::text[], %(addresses)s::text[]) AS n (uid, address)
WHERE EXISTS (SELECT 1 FROM artifact_revision r WHERE r.artifact_uid = n.uid)
ON CONFLICT DO NOTHING;

-- name: revision_hashes
-- For git history: every revision that is stored with its text, and which one is the latest.
SELECT r.artifact_uid, r.source_id, r.content_hash, r.is_latest
FROM artifact_revision r JOIN revision_text t USING (artifact_uid, revision_id)
WHERE r.artifact_uid = ANY (%(uids)s::text[]);

-- name: is_imported
SELECT EXISTS (SELECT 1 FROM artifact_revision
               WHERE is_latest AND starts_with(source_url, %(prefix)s)) AS found;

-- name: sample_imported
-- A sample of a root's documents, always the same ones: uids are hashes, so their order is random.
SELECT source_url FROM artifact_revision
WHERE is_latest AND starts_with(source_url, %(prefix)s)
ORDER BY artifact_uid LIMIT %(limit)s;

-- name: list_imported
-- Documents that were imported from below an address. `--prune` compares them with the disk.
SELECT r.artifact_uid, r.source_id, r.source_url,
       ARRAY(SELECT a.address FROM import_address a
             WHERE a.artifact_uid = r.artifact_uid) AS addresses
FROM artifact_revision r
WHERE r.is_latest AND starts_with(r.source_url, 'import:')
  AND (starts_with(r.source_url, %(prefix)s)
       OR r.artifact_uid IN (SELECT a.artifact_uid FROM import_address a
                             WHERE starts_with(a.address, %(prefix)s)))
ORDER BY r.source_url;

-- name: memory_exists
SELECT EXISTS (SELECT 1 FROM memory WHERE memory_id = %(id)s) AS is_there;

-- name: date_memory
-- Set the date of the first mention, if it is earlier.
UPDATE memory SET created_at = least(created_at, %(at)s) WHERE memory_id = %(id)s;

-- name: date_turn
UPDATE history_turn SET created_at = least(created_at, %(at)s)
WHERE conversation_id = %(conversation_id)s AND turn_index = %(turn_index)s;
