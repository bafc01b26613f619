"""Events that a test knows word for word, in documents of its own, in both stores."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from memory_core.index.writer import settle_now
from memory_core.runtime import Runtime
from tests.tool_client import Json, ToolClient


@dataclass(frozen=True, slots=True)
class Event:
    narrative: str
    category: str = "Decision"
    time: str | None = None
    actors: tuple[str, ...] = ()
    # Of the actors, in their order; owners where a test does not care.
    roles: tuple[str, ...] = ()
    subject: str = "the project"
    confidence: float = 0.9
    # The document's own words; the narrative where a test does not care.
    quote: str | None = None
    due_quote: str | None = None

    @property
    def times(self) -> tuple[str | None, str | None]:
        """When it happened, and when it is due."""
        return (None, self.time) if self.category == "Commitment" else (self.time, None)

    @property
    def words(self) -> str:
        return self.quote or self.narrative


@dataclass(frozen=True, slots=True)
class Planted:
    uid: str
    revision: str
    job_id: UUID
    ids: list[str]


class Garden:
    """Plants documents with events, as a finished extraction would leave them."""

    def __init__(self, tools: ToolClient, runtime: Runtime, sql: psycopg.Connection) -> None:
        self.tools, self.runtime, self.sql = tools, runtime, sql

    async def document(
        self, *events: Event, source_id: str, content: str | None = None, **fields: Any
    ) -> Planted:
        text = content or "\n".join(event.words for event in events) or "Nothing happened."
        values = {"artifact_type": "note", "source_system": "test", **fields}
        stored = await self.tools("artifact_ingest", content=text, source_id=source_id, **values)
        job_id = UUID(stored["job_id"])
        planted = Planted(stored["artifact_uid"], stored["revision_id"], job_id, [])
        await self.extracted(planted, text, events, fields.get("title"))
        return planted

    async def extracted(
        self, planted: Planted, text: str, events: Sequence[Event], title: str | None = None
    ) -> None:
        for event in events:
            planted.ids.append(str(uuid4()))
            self._store(planted, planted.ids[-1], text, event, title)
        self.sql.execute(
            "UPDATE event_jobs SET status = 'DONE', attempts = 1, locked_by = 'run-1' "
            "WHERE job_id = %s",
            [planted.job_id],
        )
        await settle_now(self.runtime, [planted.uid])

    def alias(self, planted: Planted, name: str, *aliases: str, kind: str = "person") -> None:
        self.sql.execute(
            "INSERT INTO revision_entity (artifact_uid, revision_id, type, name, aliases) "
            "VALUES (%s, %s, %s, %s, %s)",
            [planted.uid, planted.revision, kind, name, list(aliases)],
        )

    def _store(
        self, planted: Planted, id_: str, text: str, event: Event, title: str | None
    ) -> None:
        self.sql.execute(
            "INSERT INTO semantic_event (event_id, artifact_uid, revision_id, category, "
            "event_time, due_time, due_quote, due_start_char, due_end_char, narrative, "
            "subject_json, actors_json, confidence, extraction_run_id, quotes, document_title) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                *(id_, planted.uid, planted.revision, event.category, *event.times),
                *_place(event.due_quote, text),
                event.narrative,
                Jsonb({"type": "project", "ref": event.subject}),
                Jsonb(
                    [
                        {"ref": ref, "role": role or "owner"}
                        for ref, role in zip_longest(event.actors, event.roles)
                    ]
                ),
                *(event.confidence, planted.job_id, event.words, title or ""),
            ],
        )
        start = text.index(event.words)
        self.sql.execute(
            "INSERT INTO event_evidence (event_id, artifact_uid, revision_id, start_char, "
            "end_char, quote) VALUES (%s, %s, %s, %s, %s, %s)",
            [id_, planted.uid, planted.revision, start, start + len(event.words), event.words],
        )


def _place(quote: str | None, text: str) -> tuple[str | None, int | None, int | None]:
    if quote is None:
        return None, None, None
    start = text.index(quote)
    return quote, start, start + len(quote)


async def ingest(tools: ToolClient, content: str, **fields: Any) -> Json:
    values = {"artifact_type": "note", "source_system": "test", "source_id": "one", **fields}
    return await tools("artifact_ingest", content=content, **values)
