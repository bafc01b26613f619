-- What extraction leaves behind beside events: how quotes matched, which entities a revision names,
-- who produced its events with which prompt, and what every model call cost.

ALTER TABLE event_evidence
    ADD COLUMN match_kind TEXT NOT NULL DEFAULT 'exact'
        CHECK (match_kind IN ('exact', 'normalised', 'ellipsis', 'fuzzy'));

-- The promise of the product, kept by the database itself: a quote is the text at its offsets.
-- Once per statement, reading each revision's text once.
CREATE FUNCTION check_evidence_quotes() RETURNS TRIGGER AS $$
DECLARE
    bad RECORD;
BEGIN
    SELECT n.artifact_uid, n.revision_id, n.start_char, n.end_char INTO bad
    FROM new_evidence n
    JOIN revision_text t USING (artifact_uid, revision_id)
    WHERE substr(t.content, n.start_char + 1, n.end_char - n.start_char) <> n.quote
       OR char_length(n.quote) <> n.end_char - n.start_char  -- past the end of the text
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the quote of % % at [%, %) is not the text that stands there',
            bad.artifact_uid, bad.revision_id, bad.start_char, bad.end_char
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER check_evidence_quotes_on_insert
    AFTER INSERT ON event_evidence REFERENCING NEW TABLE AS new_evidence
    FOR EACH STATEMENT EXECUTE FUNCTION check_evidence_quotes();
CREATE TRIGGER check_evidence_quotes_on_update
    AFTER UPDATE ON event_evidence REFERENCING NEW TABLE AS new_evidence
    FOR EACH STATEMENT EXECUTE FUNCTION check_evidence_quotes();

CREATE TABLE revision_entity (
    artifact_uid TEXT NOT NULL,
    revision_id  TEXT NOT NULL,
    name         TEXT NOT NULL,
    type         TEXT NOT NULL CHECK (type IN ('person', 'org', 'project', 'object', 'place', 'time')),
    aliases      TEXT[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (artifact_uid, revision_id, type, name),
    FOREIGN KEY (artifact_uid, revision_id)
        REFERENCES artifact_revision (artifact_uid, revision_id) ON DELETE CASCADE
);

-- One row per revision: the extraction whose events it has now.
CREATE TABLE extraction (
    artifact_uid    TEXT NOT NULL,
    revision_id     TEXT NOT NULL,
    job_id          UUID NOT NULL,
    generation      INT NOT NULL,
    run_id          TEXT NOT NULL,              -- the Dagster run
    requested_by    TEXT NOT NULL,
    extractor       TEXT NOT NULL,
    model           TEXT NOT NULL,
    extract_version TEXT NOT NULL,
    merge_version   TEXT NOT NULL,
    chunks          INT NOT NULL,
    cache_hits      INT NOT NULL,
    events          INT NOT NULL,
    rejections      JSONB NOT NULL DEFAULT '[]',
    refusals        JSONB NOT NULL DEFAULT '[]',
    seconds         JSONB NOT NULL DEFAULT '{}',
    finished_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (artifact_uid, revision_id),
    FOREIGN KEY (artifact_uid, revision_id)
        REFERENCES artifact_revision (artifact_uid, revision_id) ON DELETE CASCADE
);

CREATE INDEX idx_extraction_version ON extraction (extractor, extract_version, merge_version);

-- Every call to a model, also of attempts that failed.
CREATE TABLE model_call (
    call_id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id            UUID NOT NULL,
    generation        INT NOT NULL,
    kind              TEXT NOT NULL CHECK (kind IN ('extract', 'merge')),
    model             TEXT NOT NULL,
    outcome           TEXT NOT NULL,
    prompt_tokens     INT NOT NULL DEFAULT 0,
    completion_tokens INT NOT NULL DEFAULT 0,
    cached_tokens     INT NOT NULL DEFAULT 0,
    latency_ms        DOUBLE PRECISION NOT NULL,
    called_at         TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE INDEX idx_model_call_job ON model_call (job_id);
CREATE INDEX idx_model_call_time ON model_call (called_at);

-- The jobs a run holds: heartbeats, completion and the clean-up after a dead run go by it.
CREATE INDEX idx_event_jobs_held ON event_jobs (locked_by) WHERE status = 'PROCESSING';
