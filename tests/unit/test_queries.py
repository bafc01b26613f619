"""Named queries: well-formed, unique, all used, all known; and no SQL anywhere in Python."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core.kernel import queries
from tests.query_calls import EFFECTS, ROWS, VALUES

PROJECT = Path(__file__).resolve().parents[2]
QUERY_FILES = sorted((PROJECT / "sql" / "queries").glob("*.sql"))
MODULES = sorted(
    path
    for package in ("memory_core", "memory_assets", "mcp_server", "stack")
    for path in (PROJECT / package).rglob("*.py")
)

HEADER = re.compile(r"(?m)^-- (name|fragment): (\w+)[ \t]*$")
INCLUDE = re.compile(r"(?m)^[ \t]*-- include: (\w+)[ \t]*$")
# A statement's beginning, as one writes it; prose that starts with such a word does not match.
SQL = re.compile(
    r"""^\s*(?:
        select\s+(?:[\w.*('"%]|$)[^.]*\bfrom\b | select\s+(?:1|count|pg_|now|to_)\b
      | insert\s+into\s | update\s+\w+\s+set\s | delete\s+from\s | merge\s+into\s
      | with\s+(?:recursive\s+)?\w+\s+as\s*\( | truncate\s+(?:table\s+)?\w+
      | (?:create|alter|drop)\s+(?:unique\s+)?
        (?:table|index|schema|database|view|function|trigger|type|role)\s
      | copy\s+\w+.*\b(?:from|to)\s+std | listen\s+\w+\s*$ | notify\s+\w+\s*$
      | for\s+update\s+skip | set\s+local\s
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
# The stack's probe asks a server that may not have our schema yet.
ALLOWED_SQL = {("stack/probes.py", "SELECT 1")}


def relative(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def strings_of(module: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every string that is not a docstring."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            if isinstance(node.value, str):
                yield node.lineno, node.value
            elif isinstance(node.value, bytes):
                yield node.lineno, node.value.decode(errors="replace")


def names_asked_for(module: Path) -> Iterator[tuple[int, str]]:
    """Line and name of every query that the code asks for by a literal name."""
    awaited: set[int] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Await):
            awaited.add(id(node.value))
        if not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.args
            and isinstance(node.args[-1], ast.Constant)
            and isinstance(node.args[-1].value, str)
        ):
            continue
        of_queries = node.func.attr == "get" and ast.unparse(node.func.value) == "queries"
        of_session = node.func.attr in ROWS | VALUES | EFFECTS and id(node) in awaited
        if of_queries or of_session:
            yield node.lineno, node.args[-1].value


ALL_SQL = "\n".join(file.read_text(encoding="utf-8") for file in QUERY_FILES)
KNOWN = [name for kind, name in HEADER.findall(ALL_SQL) if kind == "name"]
FRAGMENTS = [name for kind, name in HEADER.findall(ALL_SQL) if kind == "fragment"]
WRITTEN = {module: list(strings_of(module)) for module in MODULES}


class TestFiles:
    def test_there_are_some(self) -> None:
        assert QUERY_FILES

    @pytest.mark.parametrize("file", QUERY_FILES, ids=relative)
    def test_everything_in_it_stands_under_a_name(self, file: Path) -> None:
        before, *_ = HEADER.split(file.read_text(encoding="utf-8"))
        assert not [
            line for line in before.splitlines() if line.strip() and not line.startswith("--")
        ]

    @pytest.mark.parametrize("file", QUERY_FILES, ids=relative)
    def test_every_marker_is_well_formed(self, file: Path) -> None:
        text = file.read_text(encoding="utf-8")
        markers = re.findall(r"(?i)--\s*(?:name|fragment|include)\s*:", text)
        assert len(markers) == len(HEADER.findall(text)) + len(INCLUDE.findall(text))

    def test_names_are_unique_and_in_one_style(self) -> None:
        names = [*KNOWN, *FRAGMENTS]
        assert [name for name, count in Counter(names).items() if count > 1] == []
        assert [name for name in names if not re.fullmatch(r"[a-z][a-z0-9_]*", name)] == []

    def test_the_program_knows_the_same_names(self) -> None:
        assert queries.every().keys() == set(KNOWN)

    def test_every_fragment_is_included_somewhere_and_no_other_is(self) -> None:
        assert set(INCLUDE.findall(ALL_SQL)) == set(FRAGMENTS)

    def test_a_name_given_twice_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(queries, "parse", lambda _: [("name", "same", "x")])
        queries.every.cache_clear()
        try:
            with pytest.raises(ValueError, match="'same' is defined twice"):
                queries.get("same")
        finally:
            queries.every.cache_clear()

    def test_an_unknown_name_is_an_error(self) -> None:
        with pytest.raises(KeyError):
            queries.get("no_such_query")


@pytest.mark.parametrize("name", KNOWN)
class TestEachQuery:
    def test_it_is_one_statement(self, name: str) -> None:
        code = re.sub(r"--[^\n]*|'(?:[^']|'')*'", "", queries.get(name).decode())
        assert code.strip(), "nothing but comments"
        assert ";" not in code

    def test_its_parameters_are_named(self, name: str) -> None:
        # A stray % or a positional %s would only fail when the query runs.
        text = re.sub(r"%\([a-z_][a-z0-9_]*\)[sbt]|%%", "", queries.get(name).decode())
        assert "%" not in text

    def test_some_code_uses_it(self, name: str) -> None:
        mentioned = any(name == text for found in WRITTEN.values() for _, text in found)
        assert mentioned, f"{name} is used nowhere: delete it"


def test_every_query_the_code_asks_for_exists() -> None:
    unknown = [
        f"{relative(module)}:{line} {name}"
        for module in MODULES
        for line, name in names_asked_for(module)
        if name not in KNOWN
    ]
    assert unknown == []


def test_no_sql_is_written_in_python() -> None:
    offending = [
        f"{relative(module)}:{line} {text[:60]!r}"
        for module, strings in WRITTEN.items()
        for line, text in strings
        if SQL.search(text) and (relative(module), text) not in ALLOWED_SQL
    ]
    assert offending == [], "put it into sql/queries under a name"


@pytest.mark.parametrize(
    ("text", "is_sql"),
    [
        ("SELECT 1", True),
        ("select a, b from t where c = %s", True),
        ("\n    WITH x AS (SELECT 1) SELECT * FROM x", True),
        ("INSERT INTO t VALUES (1)", True),
        ("UPDATE t SET a = 1", True),
        ("DELETE FROM t", True),
        ("CREATE TABLE t (a int)", True),
        ("DROP INDEX i", True),
        ("TRUNCATE t", True),
        ("Select a document first.", False),
        ("Update the settings, or set EMBEDDER=local", False),
        ("with retries", False),
        ("create the environment", False),
        ("delete", False),
    ],
)
def test_sql_is_told_from_prose(text: str, is_sql: bool) -> None:
    assert bool(SQL.search(text)) is is_sql


def test_the_core_asks_nothing_of_the_tables_of_dagster() -> None:
    named = {
        name
        for file in QUERY_FILES
        for kind, name, text in queries.parse(file.read_text(encoding="utf-8"))
        if kind == "name" and "dagster." in text
    }
    core = [module for module in MODULES if relative(module).startswith("memory_core/")]

    asked = {
        (relative(module), text)
        for module in core
        for _, text in strings_of(module)
        if text in named
    }

    assert len(named) > 10
    assert asked == set()


def test_one_file_changes_jobs() -> None:
    """docs/jobs.md says so, and a reader of it sees every transition."""
    changing = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+event_jobs\b")
    folder = Path(__file__).resolve().parents[2] / "sql" / "queries"
    files = {file.name for file in folder.glob("*.sql") if changing.search(file.read_text())}

    assert files == {"queue_jobs.sql"}
