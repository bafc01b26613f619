-- Scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese; and Korean, whose
-- words take endings) are searched by pairs of neighbouring characters. `memory_core/text/scripts.py`
-- does the same to a query.
CREATE FUNCTION in_pairs(content TEXT) RETURNS TEXT
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN content ~ '[\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u3040-\u30FF\u3400-\u9FFF\uAC00-\uD7AF]'
    THEN (
        SELECT string_agg(
            CASE WHEN part[1] IS NULL THEN part[2]
                 WHEN length(part[1]) = 1 THEN ' ' || part[1] || ' '
                 ELSE (SELECT ' ' || string_agg(substr(part[1], place, 2), ' ' ORDER BY place) || ' '
                       FROM generate_series(1, length(part[1]) - 1) AS place) END,
            '' ORDER BY number)
        FROM regexp_matches(
            content,
            '([\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u3040-\u30FF\u3400-\u9FFF\uAC00-\uD7AF]{1,100})'
            || '|([^\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u3040-\u30FF\u3400-\u9FFF\uAC00-\uD7AF]+)', 'g'
        ) WITH ORDINALITY AS r (part, number)
    ) ELSE content END;

CREATE FUNCTION words_of_text(content TEXT) RETURNS TSVECTOR
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN to_tsvector('english', in_pairs(content));

CREATE OR REPLACE FUNCTION words_of_title(uid TEXT, revision TEXT) RETURNS TSVECTOR
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000
    RETURN (SELECT words_of_text(coalesce(r.title, '')) FROM artifact_revision r
            WHERE r.artifact_uid = uid AND r.revision_id = revision);

ALTER TABLE memory DROP COLUMN words;
ALTER TABLE memory ADD COLUMN words TSVECTOR GENERATED ALWAYS AS (words_of_text(content)) STORED;
CREATE INDEX idx_memory_words ON memory USING GIN (words);

-- What was stored so far. The entries of such chunks are made again, as for every change of their words.
CREATE TEMP TABLE paired ON COMMIT DROP AS
SELECT c.artifact_uid, c.revision_id, c.chunk_index,
       text_of_chunk(c.text, t.content, c.start_char, c.end_char) AS text,
       CASE WHEN c.chunk_index = 0 THEN r.title END AS title
FROM revision_text t
JOIN revision_chunk c USING (artifact_uid, revision_id)
JOIN artifact_revision r USING (artifact_uid, revision_id)
WHERE coalesce(r.title, '') || t.content
      ~ '[\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u3040-\u30FF\u3400-\u9FFF\uAC00-\uD7AF]';

UPDATE revision_chunk c
SET words = setweight(words_of_text(coalesce(p.title, '')), 'A') || words_of_text(p.text)
FROM paired p
WHERE c.artifact_uid = p.artifact_uid AND c.revision_id = p.revision_id
  AND c.chunk_index = p.chunk_index;

CREATE TEMP TABLE entered_again ON COMMIT DROP AS
SELECT s.* FROM chunk_entry s JOIN paired p USING (artifact_uid, revision_id, chunk_index);
DELETE FROM chunk_entry s USING entered_again e
WHERE s.artifact_uid = e.artifact_uid AND s.revision_id = e.revision_id
  AND s.chunk_index = e.chunk_index;
INSERT INTO chunk_entry SELECT * FROM entered_again;
