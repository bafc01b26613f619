-- Which revision was the latest when: what `as_of` goes by.

-- Each period in which a revision was its artifact's latest, without gaps between them. Kept by the
-- database, in the transaction that makes a revision the latest, so that no statement can forget it.
-- Goes with the revision: what is deleted stays deleted, whatever moment is asked for.
CREATE TABLE revision_period (
    artifact_uid TEXT NOT NULL,
    revision_id  TEXT NOT NULL,
    since        TIMESTAMPTZ NOT NULL,
    until        TIMESTAMPTZ NULL,        -- null: it still is
    PRIMARY KEY (artifact_uid, revision_id, since),
    FOREIGN KEY (artifact_uid, revision_id)
        REFERENCES artifact_revision (artifact_uid, revision_id) ON DELETE CASCADE,
    CHECK (until >= since)
);
CREATE INDEX idx_revision_period_since ON revision_period (artifact_uid, since DESC);
CREATE UNIQUE INDEX uq_revision_period_one_open ON revision_period (artifact_uid)
    WHERE until IS NULL;

CREATE FUNCTION begin_period() RETURNS TRIGGER AS $$
BEGIN
    UPDATE revision_period SET until = greatest(since, NEW.latest_since)
    WHERE artifact_uid = NEW.artifact_uid AND until IS NULL;
    INSERT INTO revision_period (artifact_uid, revision_id, since)
    VALUES (NEW.artifact_uid, NEW.revision_id, NEW.latest_since);
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER begin_first_period
    AFTER INSERT ON artifact_revision
    FOR EACH ROW WHEN (NEW.is_latest)
    EXECUTE FUNCTION begin_period();
CREATE TRIGGER begin_next_period
    AFTER UPDATE OF is_latest ON artifact_revision
    FOR EACH ROW WHEN (NEW.is_latest AND NOT OLD.is_latest)
    EXECUTE FUNCTION begin_period();

-- What is known of the time before: revisions were the latest from their arrival until the next
-- one came, or until an older one was restored. Of several restorations the last is known.
INSERT INTO revision_period (artifact_uid, revision_id, since, until)
SELECT artifact_uid, revision_id, since, until
FROM (
    SELECT r.artifact_uid, r.revision_id, r.ingested_at AS since,
           CASE WHEN r.is_latest AND r.latest_since <= r.ingested_at THEN NULL
                ELSE greatest(r.ingested_at, coalesce(
                    lead(r.ingested_at) OVER (PARTITION BY r.artifact_uid
                                              ORDER BY r.ingested_at, r.revision_id),
                    l.latest_since, r.ingested_at)) END AS until
    FROM artifact_revision r
    LEFT JOIN artifact_revision l ON l.artifact_uid = r.artifact_uid AND l.is_latest
) known
UNION ALL
SELECT artifact_uid, revision_id, latest_since, NULL FROM artifact_revision
WHERE is_latest AND latest_since > ingested_at;

-- A partition whose changes are archived.
CREATE FUNCTION log.drop_partition(name TEXT) RETURNS VOID AS $$
BEGIN
    EXECUTE format('ALTER TABLE log.events DETACH PARTITION log.%I', name);
    EXECUTE format('DROP TABLE log.%I', name);
END;
$$ LANGUAGE plpgsql;
