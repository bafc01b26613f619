-- Proof at any size, and requests that know when they were made.

-- Which quotes of a revision are not the text at their offsets. Postgres walks through a text from
-- its beginning to reach an offset: for thousands of quotes in a text of megabytes that takes
-- minutes. So a long text is first cut into windows, and quotes are compared within theirs.
CREATE FUNCTION broken_evidence(uid TEXT, revision TEXT) RETURNS TABLE (evidence_id UUID)
    LANGUAGE sql STABLE AS $$
    WITH quoted AS MATERIALIZED (
        SELECT v.evidence_id, v.start_char, v.end_char, v.quote,
               v.start_char / 131072 * 131072 AS window_start
        FROM event_evidence v
        WHERE v.artifact_uid = uid AND v.revision_id = revision
    ),
    windows AS MATERIALIZED (
        SELECT w.window_start,
               (SELECT substr(t.content, w.window_start + 1, w.length) FROM revision_text t
                WHERE t.artifact_uid = uid AND t.revision_id = revision) AS text
        FROM (SELECT window_start, max(end_char) - window_start AS length
              FROM quoted GROUP BY window_start) w
    )
    SELECT q.evidence_id
    FROM quoted q JOIN windows w USING (window_start)
    WHERE w.text IS NULL  -- the text is gone
       OR substr(w.text, q.start_char - w.window_start + 1, q.end_char - q.start_char) <> q.quote
       OR char_length(q.quote) <> q.end_char - q.start_char  -- past the end of the text
$$;

CREATE OR REPLACE FUNCTION check_evidence_quotes() RETURNS TRIGGER AS $$
DECLARE
    bad RECORD;
BEGIN
    SELECT v.artifact_uid, v.revision_id, v.start_char, v.end_char INTO bad
    FROM (SELECT DISTINCT artifact_uid, revision_id FROM new_evidence) n
    CROSS JOIN LATERAL broken_evidence(n.artifact_uid, n.revision_id) b
    JOIN event_evidence v USING (evidence_id)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the quote of % % at [%, %) is not the text that stands there',
            bad.artifact_uid, bad.revision_id, bad.start_char, bad.end_char
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

-- When the present request was made: a request that bypasses the cache pays for no answer twice that
-- was given since.
ALTER TABLE event_jobs ADD COLUMN requested_at TIMESTAMPTZ NOT NULL DEFAULT now();

CREATE FUNCTION date_request() RETURNS TRIGGER AS $$
BEGIN
    NEW.requested_at = now();
    RETURN NEW;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER date_request
    BEFORE UPDATE OF generation ON event_jobs
    FOR EACH ROW WHEN (NEW.generation <> OLD.generation)
    EXECUTE FUNCTION date_request();

-- A passage whose answer did not fit is asked about in parts, kept under the passage with their
-- place in it: "hash:start-end". What is deleted or swept goes with its passage.
CREATE FUNCTION passage_of(chunk_hash TEXT) RETURNS TEXT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN split_part(chunk_hash, ':', 1);
CREATE INDEX idx_extraction_cache_passage ON extraction_cache (passage_of(chunk_hash));

ALTER TABLE extraction_cache DROP COLUMN usage;

-- In which revision of its artifact a passage first stood, for thousands of passages at once: before
-- a new document's statistics are known, no other index is taken for that.
CREATE INDEX idx_revision_chunk_passage ON revision_chunk (artifact_uid, content_hash);
