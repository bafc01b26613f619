"""Every named query gives what its class says, and is given what it asks for.

The statements are prepared against the real schema. Their columns are compared with the fields of
the class that a call names, `session.rows(Backfill, "open_backfill")`, and their parameters with
those of the call.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import psycopg
import pytest

from memory_core.kernel import queries
from memory_core.kernel.settings import Settings
from tests.integration.dagster_database import dagster_instance, own_database
from tests.query_calls import ROWS, VALUES, Call, calls

_PARAMETER = re.compile(r"%\((\w+)\)s")
_INTEGERS = {"int2", "int4", "int8"}
_TEXTS = {"text", "varchar", "name"}
_TYPES: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(_TEXTS, (str,)),
    **dict.fromkeys(_INTEGERS, (int,)),
    "bool": (bool,),
    "float4": (float,),
    "float8": (float,),
    "bytea": (bytes,),
    "uuid": (UUID,),
    "date": (date,),
    "timestamp": (datetime,),
    "timestamptz": (datetime,),
    "json": (list,),
    "jsonb": (dict, list, str, Any),
}
# What may be passed for a parameter, by the type that the code declares in place. Postgres reads
# ids and queries from texts.
_PASSED = {
    "str": {*_TEXTS, "uuid", "tsquery", "jsonb"},
    "int": {*_INTEGERS, "float8"},
    "float": {"float8"},
    "bool": {"bool"},
    "UUID": {"uuid"},
    "datetime": {"timestamptz"},
    "date": {"date"},
    "list[str]": {"text[]", "uuid[]", "tsquery[]"},
    "Sequence[str]": {"text[]", "uuid[]", "tsquery[]"},
    "list[UUID]": {"uuid[]"},
    "Sequence[UUID]": {"uuid[]"},
    "list[int]": {"int4[]", "int8[]"},
    "list[float]": {"float8[]"},
}
# Columns that may be NULL in their table and are not in these rows.
_NEVER_NULL = {
    ("Job", "partition_key"),  # it is claimed by that
    ("Job", "run_id"),
    ("ClaimableJob", "partition_key"),
    ("StoredEvents", "partition_key"),
    ("StuckRun", "run_id"),
    ("_Imported", "source_url"),  # it is found by that
}

CALLS = [call for call in calls() if call.method in ROWS | VALUES]


@dataclass(frozen=True, slots=True)
class Column:
    type: str
    may_be_null: bool | None  # in its table; None: it is no column of a table


@dataclass(frozen=True, slots=True)
class Statement:
    columns: dict[str, Column]
    parameters: dict[str, str]


@pytest.fixture(scope="module")
def schema(
    services: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[psycopg.Connection]:
    """Our tables and Dagster's."""
    with own_database(services, "query_types") as dsn, pytest.MonkeyPatch.context() as patched:
        with dagster_instance(dsn, tmp_path_factory.mktemp("dagster"), patched):
            pass
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield connection


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_the_columns_are_the_fields(call: Call, schema: psycopg.Connection) -> None:
    columns = prepared(schema, call.query).columns
    if call.method in VALUES:
        [column] = columns.values()
        assert _fits(call.type, column.type), f"{call.query} gives {column.type}"
        return
    hints = get_type_hints(call.type)

    assert [field.name for field in fields(call.type)] == list(columns)
    wrong = {name: one.type for name, one in columns.items() if not _fits(hints[name], one.type)}
    assert not wrong, f"{call.kind} says otherwise"


@pytest.mark.parametrize("call", [one for one in CALLS if one.method in ROWS], ids=str)
def test_what_may_be_null_may_be_none(call: Call, schema: psycopg.Connection) -> None:
    """As far as a table says it. What an outer join leaves empty, the schema does not tell."""
    hints = get_type_hints(call.type)
    for name, column in prepared(schema, call.query).columns.items():
        if column.may_be_null and (call.kind, name) not in _NEVER_NULL:
            assert _may_be_none(hints[name]), f"{call.kind}.{name} may be NULL"


