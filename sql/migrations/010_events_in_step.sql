-- Events written while their revision is being superseded wait for the outcome: the row is locked
-- before it is believed, and what changes it updates the events that are there by then.
CREATE OR REPLACE FUNCTION take_is_latest_from_revision() RETURNS TRIGGER AS $$
BEGIN
    NEW.is_latest = coalesce((SELECT r.is_latest FROM artifact_revision r
                              WHERE r.artifact_uid = NEW.artifact_uid
                                AND r.revision_id = NEW.revision_id
                              FOR SHARE), true);
    RETURN NEW;
END;
$$ LANGUAGE plpgsql;

UPDATE semantic_event e SET is_latest = r.is_latest
FROM artifact_revision r
WHERE r.artifact_uid = e.artifact_uid AND r.revision_id = e.revision_id
  AND r.is_latest <> e.is_latest;
