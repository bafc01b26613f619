-- What a deletion needs to leave no name behind.
CREATE FUNCTION replace_all(content TEXT, names TEXT[], instead TEXT[]) RETURNS TEXT AS $$
BEGIN
    FOR place IN 1 .. coalesce(array_length(names, 1), 0) LOOP
        content := replace(content, names[place], instead[place]);
    END LOOP;
    RETURN content;
END;
$$ LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE;

-- Names that no event bears any more.
DELETE FROM actor_name n WHERE NOT EXISTS (SELECT 1 FROM event_actor a WHERE a.name_key = n.name_key);
