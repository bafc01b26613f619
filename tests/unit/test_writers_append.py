"""Whatever writes to the memory does so in a transaction that appends to the log."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from memory_core.kernel import queries

PROJECT = Path(__file__).resolve().parents[2]
# What the memory is. Left out: what is derived from these by triggers, the queue (event_jobs, whose
# transitions are not changes of the memory), caches, and bookkeeping of imports.
DOMAIN = {
    "artifact_revision",
    "revision_text",
    "revision_chunk",
    "semantic_event",
    "event_evidence",
    "memory",
    "history_turn",
    "backfill",
}
# Neither adds, removes nor alters anything that a tool shows.
BOOKKEEPING = {
    "note_tick",  # when a backfill last looked around
    "date_memory",  # by an import, right after the change that stored it
    "date_turn",
}
WRITE = re.compile(r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(?:ONLY\s+)?([a-z_]+)\b")
OPENERS = {"transaction", "session"}


Name = tuple[str, str]  # module and function


@dataclass
class Function:
    name: Name
    queries: set[str] = field(default_factory=set)
    calls: set[Name] = field(default_factory=set)
    opens: bool = False
    appends: bool = False


def query_names() -> list[str]:
    names = []
    for file in sorted((PROJECT / "sql" / "queries").glob("*.sql")):
        names += re.findall(r"(?m)^-- name: (\w+)", file.read_text(encoding="utf-8"))
    return names


def writes_to_domain(name: str) -> bool:
    return name not in BOOKKEEPING and bool(DOMAIN & set(WRITE.findall(queries.get(name).decode())))


WRITERS = [name for name in query_names() if writes_to_domain(name)]


def imported(tree: ast.Module) -> dict[str, Name]:
    """What a name of the module stands for: a function of another, or (with "") another module."""
    found: dict[str, Name] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                local = alias.asname or alias.name
                is_module = module_path(f"{node.module}.{alias.name}").exists()
                found[local] = (
                    (f"{node.module}.{alias.name}", "") if is_module else (node.module, alias.name)
                )
    return found


def module_path(dotted: str) -> Path:
    return PROJECT / (dotted.replace(".", "/") + ".py")


def called(node: ast.Call, module: str, names: dict[str, Name]) -> Name | None:
    function = node.func
    if isinstance(function, ast.Name):
        return names.get(function.id, (module, function.id))
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
        return None
    owner = function.value.id
    if owner == "self":
        return module, function.attr
    return (names[owner][0], function.attr) if names.get(owner, ("", "x"))[1] == "" else None


def functions_of(module: str) -> Iterator[Function]:
    tree = ast.parse(module_path(module).read_text(encoding="utf-8"))
    names = imported(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef):
            continue
        found = Function((module, node.name))
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                found.queries.add(inner.value)
            if isinstance(inner, ast.Call):
                if (name := called(inner, module, names)) is not None:
                    found.calls.add(name)
                    found.appends |= name == ("memory_core.log.appending", "append")
                opener = inner.func
                found.opens |= isinstance(opener, ast.Attribute) and opener.attr in OPENERS
        yield found


@cache
def known() -> dict[Name, Function]:
    found: dict[Name, Function] = {}
    for package in ("memory_core", "memory_assets", "mcp_server", "stack"):
        for path in (PROJECT / package).rglob("*.py"):
            module = path.relative_to(PROJECT).with_suffix("").as_posix().replace("/", ".")
            for function in functions_of(module):
                found[function.name] = function
    return found


@cache
def within(name: Name) -> tuple[Function, ...]:
    """The function and all that it calls without a transaction of their own."""
    found = {name: known()[name]}
    waiting = [name]
    while waiting:
        for callee in known()[waiting.pop()].calls:
            if callee in known() and callee not in found and not known()[callee].opens:
                found[callee] = known()[callee]
                waiting.append(callee)
    return tuple(found.values())


def test_there_is_something_to_walk() -> None:
    assert {"insert_revisions", "store_memory", "append_turn", "insert_events"} <= set(WRITERS)


@pytest.mark.parametrize("query", WRITERS)
def test_a_query_that_writes_to_the_memory_runs_where_the_log_is_appended_to(query: str) -> None:
    openers = [
        function
        for function in known().values()
        if function.opens and any(query in one.queries for one in within(function.name))
    ]

    assert openers, f"nothing runs {query} in a transaction"
    silent = [
        function.name
        for function in openers
        if not any(one.appends for one in within(function.name))
    ]
    assert not silent, f"{query} is run without an append by {silent}"
