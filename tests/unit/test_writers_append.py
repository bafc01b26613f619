"""Whatever writes to the memory does so in a transaction that appends to the log."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from memory_core.kernel import queries
from tests.query_calls import EFFECTS, ROWS, VALUES

PROJECT = Path(__file__).resolve().parents[2]
# What the memory is.
DOMAIN = {
    "artifact_revision",
    "revision_text",
    "revision_chunk",
    "semantic_event",
    "event_evidence",
    "memory",
    "history_turn",
    "backfill",
    "tenant",
}
# Every other table, and why a write to it is no change of the memory.
OTHERS = {
    "derived by triggers, or with the rows of a change": {
        *("chunk_entry", "event_entry", "event_actor", "actor_name", "revision_entity"),
        *("revision_period", "artifact_source", "passage_statistics", "backfill_item"),
        *("audience", "audience_member"),
        *("word_change", "word_frequency"),
    },
    "the index: a projection": {"index_entry", "index_generation", "index_collections"},
    "the queue and its ledger": {
        *("event_jobs", "job_event", "job_request", "idempotent_request"),
        *("extraction", "model_call", "prompt_trial", "prompt_trial_revision"),
    },
    "caches, imports, audit and access": {
        *("extraction_cache", "embedding_cache", "import_address", "tool_calls", "rate_window"),
        *("access_key", "schema_migration"),
    },
}
# Neither adds, removes nor alters anything that a tool shows.
BOOKKEEPING = {
    "note_tick",  # when a backfill last looked around
    "date_memory",  # by an import, right after the change that stored it
    "date_turn",
}
WRITE = re.compile(
    r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO|TRUNCATE(?:\s+TABLE)?|COPY)\s+"
    r'(?:ONLY\s+)?(?:public\.)?"?([a-z_]+)\b',
    re.IGNORECASE,
)
TABLE = re.compile(r"CREATE\s+(?:UNLOGGED\s+)?TABLE\s+(?:IF NOT EXISTS\s+)?(?:(\w+)\.)?(\w+)\s*\(")
PACKAGES = ("memory_core", "memory_assets", "mcp_server", "stack")
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
    names: dict[str, Name] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                local = alias.asname or alias.name
                is_module = module_path(f"{node.module}.{alias.name}").exists()
                names[local] = (
                    (f"{node.module}.{alias.name}", "") if is_module else (node.module, alias.name)
                )
    return names


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
        function = Function((module, node.name))
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                function.queries.add(inner.value)
            if isinstance(inner, ast.Call):
                if (name := called(inner, module, names)) is not None:
                    function.calls.add(name)
                    function.appends |= name == ("memory_core.log.log_writer", "append")
                opener = inner.func
                function.opens |= isinstance(opener, ast.Attribute) and opener.attr in OPENERS
        yield function


@cache
def known() -> dict[Name, Function]:
    functions: dict[Name, Function] = {}
    for path in sources():
        module = path.relative_to(PROJECT).with_suffix("").as_posix().replace("/", ".")
        for function in functions_of(module):
            if (same := functions.get(function.name)) is None:
                functions[function.name] = function
                continue
            # Methods of one name: what any of them runs counts, an append only if all do it.
            same.queries |= function.queries
            same.calls |= function.calls
            same.opens |= function.opens
            same.appends &= function.appends
    return functions


def sources() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((PROJECT / package).rglob("*.py"))]


@cache
def within(name: Name) -> tuple[Function, ...]:
    """The function and all that it calls without a transaction of their own."""
    reached = {name: known()[name]}
    waiting = [name]
    while waiting:
        for callee in known()[waiting.pop()].calls:
            if callee in known() and callee not in reached and not known()[callee].opens:
                reached[callee] = known()[callee]
                waiting.append(callee)
    return tuple(reached.values())


def test_every_table_is_the_memory_or_something_else_for_a_reason() -> None:
    made: set[str] = set()
    for file in sorted((PROJECT / "sql" / "migrations").glob("*.sql")):
        tables = TABLE.findall(file.read_text(encoding="utf-8"))
        made |= {name for schema, name in tables if schema not in ("log", "audit")}

    listed = DOMAIN | set().union(*OTHERS.values())
    assert made - listed == set(), "is a write to it a change? DOMAIN or OTHERS"
    assert made >= DOMAIN


def test_no_function_of_the_database_writes_to_the_memory_but_its_triggers() -> None:
    """A query that calls one would not look like a writer."""
    body = re.compile(r"CREATE (?:OR REPLACE )?FUNCTION\s+([\w.]+)\(.*?\$\$(.*?)\$\$", re.DOTALL)
    files = sorted((PROJECT / "sql" / "migrations").glob("*.sql"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    writing = {
        name
        for text in texts
        for name, statements in body.findall(text)
        if DOMAIN & set(WRITE.findall(statements))
    }
    writing = {name for name in writing if f"EXECUTE FUNCTION {name}(" not in "".join(texts)}

    assert writing == set()


def texts(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_module_writes_to_the_memory_by_statements_of_its_own() -> None:
    unlisted = [
        (path, text)
        for path in sources()
        for text in texts(path)
        if DOMAIN & set(WRITE.findall(text))
    ]

    assert unlisted == [], "it belongs into sql/queries, where this test sees who runs it"


def test_queries_are_named_where_they_are_run() -> None:
    """A name that is put together cannot be followed to the query."""
    built = [
        (path, node.lineno)
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "session"
        and node.func.attr in ROWS | VALUES | EFFECTS
        and node.args
        and isinstance(node.args[-1], ast.JoinedStr | ast.BinOp)
    ]

    assert built == []


@pytest.mark.parametrize(
    "statement",
    [
        *("UPDATE public.memory SET content = ''", 'delete from "memory"', "TRUNCATE memory"),
        *("MERGE INTO memory USING", "COPY memory FROM STDIN", "INSERT INTO\nmemory AS m"),
    ],
)
def test_every_kind_of_write_is_seen(statement: str) -> None:
    assert WRITE.findall(statement) == ["memory"]


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
