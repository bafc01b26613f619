-- Events that may be the same as others and were beyond the number of merge questions of a document.
ALTER TABLE extraction ADD COLUMN unasked_merges INT NOT NULL DEFAULT 0;
