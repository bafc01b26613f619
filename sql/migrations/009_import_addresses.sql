-- Where else an imported document was met than its source_url says: a message lies in several
-- mailboxes, and moves between them. It is gone when it is at none of its addresses.
CREATE TABLE import_address (
    artifact_uid TEXT NOT NULL,
    address      TEXT NOT NULL,             -- as in source_url: import:root/path
    PRIMARY KEY (artifact_uid, address)
);
