"""A memory of three tenants with documents of every scope, memories and conversations."""

from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import psycopg

from memory_core.kernel import principal
from memory_core.runtime import Runtime
from tests.access_server import AccessServer, make_key
from tests.isolation.principals import EVERYONE, TENANTS, Person
from tests.isolation.world import (
    CONVERSATIONS,
    Document,
    Event,
    Memory,
    World,
    content_of,
    ids_in,
    words_in,
)
from tests.pipeline_client import Pipeline
from tests.tool_client import Json, ToolClient, in_one_task

SCOPES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("me", ()),
    ("team", ()),
    ("org", ()),
    ("custom", ("user:bob",)),
    ("custom", ("group:sales", "user:local")),
)


class Filled:
    """A world, and a client for each person in it."""

    def __init__(
        self, world: World, runtime: Runtime, server: AccessServer, sql: psycopg.Connection[Any]
    ) -> None:
        self.world, self.runtime, self.server, self.sql = world, runtime, server, sql
        self.tools: dict[Person, ToolClient] = {}
        self.keys: dict[Person, str] = {}

    async def begin(self, stack: AsyncExitStack) -> None:
        for name, id_ in TENANTS.items():
            self.sql.execute(
                "INSERT INTO tenant (tenant_id, name) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                (id_, name),
            )
        for person in EVERYONE:
            with principal.system("a test makes keys"):
                self.keys[person] = await make_key(
                    self.runtime.database,
                    tenant=person.tenant,
                    user=person.user,
                    groups=sorted(person.groups),
                )
            client = in_one_task(self.server.client(self.keys[person]))
            self.tools[person] = await stack.enter_async_context(client)

    async def fill(self) -> None:
        for person in EVERYONE:
            for scope, listed in SCOPES:
                await self.store(person, scope, listed)
            await self.revise(self.world.rng.choice(self.world.documents(person)), person)
            for _ in range(2):
                await self.memorise(person)
            for name in CONVERSATIONS:
                await self.append(person, name)
        await self.extract()

    async def store(
        self, person: Person, scope: str, listed: tuple[str, ...] = (), source: str | None = None
    ) -> Document:
        """`source`: that of a document which there may be already, unseen by this person."""
        word = self.world.word
        # First names are shared: a search for one has candidates.
        people = tuple(f"{name} {word().capitalize()}" for name in ("Robin", "Kim"))
        arguments: Json = {
            "artifact_type": self.world.rng.choice(("note", "email", "doc")),
            "source_system": "notes",
            "source_id": source or f"folder/{word()}.md",
            "source_url": f"https://notes.example/{word()}",
            "title": f"The launch of {word()}",
            "author": people[1],
            "participants": list(people),
            "ts": "2026-11-02T10:00:00Z",
            "content": content_of((word(), word(), word()), people[0]),
            "visibility_scope": scope,
            **({"visible_to": list(listed)} if listed else {}),
        }
        answer = await self.tools[person]("artifact_ingest", **arguments)
        assert answer["status"] == "created", f"{person} met a document of another: {answer}"
        document = Document(
            "document", person, scope, listed, people=people,
            uid=answer["artifact_uid"], source_id=arguments["source_id"],
        )  # fmt: skip
        document.ids |= ids_in(str(answer))
        document.words |= words_in(str(arguments))
        if source:  # its words belong to several now
            for other in (document, *self.world.documents()):
                other.words -= words_in(source)
        document.contents[answer["revision_id"]] = arguments["content"]
        document.jobs[answer["job_id"]] = "PENDING"
        self.world.add(document)
        return document

    async def revise(self, document: Document, person: Person) -> None:
        word = self.world.word
        content = content_of((word(), word(), word()), document.people[0])
        answer = await self.tools[person](
            "artifact_ingest",
            artifact_type="note",
            source_system="notes",
            source_id=document.source_id,
            content=content,
            **_visibility(document),
        )
        assert (answer["artifact_uid"], answer["status"]) == (document.uid, "revised")
        document.ids |= ids_in(str(answer))
        document.words |= words_in(content)
        document.contents[answer["revision_id"]] = content
        document.jobs[answer["job_id"]] = "PENDING"

    async def relabel(self, document: Document, scope: str, listed: tuple[str, ...]) -> None:
        """By its owner: another scope, for all of its revisions."""
        document.seen_once |= {person for person in EVERYONE if document.is_seen_by(person)}
        document.scope, document.listed = scope, listed
        await self.tools[document.owner](
            "artifact_ingest",
            artifact_type="note",
            source_system="notes",
            source_id=document.source_id,
            content=document.contents[document.latest],
            **_visibility(document),
        )
        self.take_note()

    async def memorise(self, person: Person) -> Memory:
        content = f"Prefers the {self.world.word()} launch report"
        answer = await self.tools[person](
            "memory_store", content=content, type="preference", confidence=0.9
        )
        memory = Memory("memory", person, memory_id=answer["memory_id"], content=content)
        memory.ids |= ids_in(str(answer))
        memory.words |= words_in(content)
        self.world.add(memory)
        return memory

    async def append(self, person: Person, name: str) -> None:
        conversation = self.world.conversation(person, name)
        content = f"What of the {self.world.word()} launch?"
        await self.tools[person](
            "history_append",
            conversation_id=name,
            role="user",
            content=content,
            turn_index=len(conversation.turns),
        )
        conversation.turns.append(content)
        conversation.words |= words_in(content)

    async def extract(self) -> None:
        """All jobs that wait are worked on; the world takes note of what came of them."""
        await Pipeline(self.runtime).extract(f"run-{uuid4()}")
        self.take_note()

    def take_note(self) -> None:
        """Of ids that only Postgres knows."""
        by_uid = {document.uid: document for document in self.world.documents()}
        self.world.events.clear()
        for id_, uid, *told in self.sql.execute(
            "SELECT event_id, artifact_uid, revision_id, category, is_latest FROM semantic_event"
        ).fetchall():
            by_uid[uid].ids.add(str(id_))
            self.world.events[str(id_)] = Event(str(id_), by_uid[uid], *told)
        for id_, uid, status in self.sql.execute(
            "SELECT job_id, artifact_uid, status FROM event_jobs"
        ).fetchall():
            by_uid[uid].jobs[str(id_)] = status
            by_uid[uid].ids.add(str(id_))
        for id_, uid in self.sql.execute(
            "SELECT evidence_id, artifact_uid FROM event_evidence"
        ).fetchall():
            by_uid[uid].ids.add(str(id_))


def _visibility(document: Document) -> Json:
    listed = {"visible_to": list(document.listed)} if document.listed else {}
    return {"visibility_scope": document.scope, **listed}
