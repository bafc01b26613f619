"""Bugs that are put into the database for a while, to see whether the fuzzer finds them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

Sql = psycopg.Connection[Any]


@contextmanager
def policy_off(sql: Sql, table: str) -> Iterator[None]:
    sql.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
    try:
        yield
    finally:
        sql.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")


@contextmanager
def not_narrowed(sql: Sql, view: str, table: str) -> Iterator[None]:
    """A view through which all rows of its table are seen."""
    was = _one(sql, "SELECT pg_get_viewdef(%s::regclass)", view)
    place = ", ctid AS tid" if " AS tid" in was else ""
    sql.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT *{place} FROM {table}")
    try:
        yield
    finally:
        sql.execute(f"CREATE OR REPLACE VIEW {view} AS {was}")


@contextmanager
def marks_missing(sql: Sql, table: str) -> Iterator[None]:
    """Entries that were never marked with their audience."""
    change = f"UPDATE {table} SET audience_id = -audience_id"
    sql.execute(change)
    try:
        yield
    finally:
        sql.execute(change)


@contextmanager
def whole_tenant_seen(sql: Sql) -> Iterator[None]:
    """Audiences count for nothing within a tenant."""
    was = _one(sql, "SELECT pg_get_functiondef(%s::regproc)", "audiences_of_principal")
    condition = "m.member = ANY (principal_marks())"
    assert condition in was
    sql.execute(was.replace(condition, "true"))
    try:
        yield
    finally:
        sql.execute(was)


@contextmanager
def revisions_apart(sql: Sql) -> Iterator[None]:
    """Earlier revisions stay with those who saw them."""
    names = ("share_audience", "share_audience_of_new")
    for name in names:
        sql.execute(f"ALTER TABLE artifact_revision DISABLE TRIGGER {name}")
    try:
        yield
    finally:
        for name in names:
            sql.execute(f"ALTER TABLE artifact_revision ENABLE TRIGGER {name}")


@contextmanager
def words_counted_for_all(sql: Sql) -> Iterator[None]:
    was = _one(sql, "SELECT pg_get_functiondef(%s::regproc)", "passages_with")
    assert "RETURN 0;" in was
    sql.execute(was.replace("RETURN 0;", "RETURN counted;"))
    try:
        yield
    finally:
        sql.execute(was)


def _one(sql: Sql, query: str, *values: str) -> str:
    row = sql.execute(query, values).fetchone()
    assert row is not None
    return str(row[0])
