-- A repair by hand may make a revision the latest again without dating it: its period begins then.
CREATE OR REPLACE FUNCTION begin_period() RETURNS TRIGGER AS $$
DECLARE
    begun TIMESTAMPTZ := NEW.latest_since;
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.latest_since = OLD.latest_since THEN
        begun := clock_timestamp();
    END IF;
    UPDATE revision_period SET until = greatest(since, begun)
    WHERE artifact_uid = NEW.artifact_uid AND until IS NULL;
    INSERT INTO revision_period (artifact_uid, revision_id, since)
    VALUES (NEW.artifact_uid, NEW.revision_id, begun);
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
