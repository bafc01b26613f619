"""Each file of queries belongs to one package, which alone asks for what is in it."""

import re
from pathlib import Path

import pytest

from memory_core.kernel import queries
from tests.documented import ROOT
from tests.query_calls import named_in, sources

FOLDER = ROOT / "sql" / "queries"
PACKAGES = {
    *("mcp_server", "memory_assets", "stack"),
    *(folder.name for folder in (ROOT / "memory_core").iterdir() if folder.is_dir()),
}
PARTS = {
    (file.stem, kind, name): text
    for file in sorted(FOLDER.glob("*.sql"))
    for kind, name, text in queries.parse(file.read_text(encoding="utf-8"))
}
FILE_OF = {name: stem for stem, _, name in PARTS}
INCLUDED = re.compile(r"^[ \t]*-- include: (\w+)", re.MULTILINE)
# Words that name something else there: a field of an answer.
OTHER_MEANINGS = {("mcp_server", "stakeholders")}
# Who took part is asked of the same events that a search finds.
SHARED_FRAGMENTS = {("events", "entry_filters")}


def owners_of(stem: str) -> list[str]:
    """`search_events` is of the package `search`."""
    return [package for package in PACKAGES if f"{stem}_".startswith(f"{package}_")]


def owner(name: str) -> str:
    [package] = owners_of(FILE_OF[name])
    return package


def package_of(module: str) -> str:
    top, *below = module.split(".")
    return below[0] if top == "memory_core" and below else top


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.sql")), ids=lambda file: file.name)
def test_a_file_is_named_by_its_package(file: Path) -> None:
    assert len(owners_of(file.stem)) == 1


def test_a_query_is_asked_for_by_its_package_alone() -> None:
    strangers = [
        f"{module} asks for {name}, which is in {FILE_OF[name]}.sql"
        for module in sources()
        for name in sorted(named_in(module))
        if owner(name) != package_of(module) and (package_of(module), name) not in OTHER_MEANINGS
    ]
    assert strangers == [], "move the query, or call a function of the package that has it"


def test_a_fragment_is_included_by_its_package_alone() -> None:
    strangers = [
        f"{name} in {stem}.sql includes {fragment} of {FILE_OF[fragment]}.sql"
        for (stem, _, name), text in PARTS.items()
        for fragment in INCLUDED.findall(text)
        if owner(fragment) != owner(name) and (owner(name), fragment) not in SHARED_FRAGMENTS
    ]
    assert strangers == []
