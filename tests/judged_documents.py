"""The documents whose events were judged by reading: the demo's, and some of every kind."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memory_core.extraction.model import DocumentContext, ProposedEvent
from memory_core.extraction.rules import propose

DATA = Path(__file__).parent / "data"
DEMO = Path(__file__).resolve().parents[1] / "demo"


@dataclass(frozen=True, slots=True)
class Judged:
    """An event of a document, and whether a reader found it right."""

    document: str
    category: str
    quote: str
    narrative: str
    actors: tuple[str, ...]
    day: str | None
    due: str | None
    right: bool
    why: str

    @property
    def place(self) -> tuple[str, str, str, str]:
        """By what an event is known again: its narrative tells the roles of one list apart."""
        about = self.narrative if self.category == "Stakeholder" else ""
        return self.document, self.category, self.quote, about


def verdicts() -> list[Judged]:
    lines = (DATA / "judged.jsonl").read_text("utf-8").splitlines()
    read = (json.loads(line) for line in lines)
    return [Judged(**{**entry, "actors": tuple(entry["actors"])}) for entry in read]


def proposed() -> Iterator[tuple[str, ProposedEvent]]:
    """(document, event) for all documents, also what is not sure enough to be shown."""
    for name, text, context in _documents():
        for event in propose(text, context).events:
            yield name, event


def _documents() -> Iterator[tuple[str, str, DocumentContext]]:
    for folder, kind, day in ((DATA / "documents", "type", "date"), (DEMO, "artifact_type", "ts")):
        for entry in json.loads((folder / "manifest.json").read_text("utf-8")):
            text = (folder / entry["file"]).read_text("utf-8")
            yield entry["file"], text, _context(entry, kind, day)


def _context(entry: dict[str, Any], kind: str, day: str) -> DocumentContext:
    moment = datetime.fromisoformat(entry[day]) if entry.get(day) else None
    if moment is not None and moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    people = tuple(entry.get("participants", ()))
    return DocumentContext(entry[kind], entry.get("title"), entry.get("author"), people, moment)


def place_of(document: str, event: ProposedEvent) -> tuple[str, str, str, str]:
    about = event.narrative if event.category == "Stakeholder" else ""
    return document, event.category.value, event.quote.quote, about
