-- The four tables of the event system: revisions, the job queue, events and their evidence.

CREATE TABLE artifact_revision (
    artifact_uid     TEXT NOT NULL,            -- the same for all revisions of one document
    revision_id      TEXT NOT NULL,            -- the same for the same content
    artifact_id      TEXT NOT NULL,            -- this revision's id in Chroma

    artifact_type    TEXT NOT NULL
        CHECK (artifact_type IN ('email', 'doc', 'chat', 'transcript', 'note')),
    source_system    TEXT NOT NULL,
    source_id        TEXT NOT NULL,            -- '' when the source gave none
    source_ts        TIMESTAMPTZ NULL,
    source_url       TEXT NULL,
    title            TEXT NULL,
    author           TEXT NULL,
    participants     TEXT[] NOT NULL DEFAULT '{}',

    content_hash     TEXT NOT NULL,
    token_count      INT NOT NULL,
    is_chunked       BOOLEAN NOT NULL,
    chunk_count      INT NOT NULL,

    sensitivity      TEXT NOT NULL DEFAULT 'normal'
        CHECK (sensitivity IN ('normal', 'sensitive', 'highly_sensitive')),
    visibility_scope TEXT NOT NULL DEFAULT 'me'
        CHECK (visibility_scope IN ('me', 'team', 'org', 'custom')),
    retention_policy TEXT NOT NULL DEFAULT 'forever'
        CHECK (retention_policy IN ('forever', '1y', 'until_resolved', 'custom')),

    is_latest        BOOLEAN NOT NULL DEFAULT true,
    latest_since     TIMESTAMPTZ NOT NULL DEFAULT now(),  -- moves when an old revision is restored
    partition_key    TEXT NULL,                           -- its name in the Dagster UI
    ingested_at      TIMESTAMPTZ NOT NULL DEFAULT now(),

    PRIMARY KEY (artifact_uid, revision_id)
);

CREATE INDEX idx_artifact_revision_uid_latest ON artifact_revision (artifact_uid, is_latest);
CREATE INDEX idx_artifact_revision_ingested ON artifact_revision (ingested_at DESC);
CREATE INDEX idx_artifact_revision_source ON artifact_revision (source_system, source_id);
CREATE INDEX idx_artifact_revision_artifact_id ON artifact_revision (artifact_id);
-- At most one latest revision per artifact, whoever writes and however many at once.
CREATE UNIQUE INDEX uq_artifact_revision_one_latest ON artifact_revision (artifact_uid)
    WHERE is_latest;
CREATE UNIQUE INDEX uq_artifact_revision_partition_key ON artifact_revision (partition_key);

CREATE TABLE event_jobs (
    job_id             UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    job_type           TEXT NOT NULL DEFAULT 'extract_events',
    artifact_uid       TEXT NOT NULL,
    revision_id        TEXT NOT NULL,

    status             TEXT NOT NULL DEFAULT 'PENDING'
        CHECK (status IN ('PENDING', 'PROCESSING', 'DONE', 'FAILED')),
    attempts           INT NOT NULL DEFAULT 0,
    max_attempts       INT NOT NULL DEFAULT 5,
    next_run_at        TIMESTAMPTZ NOT NULL DEFAULT now(),

    locked_at          TIMESTAMPTZ NULL,
    locked_by          TEXT NULL,               -- the Dagster run that holds the lease

    last_error_code    TEXT NULL,
    last_error_message TEXT NULL,

    generation         INT NOT NULL DEFAULT 1,  -- raised by each re-enqueue
    requested_by       TEXT NOT NULL DEFAULT 'ingest',
    bypass_cache       BOOLEAN NOT NULL DEFAULT false,

    created_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at         TIMESTAMPTZ NOT NULL DEFAULT now(),

    UNIQUE (artifact_uid, revision_id, job_type)
);

CREATE INDEX idx_event_jobs_claimable ON event_jobs (status, next_run_at) WHERE status = 'PENDING';
CREATE INDEX idx_event_jobs_revision ON event_jobs (artifact_uid, revision_id);
CREATE INDEX idx_event_jobs_status ON event_jobs (status);

CREATE TABLE semantic_event (
    event_id          UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    artifact_uid      TEXT NOT NULL,
    revision_id       TEXT NOT NULL,

    category          TEXT NOT NULL
        CHECK (category IN ('Commitment', 'Execution', 'Decision', 'Collaboration',
                            'QualityRisk', 'Feedback', 'Change', 'Stakeholder')),
    event_time        TIMESTAMPTZ NULL,
    narrative         TEXT NOT NULL,
    subject_json      JSONB NOT NULL,
    actors_json       JSONB NOT NULL,
    confidence        DOUBLE PRECISION NOT NULL CHECK (confidence >= 0.0 AND confidence <= 1.0),
    extraction_run_id UUID NOT NULL,            -- event_jobs.job_id

    created_at        TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE INDEX idx_semantic_event_revision ON semantic_event (artifact_uid, revision_id);
CREATE INDEX idx_semantic_event_category_time
    ON semantic_event (category, event_time DESC NULLS LAST);
CREATE INDEX idx_semantic_event_extraction ON semantic_event (extraction_run_id);
CREATE INDEX idx_semantic_event_narrative_fts
    ON semantic_event USING GIN (to_tsvector('english', narrative));
CREATE INDEX idx_semantic_event_subject_type ON semantic_event ((subject_json ->> 'type'));
CREATE INDEX idx_semantic_event_actors ON semantic_event USING GIN (actors_json);

CREATE TABLE event_evidence (
    evidence_id  UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    event_id     UUID NOT NULL REFERENCES semantic_event (event_id) ON DELETE CASCADE,
    artifact_uid TEXT NOT NULL,
    revision_id  TEXT NOT NULL,
    chunk_id     TEXT NULL,                     -- null when the revision is one piece
    start_char   INT NOT NULL CHECK (start_char >= 0),
    end_char     INT NOT NULL,
    quote        TEXT NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    CHECK (end_char > start_char)
);

CREATE INDEX idx_event_evidence_event ON event_evidence (event_id);
CREATE INDEX idx_event_evidence_revision ON event_evidence (artifact_uid, revision_id);
CREATE INDEX idx_event_evidence_chunk ON event_evidence (chunk_id) WHERE chunk_id IS NOT NULL;

CREATE FUNCTION update_updated_at_column() RETURNS TRIGGER AS $$
BEGIN
    NEW.updated_at = now();
    RETURN NEW;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER update_event_jobs_updated_at
    BEFORE UPDATE ON event_jobs
    FOR EACH ROW EXECUTE FUNCTION update_updated_at_column();
