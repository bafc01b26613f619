-- A backfill that is about models is for deployments of its model.
ALTER TABLE event_jobs ADD COLUMN needs_model TEXT NULL;

CREATE OR REPLACE FUNCTION leave_backfill() RETURNS TRIGGER AS $$
BEGIN
    NEW.backfill_id = NULL;
    NEW.needs_extractor = NULL;
    NEW.needs_model = NULL;
    NEW.needs_extract = 0;
    NEW.needs_merge = 0;
    RETURN NEW;
END;
$$ LANGUAGE plpgsql;
