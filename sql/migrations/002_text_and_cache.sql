-- The text of every revision (the source of truth for all offsets), its chunks, and the cache of
-- what extractors answered.

CREATE TABLE revision_text (
    artifact_uid  TEXT NOT NULL,
    revision_id   TEXT NOT NULL,
    -- Postgres cannot hold U+0000: it stands here as U+2400, and nul_positions says where, so
    -- that the original comes back exactly and every offset stays what it was.
    content       TEXT NOT NULL,
    nul_positions INT[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (artifact_uid, revision_id),
    FOREIGN KEY (artifact_uid, revision_id)
        REFERENCES artifact_revision (artifact_uid, revision_id) ON DELETE CASCADE
);

CREATE TABLE revision_chunk (
    artifact_uid TEXT NOT NULL,
    revision_id  TEXT NOT NULL,
    chunk_index  INT NOT NULL CHECK (chunk_index >= 0),
    chunk_id     TEXT NOT NULL,        -- its id in Chroma; the artifact_id when it is the whole text
    start_char   INT NOT NULL CHECK (start_char >= 0),
    end_char     INT NOT NULL,
    token_count  INT NOT NULL,
    content_hash TEXT NOT NULL,        -- of the chunk's text: what the extraction cache goes by
    words        TSVECTOR NOT NULL,
    PRIMARY KEY (artifact_uid, revision_id, chunk_index),
    FOREIGN KEY (artifact_uid, revision_id)
        REFERENCES artifact_revision (artifact_uid, revision_id) ON DELETE CASCADE,
    CHECK (end_char > start_char)
);

CREATE INDEX idx_revision_chunk_words ON revision_chunk USING GIN (words);
CREATE INDEX idx_revision_chunk_hash ON revision_chunk (content_hash);
CREATE INDEX idx_revision_chunk_chunk_id ON revision_chunk (chunk_id);

CREATE TABLE extraction_cache (
    chunk_hash     TEXT NOT NULL,
    context_hash   TEXT NOT NULL,
    prompt_version TEXT NOT NULL,
    model          TEXT NOT NULL,
    answer         JSONB NOT NULL,
    usage          JSONB NOT NULL DEFAULT '{}',
    created_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (chunk_hash, context_hash, prompt_version, model)
);
