-- What stands in Chroma, told by Postgres: the index is a projection of the log, and this is how it
-- knows what it has to write and delete without asking Chroma.
DROP TABLE index_generation;

-- A generation is a set of collections, made with one embedding model. One serves searches; a new one
-- is filled while the old one serves, and takes over by a change of state here.
CREATE TABLE index_generation (
    generation   INT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Part of the names of its collections: two databases may share a Chroma.
    token        TEXT NOT NULL DEFAULT left(md5(gen_random_uuid()::text), 8),
    state        TEXT NOT NULL
        CHECK (state IN ('serving', 'filling', 'lost', 'retired')),
    provider     TEXT NOT NULL,
    model        TEXT NOT NULL,
    dimension    INT NOT NULL,
    adopts       BOOLEAN NOT NULL DEFAULT false,  -- takes vectors from collections of older versions
    made_at      TIMESTAMPTZ NULL,                -- when its collections were made in Chroma
    filled_after TEXT NOT NULL DEFAULT '',        -- the last owner that the filling has passed
    filled_at    TIMESTAMPTZ NULL,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE UNIQUE INDEX uq_index_generation_serving ON index_generation (state)
    WHERE state = 'serving';
CREATE UNIQUE INDEX uq_index_generation_filling ON index_generation (state)
    WHERE state = 'filling';

CREATE TABLE index_entry (
    generation INT NOT NULL REFERENCES index_generation (generation) ON DELETE CASCADE,
    collection TEXT NOT NULL,
    id         TEXT NOT NULL,
    owner      TEXT NOT NULL,   -- the artifact_uid or memory_id that it is derived from
    -- Of what was embedded and marked. NULL: it is being written, and may stand there or not.
    hash       TEXT NULL,
    PRIMARY KEY (generation, collection, id)
);

CREATE INDEX idx_index_entry_owner ON index_entry (generation, owner);
CREATE INDEX idx_index_entry_unconfirmed ON index_entry (generation) WHERE hash IS NULL;

-- Vectors that cost money, by the hash of their text, for each owner that uses them: deleting an
-- owner deletes its rows, and no other owner's.
CREATE TABLE embedding_cache (
    model     TEXT NOT NULL,    -- provider, model and dimension
    text_hash TEXT NOT NULL,
    owner     TEXT NOT NULL,
    vector    BYTEA NOT NULL,   -- 32-bit floats, little-endian
    used_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (model, text_hash, owner)
);

CREATE INDEX idx_embedding_cache_owner ON embedding_cache (owner);
-- Vectors are random to a compressor.
ALTER TABLE embedding_cache ALTER COLUMN vector SET STORAGE EXTERNAL;

-- The text of a chunk where the whole text is long: to cut a chunk out of it, Postgres reads the text
-- from its beginning. NULL: the text is short, and is cut.
ALTER TABLE revision_chunk ADD COLUMN text TEXT NULL;

-- Texts are cut in two steps: blocks of the whole, chunks of a block.
WITH long AS MATERIALIZED (
    SELECT t.artifact_uid, t.revision_id, t.content,
           (SELECT max(c.end_char - c.start_char) FROM revision_chunk c
            WHERE c.artifact_uid = t.artifact_uid AND c.revision_id = t.revision_id) AS longest
    FROM revision_text t WHERE length(t.content) > 50000
), block AS MATERIALIZED (
    SELECT l.artifact_uid, l.revision_id, number,
           substr(l.content, number * 100000 + 1, 100000 + l.longest) AS content
    FROM long l CROSS JOIN generate_series(0, length(l.content) / 100000) AS number
)
UPDATE revision_chunk c
SET text = substr(b.content, c.start_char - b.number * 100000 + 1, c.end_char - c.start_char)
FROM block b
WHERE b.artifact_uid = c.artifact_uid AND b.revision_id = c.revision_id
  AND b.number = c.start_char / 100000;

CREATE FUNCTION text_of_chunk(stored TEXT, content TEXT, start_char INT, end_char INT) RETURNS TEXT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce(stored, substr(content, start_char + 1, end_char - start_char));

-- Hashes as `memory_core.kernel.ids.sha256` makes them.
CREATE FUNCTION hash_of_text(content TEXT) RETURNS TEXT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN encode(sha256(convert_to(content, 'UTF8')), 'hex');
