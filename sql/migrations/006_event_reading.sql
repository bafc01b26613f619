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

-- What searches filter by, as marks that one index holds beside the words: the number of matches
-- is then read from the index alone.
CREATE FUNCTION name_key(name TEXT) RETURNS TEXT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN lower(btrim(regexp_replace(name, '\s+', ' ', 'g')));

CREATE FUNCTION event_facets(category TEXT, artifact_uid TEXT, actors JSONB) RETURNS TEXT[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY['category:' || category, 'artifact:' || artifact_uid]
           || ARRAY(SELECT DISTINCT 'actor:' || name_key(actor ->> 'ref')
                    FROM jsonb_path_query(actors, '$[*]') AS actor
                    WHERE actor ->> 'ref' IS NOT NULL);

ALTER TABLE semantic_event ADD COLUMN facets TEXT[] GENERATED ALWAYS AS (
    event_facets(category, artifact_uid, actors_json)
) STORED;

-- Pages of new events become "all visible" soon, which is what lets a count skip them.
ALTER TABLE semantic_event SET (autovacuum_vacuum_insert_scale_factor = 0.02,
                                autovacuum_vacuum_scale_factor = 0.05);

-- Partial indexes: the usual question is about latest events only. No pending lists, which every
-- search would have to read through: events are written far less often than searched.
CREATE INDEX idx_semantic_event_latest_words ON semantic_event USING GIN (words, facets)
    WITH (fastupdate = off) WHERE is_latest;
CREATE INDEX idx_semantic_event_superseded_words ON semantic_event USING GIN (words, facets)
    WITH (fastupdate = off) WHERE NOT is_latest;
CREATE INDEX idx_semantic_event_latest_time
    ON semantic_event (event_time DESC NULLS LAST, created_at DESC, event_id) WHERE is_latest;
CREATE INDEX idx_semantic_event_latest_category_time
    ON semantic_event (category, event_time DESC NULLS LAST, created_at DESC, event_id)
    WHERE is_latest;

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

CREATE INDEX idx_semantic_event_subject ON semantic_event (name_key(subject_json ->> 'ref'));

-- Names and aliases of entities, looked up as they are compared.
CREATE FUNCTION name_keys(names TEXT[]) RETURNS TEXT[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT name_key(name) FROM unnest(names) AS name);
CREATE INDEX idx_revision_entity_name ON revision_entity (name_key(name));
CREATE INDEX idx_revision_entity_aliases ON revision_entity USING GIN (name_keys(aliases));
