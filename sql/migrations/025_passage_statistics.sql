-- How many chunks text searches go through, and how many characters these have together: what BM25 needs
-- to know of the whole. Each statement that enters or removes chunks adds a row of what it changed, so
-- that writers never wait for each other; the sum of the rows is exact at every moment. Housekeeping
-- counts again and makes one row of them.
ALTER TABLE chunk_entry ADD COLUMN length INT NOT NULL DEFAULT 0;  -- characters
UPDATE chunk_entry s SET length = c.end_char - c.start_char
FROM revision_chunk c
WHERE c.artifact_uid = s.artifact_uid AND c.revision_id = s.revision_id
  AND c.chunk_index = s.chunk_index;

CREATE TABLE passage_statistics (
    change_id  BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    passages   BIGINT NOT NULL,  -- chunks entered, less chunks removed
    characters BIGINT NOT NULL
);
INSERT INTO passage_statistics (passages, characters)
SELECT count(*), coalesce(sum(length), 0) FROM chunk_entry;

CREATE FUNCTION measure_chunk() RETURNS TRIGGER AS $$
BEGIN
    SELECT c.end_char - c.start_char INTO NEW.length FROM revision_chunk c
    WHERE c.artifact_uid = NEW.artifact_uid AND c.revision_id = NEW.revision_id
      AND c.chunk_index = NEW.chunk_index;
    NEW.length := coalesce(NEW.length, 0);
    RETURN NEW;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER measure_chunk BEFORE INSERT ON chunk_entry
    FOR EACH ROW EXECUTE FUNCTION measure_chunk();

CREATE FUNCTION count_entered_chunks() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO passage_statistics (passages, characters)
    SELECT count(*), sum(length) FROM entered HAVING count(*) > 0;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER count_entered_chunks
    AFTER INSERT ON chunk_entry REFERENCING NEW TABLE AS entered
    FOR EACH STATEMENT EXECUTE FUNCTION count_entered_chunks();

CREATE FUNCTION count_removed_chunks() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO passage_statistics (passages, characters)
    SELECT -count(*), -sum(length) FROM removed HAVING count(*) > 0;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER count_removed_chunks
    AFTER DELETE ON chunk_entry REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_removed_chunks();
