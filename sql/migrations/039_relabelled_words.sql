-- A title is searched by pairs of characters like the text below it.
DROP TRIGGER relabel_entries ON artifact_revision;

CREATE OR REPLACE FUNCTION relabel_entries() RETURNS TRIGGER AS $$
BEGIN
    IF NEW.title IS DISTINCT FROM OLD.title THEN
        UPDATE revision_chunk c
        SET words = setweight(words_of_text(coalesce(NEW.title, '')), 'A')
                    || words_of_text(substr(t.content, c.start_char + 1,
                                            c.end_char - c.start_char))
        FROM revision_text t
        WHERE t.artifact_uid = NEW.artifact_uid AND t.revision_id = NEW.revision_id
          AND c.artifact_uid = NEW.artifact_uid AND c.revision_id = NEW.revision_id
          AND c.chunk_index = 0;
    END IF;
    IF NEW.is_latest THEN
        DELETE FROM chunk_entry
        WHERE artifact_uid = NEW.artifact_uid AND revision_id = NEW.revision_id;
        INSERT INTO chunk_entry (
            artifact_uid, revision_id, chunk_index, is_chunked, time, artifact_type, source_system
        )
        SELECT c.artifact_uid, c.revision_id, c.chunk_index, NEW.is_chunked,
               coalesce(NEW.source_ts, NEW.ingested_at), NEW.artifact_type, NEW.source_system
        FROM revision_chunk c
        WHERE c.artifact_uid = NEW.artifact_uid AND c.revision_id = NEW.revision_id;
    END IF;
    IF NEW.artifact_type <> OLD.artifact_type THEN
        DELETE FROM event_entry n USING semantic_event e
        WHERE e.event_id = n.event_id
          AND e.artifact_uid = NEW.artifact_uid AND e.revision_id = NEW.revision_id;
        INSERT INTO event_entry (event_id, event_time, created_at, confidence, is_latest)
        SELECT event_id, event_time, created_at, confidence, is_latest FROM semantic_event
        WHERE artifact_uid = NEW.artifact_uid AND revision_id = NEW.revision_id;
    END IF;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER relabel_entries
    AFTER UPDATE OF title, artifact_type, source_ts ON artifact_revision
    FOR EACH ROW
    WHEN ((OLD.title, OLD.artifact_type, OLD.source_ts)
          IS DISTINCT FROM (NEW.title, NEW.artifact_type, NEW.source_ts))
    EXECUTE FUNCTION relabel_entries();
