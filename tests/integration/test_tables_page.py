"""docs/tables.md tells every table of the schema: its purpose, columns, indexes and triggers.

After an intended change:
`UPDATE_SNAPSHOTS=1 python -m pytest tests/integration/test_tables_page.py`.
What a table and a trigger are for stands in the schema itself (`COMMENT ON`).
"""

import os
from collections import defaultdict
from typing import NamedTuple

import psycopg

from tests.documented import ROOT

PAGE = ROOT / "docs" / "tables.md"
_HEAD = """\
# Tables

Every table of the product in Postgres, written from the catalogue of a new database by
`tests/integration/test_tables_page.py` when UPDATE_SNAPSHOTS is set, and checked by it otherwise.
Dagster keeps its own tables in the schema `dagster`; they are not listed.
"""
_OURS = "n.nspname IN ('public', 'log') AND NOT c.relispartition"


class Table(NamedTuple):
    oid: int
    name: str
    purpose: str | None


def test_the_page_tells_every_table(sql: psycopg.Connection) -> None:
    tables = _tables(sql)
    page = _page(sql, tables)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        PAGE.write_text(page, encoding="utf-8")

    assert [table.name for table in tables if not table.purpose] == [], (
        "COMMENT ON TABLE is missing"
    )
    assert PAGE.read_text(encoding="utf-8") == page, "review it, then UPDATE_SNAPSHOTS=1"


def test_every_trigger_says_what_it_is_for(sql: psycopg.Connection) -> None:
    silent = sql.execute(
        "SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
        f"JOIN pg_namespace n ON n.oid = c.relnamespace WHERE NOT t.tgisinternal AND {_OURS} "
        "AND obj_description(t.oid, 'pg_trigger') IS NULL"
    ).fetchall()

    assert silent == [], "COMMENT ON TRIGGER is missing"


def _tables(sql: psycopg.Connection) -> list[Table]:
    rows = sql.execute(
        "SELECT c.oid, CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END "
        "|| c.relname, obj_description(c.oid, 'pg_class') FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE c.relkind IN ('r', 'p', 'v') AND {_OURS} "
        "ORDER BY n.nspname DESC, c.relname"
    ).fetchall()
    return [Table(*row) for row in rows]


def _page(sql: psycopg.Connection, tables: list[Table]) -> str:
    columns = _by_table(
        sql,
        "SELECT a.attrelid, '| `' || a.attname || '` | ' || format_type(a.atttypid, a.atttypmod) "
        "|| CASE WHEN a.attnotnull THEN '' ELSE ', may be empty' END || ' |' "
        "FROM pg_attribute a WHERE a.attnum > 0 AND NOT a.attisdropped "
        "ORDER BY a.attrelid, a.attnum",
    )
    indexes = _by_table(
        sql,
        "SELECT indrelid, '- ' || regexp_replace(pg_get_indexdef(indexrelid), "
        "'CREATE (UNIQUE )?INDEX (\\w+) ON (ONLY )?[\\w.]+ USING ', '\\1`\\2`: ') "
        "FROM pg_index ORDER BY indrelid, indexrelid::regclass::text",
    )
    triggers = _by_table(
        sql,
        "SELECT tgrelid, '- `' || tgname || '`: ' "
        "|| coalesce(obj_description(oid, 'pg_trigger'), '') "
        "FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgrelid, tgname",
    )
    lines = [_HEAD]
    for table in tables:
        lines += [f"## {table.name}", "", table.purpose or "", "", "| column | type |", "|---|---|"]
        lines += [*columns[table.oid], ""]
        for title, found in (("Indexes", indexes), ("Triggers", triggers)):
            if found[table.oid]:
                lines += [f"{title}:", "", *found[table.oid], ""]
    return "\n".join(lines)


def _by_table(sql: psycopg.Connection, query: str) -> dict[int, list[str]]:
    comments: dict[int, list[str]] = defaultdict(list)
    for table, line in sql.execute(query).fetchall():  # type: ignore[call-overload]
        comments[table].append(line)
    return comments
