-- Where a passage stands: in which artifacts, and in which revisions of one artifact. One index for
-- both questions. The one that began with the artifact was also taken to find one chunk of an artifact
-- by its number: Postgres then read all chunks of that artifact, which are thousands in a long document.
DROP INDEX idx_revision_chunk_passage, idx_revision_chunk_hash;
CREATE INDEX idx_revision_chunk_hash ON revision_chunk (content_hash, artifact_uid);
