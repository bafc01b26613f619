"""What README and docs name exists: commands and their options, files, settings."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from mcp_server.cli import app
from memory_core.kernel.env_file import COMPOSE_ONLY
from memory_core.kernel.settings import variable_names
from tests.documented import ROOT, blocks, missing_lines, named_commands, pages

PROGRAM = typer.main.get_command(app)
# Run as written, and what is there to be read.
LANGUAGES = {
    "sh",
    "json",
    "mermaid",
    "text",
    "sql",
    "nginx",
    "caddy",
    "yaml",
    "python",
    "javascript",
}
PAGES = pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
# Placeholders and alternatives of a synopsis: `[--force]`, `a | b`, `UID`, `PATH…`.
_SYNOPSIS = re.compile(r"[\[\]…]")
# Shell, Dagster and image variables that are not settings of the program.
_OTHER_VARIABLES = {"PATH", "HOME", "DAGSTER_HOME", "PYTHON"} | COMPOSE_ONLY
# Words in capitals with an underscore that are no variables: states and codes.
_SETTING = re.compile(r"(?<![\w.])([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)=")


def inner_commands(command: Any) -> dict[str, Any]:
    """Those of a group; a command by itself has none."""
    inner: dict[str, Any] = getattr(command, "commands", {})
    return inner


def resolve(words: list[str]) -> tuple[Any, list[str]]:
    """The command that these words name, and the words after it."""
    command: Any = PROGRAM
    while words and inner_commands(command) and not words[0].startswith("-"):
        inner = inner_commands(command).get(words[0])
        assert inner is not None, f"there is no command {words[0]!r} in {command.name!r}"
        command, words = inner, words[1:]
    return command, words


def commands_of(text: str) -> list[list[str]]:
    """`backfill pause | resume` names two commands."""
    words = shlex.split(_SYNOPSIS.sub(" ", text.split(" > ")[0]), comments=True)[1:]
    if "|" not in words:
        return [words]
    first, *others = " ".join(words).split(" | ")
    head = first.split()
    return [head, *([*head[:-1], *other.split()] for other in others if other.split()[0].islower())]


@PAGES
def test_every_command_that_a_page_names_exists_with_its_options(page: Path) -> None:
    for text in named_commands(page):
        for words in commands_of(text):
            command, rest = resolve(words)
            options = {option for item in command.params for option in item.opts} | {"--help"}
            unknown = [word for word in rest if re.match(r"--?[a-z]", word)]
            unknown = [word for word in unknown if word.split("=")[0] not in options]
            assert not unknown, f"{page.name}: `{text}` names {unknown}, which do not exist"


@PAGES
def test_every_link_and_picture_of_a_page_leads_to_a_file(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@PAGES
def test_every_setting_that_a_page_gives_a_value_exists(page: Path) -> None:
    for name in _SETTING.findall(page.read_text(encoding="utf-8")):
        assert name in variable_names() | _OTHER_VARIABLES, f"{page.name} sets {name}"


@PAGES
def test_every_block_of_a_page_is_of_a_kind_that_is_checked(page: Path) -> None:
    """A block that is neither run nor read would never be missed when it goes wrong."""
    for block in blocks(page):
        assert block.language in LANGUAGES, (
            f"{block.name}: give the block a language, or put it right below what prints it"
        )


@PAGES
def test_a_line_of_a_shell_block_has_one_command(page: Path) -> None:
    """A paragraph formatter joins lines. A block that is not run would stay broken."""
    for block in blocks(page):
        for line in block.text.splitlines() if block.language == "sh" else ():
            assert len(re.findall(r"(?<!`)mcp-memory ", line)) <= 1, f"{block.name}: `{line}`"


def test_every_command_is_in_the_readme_or_a_page_it_links_to() -> None:
    documented = {tuple(words[:1]) for page in pages() for text in named_commands(page)
            for words in commands_of(text)}  # fmt: skip
    commands = inner_commands(PROGRAM).items()
    visible = {(name,) for name, command in commands if not command.hidden}
    assert visible <= documented, f"told nowhere: {visible - documented}"


@pytest.mark.parametrize(
    ("shown", "printed", "missing"),
    [
        ("┃ when ┃ what ┃\n│ May │ launch │", "│ when  │ what │\n├──┤\n│ May   │ launch │", []),
        ("3 documents …", "3 documents stored in 0.4 s", []),
        ("one\ntwo", "two\none", ["two"]),
        ("gone", "here", ["gone"]),
    ],
)
def test_an_answer_is_compared_line_by_line(shown: str, printed: str, missing: list[str]) -> None:
    assert missing_lines(shown, printed) == missing


def test_the_root_of_the_pages_is_the_checkout() -> None:
    assert (ROOT / "pyproject.toml").is_file()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_module_that_a_page_names_exists(page: Path) -> None:
    files = [str(file.relative_to(ROOT)) for top in PACKAGES for file in (ROOT / top).rglob("*.py")]
    named = re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8"))

    unknown = [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files)]

    assert unknown == []


PACKAGES = ("memory_core", "memory_assets", "mcp_server", "stack", "tests", "benchmarks", "docs")
