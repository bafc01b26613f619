-- No two sources meet in one artifact: the id of an artifact belongs to the source that came first.
CREATE TABLE artifact_source (
    artifact_uid  TEXT PRIMARY KEY,
    source_system TEXT NOT NULL,
    source_id     TEXT NOT NULL               -- '' when the source gave none
);

-- Where two sources have met already, the revisions stay as they are; the later source has an
-- artifact of its own from its next document on.
INSERT INTO artifact_source (artifact_uid, source_system, source_id)
SELECT DISTINCT ON (artifact_uid) artifact_uid, source_system, source_id
FROM artifact_revision ORDER BY artifact_uid, ingested_at, revision_id;

CREATE FUNCTION claim_artifact_source() RETURNS TRIGGER AS $$
DECLARE
    other RECORD;
BEGIN
    -- In order: two transactions with the same new artifacts never wait for each other both ways.
    INSERT INTO artifact_source (artifact_uid, source_system, source_id)
    SELECT DISTINCT ON (artifact_uid) artifact_uid, source_system, source_id
    FROM added ORDER BY artifact_uid
    ON CONFLICT (artifact_uid) DO NOTHING;
    SELECT a.artifact_uid, s.source_system, s.source_id INTO other
    FROM added a JOIN artifact_source s USING (artifact_uid)
    WHERE (a.source_system, a.source_id) <> (s.source_system, s.source_id)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'artifact % is of another source: % %',
            other.artifact_uid, other.source_system, other.source_id
            USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER claim_artifact_source
    AFTER INSERT ON artifact_revision REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION claim_artifact_source();

CREATE FUNCTION keep_artifact_source() RETURNS TRIGGER AS $$
BEGIN
    RAISE EXCEPTION 'the source of artifact % cannot change', OLD.artifact_uid
        USING ERRCODE = 'check_violation';
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER keep_artifact_source
    BEFORE UPDATE OF artifact_uid, source_system, source_id ON artifact_revision
    FOR EACH ROW
    WHEN ((OLD.artifact_uid, OLD.source_system, OLD.source_id)
          IS DISTINCT FROM (NEW.artifact_uid, NEW.source_system, NEW.source_id))
    EXECUTE FUNCTION keep_artifact_source();

CREATE FUNCTION release_artifact_source() RETURNS TRIGGER AS $$
BEGIN
    DELETE FROM artifact_source s USING removed r
    WHERE s.artifact_uid = r.artifact_uid
      AND NOT EXISTS (SELECT 1 FROM artifact_revision left_over
                      WHERE left_over.artifact_uid = s.artifact_uid);
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER release_artifact_source
    AFTER DELETE ON artifact_revision REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION release_artifact_source();
