-- What the read side needs to be quick at millions of events.

-- Words of the narrative, its subject, its quotes and the document's title, searched as one.
ALTER TABLE semantic_event ADD COLUMN quotes TEXT NOT NULL DEFAULT '';
ALTER TABLE semantic_event ADD COLUMN document_title TEXT NOT NULL DEFAULT '';
ALTER TABLE semantic_event ADD COLUMN words TSVECTOR GENERATED ALWAYS AS (
    setweight(to_tsvector('english', narrative), 'A')
    || setweight(to_tsvector('english', coalesce(subject_json ->> 'ref', '')), 'B')
    || setweight(to_tsvector('english', quotes), 'C')
    || setweight(to_tsvector('english', document_title), 'D')
) STORED;

-- Whether the event belongs to a latest revision: kept by the database, so that searches over
-- latest events need not look up the revision of each.
ALTER TABLE semantic_event ADD COLUMN is_latest BOOLEAN NOT NULL DEFAULT true;
UPDATE semantic_event e SET is_latest = false
FROM artifact_revision r
WHERE r.artifact_uid = e.artifact_uid AND r.revision_id = e.revision_id AND NOT r.is_latest;

CREATE FUNCTION carry_is_latest_to_events() RETURNS TRIGGER AS $$
BEGIN
    UPDATE semantic_event SET is_latest = NEW.is_latest
    WHERE artifact_uid = NEW.artifact_uid AND revision_id = NEW.revision_id
      AND is_latest <> NEW.is_latest;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER carry_is_latest_to_events
    AFTER UPDATE OF is_latest ON artifact_revision
    FOR EACH ROW WHEN (OLD.is_latest IS DISTINCT FROM NEW.is_latest)
    EXECUTE FUNCTION carry_is_latest_to_events();

CREATE FUNCTION take_is_latest_from_revision() RETURNS TRIGGER AS $$
BEGIN
    NEW.is_latest = coalesce((SELECT r.is_latest FROM artifact_revision r
                              WHERE r.artifact_uid = NEW.artifact_uid
                                AND r.revision_id = NEW.revision_id), true);
    RETURN NEW;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER take_is_latest_from_revision
    BEFORE INSERT ON semantic_event
    FOR EACH ROW EXECUTE FUNCTION take_is_latest_from_revision();

CREATE FUNCTION name_key(name TEXT) RETURNS TEXT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN lower(btrim(regexp_replace(name, '\s+', ' ', 'g')));

-- What searches go through: a row of a few bytes for each event. To count the matches of a common
-- word Postgres visits the row of each; here they lie on a twentieth of the pages.
CREATE TABLE event_entry (
    event_id   UUID PRIMARY KEY REFERENCES semantic_event (event_id) ON DELETE CASCADE,
    event_time TIMESTAMPTZ NULL,
    created_at TIMESTAMPTZ NOT NULL,
    confidence DOUBLE PRECISION NOT NULL,
    is_latest  BOOLEAN NOT NULL
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.05);

-- The indexes of an entry hold the words of its event and marks for what searches filter by,
-- without the row itself having them. IMMUTABLE, since an entry is made anew when its event changes
-- and the type and source of a revision never do. The cost keeps Postgres from calling them for
-- each row where an index will do.
CREATE FUNCTION words_of_event(id UUID) RETURNS TSVECTOR
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000
    RETURN (SELECT e.words FROM semantic_event e WHERE e.event_id = id);

