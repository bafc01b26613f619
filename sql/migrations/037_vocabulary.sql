-- The vocabulary: how many chunks of latest revisions have each word. Each chunk that is entered or
-- removed leaves a row with its words, so that writers never wait for each other; housekeeping, and a
-- search that finds very many of these rows, fold them into the counts. Counts and rows together are
-- exact at every moment.
CREATE TABLE word_frequency (
    tenant_id UUID NOT NULL DEFAULT current_tenant(),
    lexeme    TEXT COLLATE "C" NOT NULL,
    passages  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, lexeme)
);

CREATE TABLE word_change (
    change_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id UUID NOT NULL DEFAULT current_tenant(),
    passages  INT NOT NULL,      -- 1: entered, -1: removed
    words     TSVECTOR NOT NULL  -- without their places
);

INSERT INTO word_frequency (tenant_id, lexeme, passages)
SELECT s.tenant_id, w.lexeme, count(*)
FROM chunk_entry s
JOIN revision_chunk c USING (artifact_uid, revision_id, chunk_index)
CROSS JOIN LATERAL unnest(tsvector_to_array(c.words)) AS w (lexeme)
GROUP BY s.tenant_id, w.lexeme;

CREATE OR REPLACE FUNCTION count_entered_chunks() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO passage_statistics (tenant_id, passages, characters)
    SELECT tenant_id, count(*), sum(length) FROM entered GROUP BY tenant_id;
    INSERT INTO word_change (tenant_id, passages, words)
    SELECT e.tenant_id, 1, strip(c.words)
    FROM entered e JOIN revision_chunk c USING (artifact_uid, revision_id, chunk_index);
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

-- Of a chunk that is deleted itself, the words are gone by now: the next trigger has counted them.
CREATE OR REPLACE FUNCTION count_removed_chunks() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO passage_statistics (tenant_id, passages, characters)
    SELECT tenant_id, -count(*), -sum(length) FROM removed GROUP BY tenant_id;
    INSERT INTO word_change (tenant_id, passages, words)
    SELECT e.tenant_id, -1, strip(c.words)
    FROM removed e JOIN revision_chunk c USING (artifact_uid, revision_id, chunk_index);
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE FUNCTION count_changed_words() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO word_change (tenant_id, passages, words)
    SELECT s.tenant_id, -1, strip(OLD.words) FROM chunk_entry s
    WHERE s.artifact_uid = OLD.artifact_uid AND s.revision_id = OLD.revision_id
      AND s.chunk_index = OLD.chunk_index;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    INSERT INTO word_change (tenant_id, passages, words)
    SELECT s.tenant_id, 1, strip(NEW.words) FROM chunk_entry s
    WHERE s.artifact_uid = NEW.artifact_uid AND s.revision_id = NEW.revision_id
      AND s.chunk_index = NEW.chunk_index;
    RETURN NEW;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER count_deleted_words BEFORE DELETE ON revision_chunk
    FOR EACH ROW EXECUTE FUNCTION count_changed_words();
CREATE TRIGGER count_replaced_words BEFORE UPDATE OF words ON revision_chunk
    FOR EACH ROW WHEN (OLD.words IS DISTINCT FROM NEW.words)
    EXECUTE FUNCTION count_changed_words();

-- The words that weigh much in a chunk, each with its strength: a part of BM25, as if chunks had 1,500
-- characters on average. Of a word that stands in most chunks, a search follows the strongest.
CREATE FUNCTION strong_words_of_chunk(uid TEXT, revision TEXT, index INT) RETURNS TEXT[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000
    RETURN (SELECT array_agg(w.lexeme || chr(1) || w.strength)
            FROM (SELECT o.lexeme,
                         width_bucket(o.often * 2.2 / (o.often + 0.3 + 0.0006 * o.length),
                                      ARRAY[1.2, 1.4, 1.6, 1.75, 1.85, 1.95]::float8[]) AS strength
                  FROM (SELECT l.lexeme, cardinality(l.positions)::float8 AS often,
                               (c.end_char - c.start_char)::float8 AS length
                        FROM revision_chunk c CROSS JOIN unnest(c.words) l
                        WHERE c.artifact_uid = uid AND c.revision_id = revision
                          AND c.chunk_index = index) o) w
            WHERE w.strength > 0);

CREATE INDEX idx_chunk_entry_strong_words ON chunk_entry
    USING GIN (strong_words_of_chunk(artifact_uid, revision_id, chunk_index))
    WITH (gin_pending_list_limit = 512);

CREATE FUNCTION forget_chunks() RETURNS TRIGGER AS $$
BEGIN
    DELETE FROM passage_statistics;
    DELETE FROM word_change;
    DELETE FROM word_frequency;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER forget_chunks AFTER TRUNCATE ON chunk_entry
    FOR EACH STATEMENT EXECUTE FUNCTION forget_chunks();
