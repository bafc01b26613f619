"""What README and docs say: their code blocks, the marks on them, and the commands they name.

A fenced block of `sh` is run as written. A comment on the line above its fence says otherwise:

    <!-- not run: the reason -->             cannot run here
    <!-- keeps running until: some words --> started in the background, until it prints these words

A block without a language right below a block of `sh` is what that one answers: each of its lines
must be printed, in this order. In it `…` stands for anything.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FENCE = re.compile(r"^```(\w*)\s*$")
_NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")
_KEEPS_RUNNING = re.compile(r"^<!-- keeps running until: (.+) -->$")
# What a terminal draws around an answer.
_DRAWN = re.compile(r"[\u2500-\u257f|]+")


@dataclass(slots=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None = None
    keeps_running_until: str | None = None
    answer: str | None = None

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """README first: a newcomer reads it first."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[Block]:
    blocks: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        if fence is None:
            number += 1
            continue
        end = next(at for at in range(number + 1, len(lines)) if lines[at].startswith("```"))
        block = Block(page, number + 1, fence[1], "\n".join(lines[number + 1 : end]))
        _read_mark(block, lines[number - 1] if number else "")
        if block.language == "" and _follows(blocks, lines, number):
            blocks[-1].answer = block.text
        else:
            blocks.append(block)
        number = end + 1
    return blocks


def _read_mark(block: Block, above: str) -> None:
    if mark := _NOT_RUN.match(above):
        block.not_run = mark[1]
    if mark := _KEEPS_RUNNING.match(above):
        block.keeps_running_until = mark[1]


def _follows(found: list[Block], lines: list[str], number: int) -> bool:
    """Whether only blank lines stand between the last block and this one."""
    if not found or found[-1].language != "sh":
        return False
    end_of_last = found[-1].line + found[-1].text.count("\n") + 2
    return all(not line.strip() for line in lines[end_of_last:number])


def missing_lines(shown: str, printed: str) -> list[str]:
    """The lines of an answer in the documentation that were not printed, or not in that order."""
    output = _plain(printed)
    place = 0
    missing = []
    for line in filter(None, map(_plain, shown.splitlines())):
        pattern = ".*?".join(re.escape(part.strip()) for part in line.split("…"))
        match = re.compile(pattern, re.DOTALL).search(output, place)
        if match is None:
            missing.append(line)
        else:
            place = match.end()
    return missing


def _plain(text: str) -> str:
    return " ".join(_DRAWN.sub(" ", text).split())


def named_commands(page: Path) -> Iterator[str]:
    """Every `mcp-memory …` of a page, in prose and in blocks."""
    text = page.read_text(encoding="utf-8")
    for code in re.findall(r"`(?:[\w./]*/)?(mcp-memory [^`]*)`", text.replace("\\|", "|")):
        yield " ".join(code.split())
    for block in blocks(page):
        for line in block.text.splitlines():
            if command := re.match(r"\s*(?:\S*/)?(mcp-memory .*)$", line.partition(" #")[0]):
                yield command[1].strip()


def copy_of_checkout(folder: Path) -> Path:
    """The files that git knows, as a clone would have them, with this checkout's environment."""
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    for name in filter(None, files):
        source, target = ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            # With its times: the environment is not older than what it was made from.
            shutil.copy2(source, target)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder
