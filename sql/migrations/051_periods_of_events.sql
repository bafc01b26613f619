-- Searches with as_of find events by the period of their revision through indexes, as they find words.
-- Before, each event that had the words was looked up in semantic_event and revision_period.

-- In PL/pgSQL, which plans them once in a session: SQL functions are planned in each statement, which
-- took half as long as the statement that enters the events of a document.

-- Since when an event's revision is the latest; NULL if it is superseded, or if it was the latest before
-- too. IMMUTABLE like words_of_event: an entry is made again when a period of its revision changes.
CREATE FUNCTION since_of_event(id UUID) RETURNS TIMESTAMPTZ
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000
    SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (SELECT min(p.since)
            FROM semantic_event e JOIN revision_period p USING (artifact_uid, revision_id)
            WHERE e.event_id = id HAVING count(*) = 1 AND bool_and(e.is_latest));
END;
$$;

-- The period of an event's revision that is superseded; NULL if it was the latest twice.
CREATE FUNCTION period_of_event(id UUID) RETURNS TSTZRANGE
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000
    SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (SELECT tstzrange(min(p.since), min(p.until))
            FROM semantic_event e JOIN revision_period p USING (artifact_uid, revision_id)
            WHERE e.event_id = id HAVING count(*) = 1);
END;
$$;

-- All periods of an event's revision that was restored, so that it has several.
CREATE FUNCTION periods_of_event(id UUID) RETURNS TSTZMULTIRANGE
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000
    SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (SELECT range_agg(tstzrange(p.since, p.until))
            FROM semantic_event e JOIN revision_period p USING (artifact_uid, revision_id)
            WHERE e.event_id = id HAVING count(*) > 1);
END;
$$;

-- Postgres does not combine two indexes that are partial in the same way: the conditions are others than
-- those of the indexes of words. The tables in them are dependencies, as in 046.
CREATE INDEX idx_event_entry_since ON event_entry (since_of_event(event_id))
    WHERE 'semantic_event'::regclass IS NOT NULL AND 'revision_period'::regclass IS NOT NULL;
CREATE INDEX idx_event_entry_period ON event_entry USING GIST (period_of_event(event_id))
    WHERE is_latest::int = 0 AND 'semantic_event'::regclass IS NOT NULL
      AND 'revision_period'::regclass IS NOT NULL;
CREATE INDEX idx_event_entry_periods ON event_entry USING GIST (periods_of_event(event_id))
    WHERE periods_of_event(event_id) IS NOT NULL AND 'semantic_event'::regclass IS NOT NULL
      AND 'revision_period'::regclass IS NOT NULL;
ALTER INDEX idx_event_entry_since ALTER COLUMN 1 SET STATISTICS 0;
ALTER INDEX idx_event_entry_period ALTER COLUMN 1 SET STATISTICS 0;
ALTER INDEX idx_event_entry_periods ALTER COLUMN 1 SET STATISTICS 0;

-- The entries of revisions that were the latest at a moment, as far as the principal sees them. In
-- parts, so that each is found through its own indexes. Postgres inlines it. It does not look at the
-- moment in a SELECT, and expects a third: else it would call the function for each match where nearly
-- all events began before.
CREATE FUNCTION visible_events_as_of(at TIMESTAMPTZ) RETURNS SETOF visible_event
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT * FROM visible_event s WHERE s.is_latest AND since_of_event(s.event_id) <= (SELECT at)
    UNION ALL
    SELECT * FROM visible_event s
    WHERE NOT s.is_latest AND s.is_latest::int = 0 AND period_of_event(s.event_id) @> at
    UNION ALL
    SELECT * FROM visible_event s WHERE periods_of_event(s.event_id) @> at
$$;

CREATE FUNCTION enter_again(uid TEXT, revision TEXT) RETURNS VOID LANGUAGE sql AS $$
    DELETE FROM event_entry n USING semantic_event e
    WHERE e.event_id = n.event_id AND e.artifact_uid = uid AND e.revision_id = revision;
    INSERT INTO event_entry (
        event_id, event_time, due_time, created_at, confidence, is_latest, tenant_id, audience_id
    )
    SELECT event_id, coalesce(due_time, event_time), due_time, created_at, confidence, is_latest,
           tenant_id, audience_id
    FROM semantic_event WHERE artifact_uid = uid AND revision_id = revision;
$$;

-- A period ends before the events of its revision are entered as superseded, so that they are entered
-- once, with their period.
CREATE OR REPLACE FUNCTION carry_is_latest_to_events() RETURNS TRIGGER AS $$
BEGIN
    IF NOT NEW.is_latest THEN
        UPDATE revision_period SET until = greatest(since, clock_timestamp())
        WHERE artifact_uid = NEW.artifact_uid AND revision_id = NEW.revision_id AND until IS NULL;
    END IF;
    UPDATE semantic_event SET is_latest = NEW.is_latest
    WHERE artifact_uid = NEW.artifact_uid AND revision_id = NEW.revision_id
      AND is_latest <> NEW.is_latest;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp;

-- The next period begins when the last one ended, a moment ago in the same transaction. A period that
-- is still open is of a revision that was superseded by hand before this migration.
CREATE OR REPLACE FUNCTION begin_period() RETURNS TRIGGER AS $$
DECLARE
    begun TIMESTAMPTZ := NEW.latest_since;
    ended TIMESTAMPTZ;
    still_open TEXT;
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.latest_since = OLD.latest_since THEN
        begun := clock_timestamp();
    END IF;
    UPDATE revision_period SET until = greatest(since, begun)
    WHERE artifact_uid = NEW.artifact_uid AND until IS NULL
    RETURNING revision_id INTO still_open;
    IF still_open IS NOT NULL THEN
        PERFORM enter_again(NEW.artifact_uid, still_open);
    END IF;
    SELECT until INTO ended FROM revision_period
    WHERE artifact_uid = NEW.artifact_uid
    ORDER BY since DESC, until DESC LIMIT 1;
    IF ended > begun OR ended >= transaction_timestamp() THEN
        begun := ended;
    END IF;
    INSERT INTO revision_period (artifact_uid, revision_id, since)
    VALUES (NEW.artifact_uid, NEW.revision_id, begun);
    RETURN NULL;
END;
$$ LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp;

CREATE FUNCTION enter_events_of_period() RETURNS TRIGGER AS $$
BEGIN
    PERFORM enter_again(NEW.artifact_uid, NEW.revision_id);
    RETURN NULL;
END;
$$ LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp;
CREATE TRIGGER enter_events_of_period
    AFTER UPDATE OF since, until ON revision_period
    FOR EACH ROW WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION enter_events_of_period();
-- An index that is wrong is worse than a derived row that is missing.
ALTER TABLE revision_period ENABLE ALWAYS TRIGGER enter_events_of_period;
COMMENT ON TRIGGER enter_events_of_period ON revision_period IS
    'Entries of events are indexed by the periods of their revisions: they are made again where a period is changed by hand.';
