-- How often Chroma was made anew: a run that wrote vectors before its rows sees whether the
-- collection it wrote to may be gone.
CREATE TABLE index_generation (
    only_row   BOOLEAN PRIMARY KEY DEFAULT true CHECK (only_row),
    generation BIGINT NOT NULL
);
INSERT INTO index_generation (generation) VALUES (1);
