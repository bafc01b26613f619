-- When a commitment is due is a field of its own: its time says when it was promised.

ALTER TABLE semantic_event
    ADD COLUMN due_time TIMESTAMPTZ NULL,
    ADD COLUMN due_quote TEXT NULL,
    ADD COLUMN due_start_char INT NULL,
    ADD COLUMN due_end_char INT NULL,
    ADD CONSTRAINT due_of_commitments CHECK (due_time IS NULL OR category = 'Commitment'),
    ADD CONSTRAINT due_words_have_a_place CHECK (
        num_nulls(due_quote, due_start_char, due_end_char) IN (0, 3)
        AND (due_quote IS NULL OR due_time IS NOT NULL)
        AND (due_start_char IS NULL OR due_start_char >= 0 AND due_start_char < due_end_char));
COMMENT ON COLUMN semantic_event.event_time IS 'When it happened, or was promised.';
COMMENT ON COLUMN semantic_event.due_time IS 'Of a commitment: when it is due.';
COMMENT ON COLUMN semantic_event.due_quote IS
    'The words that state the due date, exactly; NULL where it is the extractor''s reading alone.';

-- Searches for a time mean "happened or due": the entry of a commitment stands at its due date.
ALTER TABLE event_entry ADD COLUMN due_time TIMESTAMPTZ NULL;
COMMENT ON COLUMN event_entry.event_time IS 'When it is due, else when it happened.';
CREATE OR REPLACE VIEW visible_event AS
    SELECT * FROM event_entry WHERE audience_id = ANY ((SELECT visible_audiences())::int[]);

CREATE OR REPLACE FUNCTION enter_events() RETURNS TRIGGER AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM event_entry USING changed c WHERE event_entry.event_id = c.event_id;
    END IF;
    INSERT INTO event_entry (
        event_id, event_time, due_time, created_at, confidence, is_latest, tenant_id, audience_id
    )
    SELECT event_id, coalesce(due_time, event_time), due_time, created_at, confidence, is_latest,
           tenant_id, audience_id
    FROM changed;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp;

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
            artifact_uid, revision_id, chunk_index, is_chunked, time, artifact_type, source_system,
            tenant_id, audience_id
        )
        SELECT c.artifact_uid, c.revision_id, c.chunk_index, NEW.is_chunked,
               coalesce(NEW.source_ts, NEW.ingested_at), NEW.artifact_type, NEW.source_system,
               NEW.tenant_id, NEW.audience_id
        FROM revision_chunk c
        WHERE c.artifact_uid = NEW.artifact_uid AND c.revision_id = NEW.revision_id;
    END IF;
    IF NEW.artifact_type <> OLD.artifact_type THEN
        DELETE FROM event_entry n USING semantic_event e
        WHERE e.event_id = n.event_id
          AND e.artifact_uid = NEW.artifact_uid AND e.revision_id = NEW.revision_id;
        INSERT INTO event_entry (
            event_id, event_time, due_time, created_at, confidence, is_latest, tenant_id,
            audience_id
        )
        SELECT event_id, coalesce(due_time, event_time), due_time, created_at, confidence,
               is_latest, tenant_id, audience_id
        FROM semantic_event
        WHERE artifact_uid = NEW.artifact_uid AND revision_id = NEW.revision_id;
    END IF;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp;

-- Until now the time of a commitment was its due date. When it was promised is not known of those:
-- extracting them again tells it. Their entries keep their place, so they are not made again: that
-- takes minutes where there are many. The indexes of their words are made in 046, once.
DROP INDEX idx_event_entry_latest, idx_event_entry_superseded;
UPDATE event_entry n SET due_time = e.event_time
FROM semantic_event e
WHERE e.event_id = n.event_id AND e.category = 'Commitment' AND e.event_time IS NOT NULL;
ALTER TABLE semantic_event DISABLE TRIGGER enter_changed_events;
UPDATE semantic_event SET due_time = event_time, event_time = NULL
WHERE category = 'Commitment' AND event_time IS NOT NULL;
ALTER TABLE semantic_event ENABLE TRIGGER enter_changed_events;

-- The words of a due date are the text at their offsets, like every quote. A long text is cut into
-- windows first, since Postgres walks through a text from its beginning to reach an offset.
CREATE FUNCTION broken_due_words(uid TEXT, revision TEXT) RETURNS TABLE (event_id UUID)
    LANGUAGE sql STABLE AS $$
    WITH quoted AS MATERIALIZED (
        SELECT e.event_id, e.due_start_char AS start_char, e.due_end_char AS end_char,
               e.due_quote AS quote, e.due_start_char / 131072 * 131072 AS window_start
        FROM semantic_event e
        WHERE e.artifact_uid = uid AND e.revision_id = revision AND e.due_quote IS NOT NULL
    ),
    windows AS MATERIALIZED (
        SELECT w.window_start,
               (SELECT substr(t.content, w.window_start + 1, w.length) FROM revision_text t
                WHERE t.artifact_uid = uid AND t.revision_id = revision) AS text
        FROM (SELECT window_start, max(end_char) - window_start AS length
              FROM quoted GROUP BY window_start) w
    )
    SELECT q.event_id
    FROM quoted q JOIN windows w USING (window_start)
    WHERE w.text IS NULL
       OR substr(w.text, q.start_char - w.window_start + 1, q.end_char - q.start_char) <> q.quote
       OR char_length(q.quote) <> q.end_char - q.start_char
$$;

CREATE FUNCTION check_due_words() RETURNS TRIGGER AS $$
DECLARE
    bad RECORD;
BEGIN
    SELECT e.artifact_uid, e.revision_id, e.due_start_char, e.due_end_char INTO bad
    FROM (SELECT DISTINCT artifact_uid, revision_id FROM changed WHERE due_quote IS NOT NULL) n
    CROSS JOIN LATERAL broken_due_words(n.artifact_uid, n.revision_id) b
    JOIN semantic_event e USING (event_id)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the due date of % % at [%, %) is not the text that stands there',
            bad.artifact_uid, bad.revision_id, bad.due_start_char, bad.due_end_char
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER check_due_words_on_insert
    AFTER INSERT ON semantic_event REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION check_due_words();
COMMENT ON TRIGGER check_due_words_on_insert ON semantic_event IS
    'The words of a due date are the text at their offsets.';

CREATE FUNCTION keep_due_words() RETURNS TRIGGER AS $$
BEGIN
    RAISE EXCEPTION 'the words of a due date are written once, with their event'
        USING ERRCODE = 'check_violation';
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER keep_due_words
    BEFORE UPDATE OF due_quote, due_start_char, due_end_char ON semantic_event
    FOR EACH ROW
    WHEN ((OLD.due_quote, OLD.due_start_char, OLD.due_end_char)
          IS DISTINCT FROM (NEW.due_quote, NEW.due_start_char, NEW.due_end_char))
    EXECUTE FUNCTION keep_due_words();
COMMENT ON TRIGGER keep_due_words ON semantic_event IS
    'The words of a due date are checked when their event is stored, and never change.';