def test_what_is_never_null_is_never_none(schema: psycopg.Connection) -> None:
    """In none of the queries that give such rows. A field with a default is set elsewhere too."""
    sure: dict[tuple[Any, str], bool] = {}
    for call in CALLS:
        if call.method in ROWS:
            joined = b"LEFT JOIN" in queries.get(call.query)
            for name, column in prepared(schema, call.query).columns.items():
                never_null = column.may_be_null is False and not joined
                sure[call.type, name] = never_null and sure.get((call.type, name), True)
    required = {
        (kind, field.name): get_type_hints(kind)[field.name]
        for kind in {kind for kind, _ in sure}
        for field in fields(kind)
        if field.default is MISSING
    }
    doubtful = {
        f"{key[0].__name__}.{key[1]}"
        for key, hint in required.items()
        if sure[key] and _may_be_none(hint)
    }
    assert doubtful == set()


@pytest.mark.parametrize("call", [one for one in calls() if not one.is_chosen], ids=str)
def test_the_parameters_are_those_of_the_query(call: Call, schema: psycopg.Connection) -> None:
    parameters = prepared(schema, call.query).parameters

    assert call.given.keys() <= parameters.keys()
    if call.is_complete:
        assert call.given.keys() == parameters.keys()
    for name, passed in call.given.items():
        declared = _declared(passed, call.annotations)
        allowed = _PASSED.get(declared) if declared else None
        assert allowed is None or parameters[name] in allowed, f"{name} is {declared}"


def prepared(sql: psycopg.Connection, query: str) -> Statement:
    numbers: dict[str, int] = {}
    text = _PARAMETER.sub(
        lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}",
        queries.get(query).decode(),
    )
    result = sql.pgconn.prepare(b"", text.replace("%%", "%").encode())
    assert result.status == psycopg.pq.ExecStatus.COMMAND_OK, result.error_message.decode()
    described = sql.pgconn.describe_prepared(b"")
    return Statement(
        {
            (described.fname(n) or b"").decode(): Column(
                _type(sql, described.ftype(n)),
                _may_be_null(sql, described.ftable(n), described.ftablecol(n)),
            )
            for n in range(described.nfields)
        },
        {name: _type(sql, described.param_type(n - 1)) for name, n in numbers.items()},
    )


def _type(sql: psycopg.Connection, oid: int) -> str:
    row = sql.execute("SELECT format_type(%s, NULL), typname FROM pg_type WHERE oid = %s",
                        [oid, oid]).fetchone()  # fmt: skip
    assert row is not None
    name: str = row[1]
    return f"{name[1:]}[]" if row[0].endswith("[]") else name


def _may_be_null(sql: psycopg.Connection, table: int, number: int) -> bool | None:
    if not table:
        return None
    rows = sql.execute(
        "SELECT NOT a.attnotnull FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " WHERE a.attrelid = %s AND a.attnum = %s AND c.relkind IN ('r', 'p')",
        [table, number],
    ).fetchone()
    return None if rows is None else bool(rows[0])


def _fits(hint: object, type_: str) -> bool:
    hint = _without_none(hint)
    if type_.endswith("[]"):
        return get_origin(hint) is list and _fits(get_args(hint)[0], type_.removesuffix("[]"))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return type_ in _TEXTS
    if get_origin(hint) is Literal:
        return {type(choice) for choice in get_args(hint)} == set(_TYPES[type_])
    return (get_origin(hint) or hint) in _TYPES[type_]


def _may_be_none(hint: object) -> bool:
    return hint is Any or type(None) in get_args(hint)


def _without_none(hint: object) -> object:
    if get_origin(hint) in (Union, type(int | None)):
        [hint] = [one for one in get_args(hint) if one is not type(None)]
    return hint


def _declared(passed: ast.expr, annotations: dict[str, str]) -> str | None:
    """The type of what is passed, where the code says it in place; None: it does not."""
    match passed:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return type(value).__name__
        case ast.Name(id=name) if name in annotations:
            return annotations[name].removesuffix(" | None")
        case _:
            return None
