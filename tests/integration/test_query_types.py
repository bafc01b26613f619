"""Every typed query gives what its class says, and is given what it asks for.

The statements are prepared against the real schema, and their columns compared with the fields of
the class that a call names: `session.rows(Backfill, "open_backfill")`.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import psycopg
import pytest

from memory_core.kernel import queries
from memory_core.kernel.settings import Settings
from tests.documented import ROOT
from tests.integration.dagster_database import dagster_instance, own_database

_PARAMETER = re.compile(r"%\((\w+)\)s")
_ROWS = {"rows", "row", "only", "pages"}
_VALUES = {"value", "maybe", "values"}
_TYPES: dict[str, tuple[object, ...]] = {
    "text": (str,),
    "varchar": (str,),
    "name": (str,),
    "bool": (bool,),
    "int2": (int,),
    "int4": (int,),
    "int8": (int,),
    "float4": (float,),
    "float8": (float,),
    "uuid": (UUID,),
    "bytea": (bytes,),
    "timestamp": (datetime,),
    "timestamptz": (datetime,),
    "jsonb": (dict, list, str, Any),
}


@dataclass(frozen=True, slots=True)
class Call:
    """A typed query as the code asks for it."""

    module: str
    method: str
    kind: str
    query: str
    given: frozenset[str]
    is_complete: bool  # no `**parameters`

    def __str__(self) -> str:
        return f"{self.module}: {self.query}"


def calls() -> Iterator[Call]:
    for package in ("memory_core", "memory_assets", "mcp_server", "stack"):
        for file in sorted((ROOT / package).rglob("*.py")):
            yield from _calls_in(file)


def _calls_in(file: Path) -> Iterator[Call]:
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(
                func=ast.Attribute(attr=method),
                args=[ast.Name(id=kind), ast.Constant(value=str(query))],
                keywords=keywords,
            ) if method in _ROWS | _VALUES:
                given = frozenset(keyword.arg for keyword in keywords if keyword.arg)
                yield Call(module, method, kind, query, given, len(given) == len(keywords))


CALLS = list(calls())


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


def test_there_are_typed_queries() -> None:
    assert len({call.query for call in CALLS}) >= 20


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_the_columns_are_the_fields(call: Call, schema: psycopg.Connection) -> None:
    columns = _columns(schema, call.query)
    if call.method in _VALUES:
        [type_] = columns.values()
        assert _fits(_kind(call), type_), f"{call.query} gives {type_}"
        return
    kind = _kind(call)
    hints = get_type_hints(kind)

    assert [field.name for field in fields(kind)] == list(columns)
    wrong = {name: type_ for name, type_ in columns.items() if not _fits(hints[name], type_)}
    assert not wrong, f"{call.kind} says otherwise"


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_the_parameters_are_those_of_the_query(call: Call) -> None:
    wanted = set(_PARAMETER.findall(queries.get(call.query).decode()))

    assert call.given <= wanted
    if call.is_complete:
        assert call.given == wanted


def _kind(call: Call) -> Any:
    builtin = {"int": int, "str": str, "bool": bool, "float": float, "dict": dict}.get(call.kind)
    return builtin or getattr(importlib.import_module(call.module), call.kind)


def _columns(sql: psycopg.Connection, query: str) -> dict[str, str]:
    names: dict[str, int] = {}
    text = _PARAMETER.sub(
        lambda found: f"${names.setdefault(found[1], len(names) + 1)}", queries.get(query).decode()
    )
    prepared = sql.pgconn.prepare(b"", text.replace("%%", "%").encode())
    assert prepared.status == psycopg.pq.ExecStatus.COMMAND_OK, prepared.error_message.decode()
    described = sql.pgconn.describe_prepared(b"")
    return {
        (described.fname(n) or b"").decode(): _type(sql, described.ftype(n))
        for n in range(described.nfields)
    }


def _type(sql: psycopg.Connection, oid: int) -> str:
    info = sql.adapters.types.get(oid)
    assert info is not None, f"type {oid} is not known"
    return f"{info.name}[]" if info.array_oid == oid and info.oid != oid else info.name


def _fits(hint: object, type_: str) -> bool:
    hint = _without_none(hint)
    if type_.endswith("[]"):
        return get_origin(hint) is list and _fits(get_args(hint)[0], type_.removesuffix("[]"))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return type_ in {"text", "varchar"}
    if get_origin(hint) is Literal:
        return {type(choice) for choice in get_args(hint)} == set(_TYPES[type_])
    return (get_origin(hint) or hint) in _TYPES[type_]


def _without_none(hint: object) -> object:
    if get_origin(hint) in (Union, type(int | None)):
        [hint] = [one for one in get_args(hint) if one is not type(None)]
    return hint
