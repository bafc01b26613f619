-- Memories and conversations.

-- name: store_memory
-- xmax is zero in a row that this statement inserted.
INSERT INTO memory (memory_id, type, content, content_hash, confidence, conversation_id)
VALUES (%(id)s, %(type)s, %(content)s, %(content_hash)s, %(confidence)s, %(conversation_id)s)
ON CONFLICT (tenant_id, owner, type, content_hash) DO UPDATE
    SET content = excluded.content, confidence = excluded.confidence,
        conversation_id = coalesce(excluded.conversation_id, memory.conversation_id)
RETURNING xmax = 0 AS created;

-- name: list_memories
SELECT memory_id, type, content, confidence, conversation_id, created_at, updated_at
FROM memory
WHERE %(type)s::text IS NULL OR type = %(type)s
ORDER BY updated_at DESC, memory_id
LIMIT %(limit)s OFFSET %(offset)s;

-- name: count_memories
SELECT count(*) AS memories FROM memory WHERE %(type)s::text IS NULL OR type = %(type)s;

-- name: delete_memory
DELETE FROM memory WHERE memory_id = %(id)s;

-- name: append_turn
INSERT INTO history_turn (conversation_id, turn_index, role, content)
VALUES (%(conversation_id)s, %(turn_index)s, %(role)s, %(content)s)
ON CONFLICT DO NOTHING;

-- name: get_turn
SELECT role, content FROM history_turn
WHERE conversation_id = %(conversation_id)s AND turn_index = %(turn_index)s;

-- name: last_turns
-- The last turns, newest first; the caller reverses them.
SELECT turn_index, role, content, created_at FROM history_turn
WHERE conversation_id = %(conversation_id)s
ORDER BY turn_index DESC LIMIT %(limit)s;

-- name: count_turns
SELECT count(*) AS turns FROM history_turn WHERE conversation_id = %(conversation_id)s;

-- name: delete_turns
-- A whole conversation, or one turn of it.
DELETE FROM history_turn
WHERE conversation_id = %(conversation_id)s
  AND (%(turn_index)s::int IS NULL OR turn_index = %(turn_index)s);