CREATE FUNCTION facets_of_event(id UUID) RETURNS TEXT[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000
    RETURN (
        SELECT ARRAY['category:' || e.category, 'artifact:' || e.artifact_uid,
                     'subject:' || coalesce(name_key(e.subject_json ->> 'ref'), ''),
                     'type:' || coalesce(r.artifact_type, ''),
                     'source:' || coalesce(r.source_system, '')]
               || CASE WHEN e.actors_json = '[]' THEN ARRAY['no actor']
                  ELSE ARRAY(SELECT DISTINCT 'actor:' || name_key(actor ->> 'ref')
                             FROM jsonb_path_query(e.actors_json, '$[*]') AS actor
                             WHERE actor ->> 'ref' IS NOT NULL) END
        FROM semantic_event e
        LEFT JOIN artifact_revision r USING (artifact_uid, revision_id)
        WHERE e.event_id = id);

CREATE FUNCTION enter_events() RETURNS TRIGGER AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM event_entry USING changed c WHERE event_entry.event_id = c.event_id;
    END IF;
    INSERT INTO event_entry (event_id, event_time, created_at, confidence, is_latest)
    SELECT event_id, event_time, created_at, confidence, is_latest FROM changed;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER enter_new_events
    AFTER INSERT ON semantic_event REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION enter_events();
CREATE TRIGGER enter_changed_events
    AFTER UPDATE ON semantic_event REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION enter_events();

INSERT INTO event_entry (event_id, event_time, created_at, confidence, is_latest)
SELECT event_id, event_time, created_at, confidence, is_latest FROM semantic_event;

-- Partial indexes: the usual question is about latest events only. No pending lists, which every
-- search would have to read through: events are written far less often than searched.
CREATE INDEX idx_event_entry_latest ON event_entry
    USING GIN (words_of_event(event_id), facets_of_event(event_id))
    WITH (fastupdate = off) WHERE is_latest;
CREATE INDEX idx_event_entry_superseded ON event_entry
    USING GIN (words_of_event(event_id), facets_of_event(event_id))
    WITH (fastupdate = off) WHERE NOT is_latest;
-- How common a word or a mark is: the planner does not ask partial indexes, so these need not be
-- analysed, nor the column of words, by which nothing is looked up.
CREATE STATISTICS event_entry_words ON (words_of_event(event_id)) FROM event_entry;
CREATE STATISTICS event_entry_facets ON (facets_of_event(event_id)) FROM event_entry;
ALTER INDEX idx_event_entry_latest ALTER COLUMN 1 SET STATISTICS 0;
ALTER INDEX idx_event_entry_latest ALTER COLUMN 2 SET STATISTICS 0;
ALTER INDEX idx_event_entry_superseded ALTER COLUMN 1 SET STATISTICS 0;
ALTER INDEX idx_event_entry_superseded ALTER COLUMN 2 SET STATISTICS 0;
ALTER TABLE semantic_event ALTER COLUMN words SET STATISTICS 0;
-- Not partial: Postgres does not combine two indexes that are partial in the same way.
CREATE INDEX idx_event_entry_time
    ON event_entry (event_time DESC NULLS LAST, created_at DESC, event_id)
    INCLUDE (is_latest, confidence);

-- Who took part in which event, by name: actors_json laid out in rows by the database.
CREATE TABLE event_actor (
    event_id UUID NOT NULL REFERENCES semantic_event (event_id) ON DELETE CASCADE,
    position INT NOT NULL,
    ref      TEXT NOT NULL,
    name_key TEXT NOT NULL,   -- the name as it is compared: lower case, single spaces
    role     TEXT NOT NULL,
    PRIMARY KEY (event_id, position)
);
CREATE INDEX idx_event_actor_name ON event_actor (name_key, event_id);

-- Every name once, by the words it consists of: "who is Alice?" must not read all actors. A name
-- whose last event is gone may stay behind; who looks names up checks that somebody bears them.
CREATE TABLE actor_name (
    name_key TEXT PRIMARY KEY,
    words    TEXT[] GENERATED ALWAYS AS (
        array_remove(regexp_split_to_array(name_key, '[^[:alnum:]]+'), '')
    ) STORED
);
CREATE INDEX idx_actor_name_words ON actor_name USING GIN (words) WITH (fastupdate = off);

CREATE FUNCTION lay_out_actors() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO event_actor (event_id, position, ref, name_key, role)
    SELECT e.event_id, a.position, a.actor ->> 'ref', name_key(a.actor ->> 'ref'),
           coalesce(a.actor ->> 'role', 'other')
    FROM new_events e
    CROSS JOIN LATERAL jsonb_array_elements(e.actors_json) WITH ORDINALITY AS a (actor, position)
    WHERE a.actor ->> 'ref' IS NOT NULL;
    -- In order: two transactions with the same new names wait for each other, never both ways.
    INSERT INTO actor_name (name_key)
    SELECT DISTINCT a.name_key FROM new_events e JOIN event_actor a USING (event_id)
    ORDER BY a.name_key
    ON CONFLICT (name_key) DO NOTHING;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER lay_out_actors
    AFTER INSERT ON semantic_event REFERENCING NEW TABLE AS new_events
    FOR EACH STATEMENT EXECUTE FUNCTION lay_out_actors();

INSERT INTO event_actor (event_id, position, ref, name_key, role)
SELECT e.event_id, a.position, a.actor ->> 'ref', name_key(a.actor ->> 'ref'),
       coalesce(a.actor ->> 'role', 'other')
FROM semantic_event e
CROSS JOIN LATERAL jsonb_array_elements(e.actors_json) WITH ORDINALITY AS a (actor, position)
WHERE a.actor ->> 'ref' IS NOT NULL;
INSERT INTO actor_name (name_key) SELECT DISTINCT name_key FROM event_actor;

-- Names and aliases of entities, looked up as they are compared.
CREATE FUNCTION name_keys(names TEXT[]) RETURNS TEXT[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT name_key(name) FROM unnest(names) AS name);
CREATE INDEX idx_revision_entity_name ON revision_entity (name_key(name));
CREATE INDEX idx_revision_entity_aliases ON revision_entity USING GIN (name_keys(aliases));
