-- Short memories an assistant keeps about its user, and the turns of conversations.

CREATE TABLE memory (
    memory_id       TEXT PRIMARY KEY,
    type            TEXT NOT NULL CHECK (type IN ('preference', 'fact', 'project', 'decision')),
    content         TEXT NOT NULL,
    content_hash    TEXT NOT NULL,
    confidence      DOUBLE PRECISION NOT NULL CHECK (confidence >= 0.0 AND confidence <= 1.0),
    conversation_id TEXT NULL,
    words           TSVECTOR GENERATED ALWAYS AS (to_tsvector('english', content)) STORED,
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    UNIQUE (type, content_hash)
);

CREATE INDEX idx_memory_newest ON memory (updated_at DESC, memory_id);
CREATE INDEX idx_memory_type_newest ON memory (type, updated_at DESC, memory_id);
CREATE INDEX idx_memory_words ON memory USING GIN (words);

CREATE TRIGGER update_memory_updated_at
    BEFORE UPDATE ON memory
    FOR EACH ROW EXECUTE FUNCTION update_updated_at_column();

CREATE TABLE history_turn (
    conversation_id TEXT NOT NULL,
    turn_index      INT NOT NULL CHECK (turn_index >= 0),
    role            TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system')),
    content         TEXT NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (conversation_id, turn_index)
);
