-- What text searches go through: a row of some bytes for each chunk of a latest revision. The copies
-- in a hundred old revisions are in nobody's way, and the rows of a common word's matches lie on a
-- twentieth of the pages.
CREATE TABLE chunk_entry (
    artifact_uid  TEXT NOT NULL,
    revision_id   TEXT NOT NULL,
    chunk_index   INT NOT NULL,
    is_chunked    BOOLEAN NOT NULL,       -- else it is the whole text
    time          TIMESTAMPTZ NOT NULL,   -- of the source, else of the arrival
    artifact_type TEXT NOT NULL,
    source_system TEXT NOT NULL,
    PRIMARY KEY (artifact_uid, revision_id, chunk_index),
    FOREIGN KEY (artifact_uid, revision_id, chunk_index)
        REFERENCES revision_chunk (artifact_uid, revision_id, chunk_index) ON DELETE CASCADE
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.05);

-- IMMUTABLE, since a chunk never changes. The cost keeps Postgres from calling it for each row where
-- the index will do.
CREATE FUNCTION words_of_chunk(uid TEXT, revision TEXT, index INT) RETURNS TSVECTOR
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000
    RETURN (SELECT c.words FROM revision_chunk c
            WHERE c.artifact_uid = uid AND c.revision_id = revision AND c.chunk_index = index);

-- Nor does the title of a revision.
CREATE FUNCTION words_of_title(uid TEXT, revision TEXT) RETURNS TSVECTOR
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000
    RETURN (SELECT to_tsvector('english', coalesce(r.title, '')) FROM artifact_revision r
            WHERE r.artifact_uid = uid AND r.revision_id = revision);

CREATE FUNCTION enter_new_chunks() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO chunk_entry (
        artifact_uid, revision_id, chunk_index, is_chunked, time, artifact_type, source_system
    )
    SELECT c.artifact_uid, c.revision_id, c.chunk_index, r.is_chunked,
           coalesce(r.source_ts, r.ingested_at), r.artifact_type, r.source_system
    FROM added c JOIN artifact_revision r USING (artifact_uid, revision_id)
    WHERE r.is_latest;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER enter_new_chunks
    AFTER INSERT ON revision_chunk REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION enter_new_chunks();

CREATE FUNCTION enter_latest_chunks() RETURNS TRIGGER AS $$
BEGIN
    IF NEW.is_latest THEN
        INSERT INTO chunk_entry (
            artifact_uid, revision_id, chunk_index, is_chunked, time, artifact_type, source_system
        )
        SELECT c.artifact_uid, c.revision_id, c.chunk_index, NEW.is_chunked,
               coalesce(NEW.source_ts, NEW.ingested_at), NEW.artifact_type, NEW.source_system
        FROM revision_chunk c
        WHERE c.artifact_uid = NEW.artifact_uid AND c.revision_id = NEW.revision_id;
    ELSE
        DELETE FROM chunk_entry
        WHERE artifact_uid = NEW.artifact_uid AND revision_id = NEW.revision_id;
    END IF;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER enter_latest_chunks
    AFTER UPDATE OF is_latest ON artifact_revision
    FOR EACH ROW WHEN (OLD.is_latest IS DISTINCT FROM NEW.is_latest)
    EXECUTE FUNCTION enter_latest_chunks();

INSERT INTO chunk_entry (
    artifact_uid, revision_id, chunk_index, is_chunked, time, artifact_type, source_system
)
SELECT c.artifact_uid, c.revision_id, c.chunk_index, r.is_chunked,
       coalesce(r.source_ts, r.ingested_at), r.artifact_type, r.source_system
FROM revision_chunk c JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE r.is_latest;

-- What waits to be sorted in is read by every search: little of it.
CREATE INDEX idx_chunk_entry_words ON chunk_entry
    USING GIN (words_of_chunk(artifact_uid, revision_id, chunk_index))
    WITH (gin_pending_list_limit = 512);
CREATE INDEX idx_chunk_entry_title ON chunk_entry
    USING GIN (words_of_title(artifact_uid, revision_id))
    WITH (gin_pending_list_limit = 512) WHERE chunk_index = 0;
CREATE INDEX idx_chunk_entry_time ON chunk_entry (time);
CREATE INDEX idx_chunk_entry_type ON chunk_entry (artifact_type, is_chunked);
CREATE INDEX idx_chunk_entry_source ON chunk_entry (source_system, is_chunked);

DROP INDEX idx_revision_chunk_words;
ALTER TABLE revision_chunk ALTER COLUMN words SET STATISTICS 0;
ANALYZE chunk_entry;
