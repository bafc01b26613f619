"""Markdown, reStructuredText and plain text: kept exactly, with the metadata in their heads."""

import re
from datetime import UTC, date, datetime
from pathlib import PurePosixPath
from typing import Any

from memory_core.artifacts.document import ArtifactType
from memory_core.importing.formats import transcript
from memory_core.importing.item import Item
from memory_core.kernel.times import as_utc

_FRONT_MATTER_CHARS = 20_000
_FIELD = re.compile(r"([A-Za-z][\w-]{0,40})[ \t]*:[ \t]*(.*)$")
_LIST_ENTRY = re.compile(r"[ \t]*-[ \t]+(.+)$")
_HEADING = re.compile(r"#[ \t]+(.{1,300}?)[ \t]*#*$")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+_])\1{2,}[ \t]*$")
_DAY_IN_NAME = re.compile(
    r"(?<!\d)((?:19|20)\d{2})[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)"
)
_NAMED_DAY = re.compile(r"(\d{1,2})-([A-Za-z]{3})-(\d{4})")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_HEAD_LINES = 60


def parse(text: str, path: PurePosixPath) -> Item:
    fields, head = _front_matter(text)
    if path.suffix.lower() == ".rst" and head.startswith("PEP: "):
        fields = _preamble(head)
    title = _plain(fields.get("title")) or _heading(head, path.suffix.lower()) or path.stem
    author = fields.get("author") or fields.get("authors")
    authors = author if isinstance(author, list) else [author] if author else []
    kind = str(fields.get("type") or "").lower()
    people = fields.get("participants") or fields.get("attendees") or []
    listed = people if isinstance(people, list) else str(people).split(",")
    type_ = ArtifactType(kind) if kind in set(ArtifactType) else _type(text, path)
    if type_ is ArtifactType.TRANSCRIPT and not people:
        listed = list(transcript.speakers(text))
    return Item(
        type_,
        "files",
        text,
        title=title,
        author=str(authors[0]) if authors else None,
        participants=tuple(str(person).strip() for person in [*authors, *listed]),
        ts=_moment(fields.get("date") or fields.get("created")) or _day_of(path),
    )


def _type(text: str, path: PurePosixPath) -> ArtifactType:
    if path.suffix.lower() == ".rst":
        return ArtifactType.DOC
    if path.suffix.lower() in ("", ".txt", ".text") and transcript.looks_like(text):
        return ArtifactType.TRANSCRIPT
    return ArtifactType.NOTE


def _front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The simple fields of a YAML head, and the text after it. Values are text or lists of text.
    There is no YAML parser, so that a file cannot do more than be read."""
    start = text[:_FRONT_MATTER_CHARS].lstrip("\ufeff")
    lines = start.splitlines()
    if not lines or lines[0].rstrip() != "---":
        return {}, start
    fields: dict[str, Any] = {}
    last = ""
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            return fields, "\n".join(lines[number + 1 :])
        if field := _FIELD.match(line):
            last = field[1].lower()
            fields[last] = _value(field[2].strip())
        elif (entry := _LIST_ENTRY.match(line)) and last and not isinstance(fields[last], str):
            fields[last] = [*(fields[last] or []), _plain(entry[1])]
    return {}, start  # it never ends, so it is no front matter


def _preamble(head: str) -> dict[str, Any]:
    """The headers of a PEP. Its Type is not one of our types."""
    headers: dict[str, str] = {}
    last = ""
    for line in head.splitlines():
        if not line.strip():
            break
        if line[0] in " \t":
            headers[last] = f"{headers.get(last, '')} {line.strip()}"
        elif field := _FIELD.match(line):
            last = field[1].lower()
            headers[last] = field[2].strip()
    people = [name.strip() for name in headers.get("author", "").split(",")]
    return {
        "title": headers.get("title"),
        "authors": [name for name in people if name],
        "created": headers.get("created"),
    }


def _value(raw: str) -> str | list[str] | None:
    if raw.startswith("[") and raw.endswith("]"):
        return [value for part in raw[1:-1].split(",") if (value := _plain(part))]
    return _plain(raw) or None


def _plain(value: Any) -> str:
    return str(value or "").strip().strip("\"'").strip()


def _heading(head: str, suffix: str) -> str | None:
    lines = head.splitlines()[:_HEAD_LINES]
    for i, line in enumerate(lines):
        if suffix != ".rst" and (heading := _HEADING.match(line)):
            return heading[1]
        after = lines[i + 1] if i + 1 < len(lines) else ""
        if _UNDERLINE.match(after) and _may_be_underlined(line, after[0], suffix):
            return line.strip()
    return None


def _may_be_underlined(line: str, mark: str, suffix: str) -> bool:
    if not line.strip() or len(line) > 200 or _UNDERLINE.match(line):
        return False
    return suffix == ".rst" or (mark == "=" and suffix in (".md", ".markdown"))


def _moment(raw: Any) -> datetime | None:
    try:
        return as_utc(datetime.fromisoformat(_iso(_plain(raw))))
    except (ValueError, OverflowError):
        return None


def _iso(day: str) -> str:
    """Parse "25-Jun-2020", as PEPs write it, whatever the language of the machine."""
    match = _NAMED_DAY.fullmatch(day)
    if match is None or match[2].lower() not in _MONTHS:
        return day
    return f"{match[3]}-{_MONTHS.index(match[2].lower()) + 1:02}-{int(match[1]):02}"


def _day_of(path: PurePosixPath) -> datetime | None:
    """The day in the name of a daily note. The modification time is not used: copying changes
    it."""
    in_name = _DAY_IN_NAME.search(path.stem)
    if in_name is None:
        return None
    try:
        day = date(int(in_name[1]), int(in_name[2]), int(in_name[3]))
    except ValueError:
        return None
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
