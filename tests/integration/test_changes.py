"""What happens to the memory stands in the log, by ids alone."""

import psycopg

from memory_core.artifacts.deletion import delete_artifact
from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.ingest import IngestResult, ingest
from memory_core.assistant import conversations, memories
from memory_core.assistant.conversations import Role
from memory_core.assistant.memories import MemoryType
from memory_core.events.reextraction import reextract
from memory_core.log.origin import acting
from memory_core.queue.answers import Answers
from memory_core.runtime import Runtime
from tests.log_reading import all_changes


async def types_in_log(runtime: Runtime) -> list[str]:
    return [change.event_type for change in await all_changes(runtime.database)]


async def note(runtime: Runtime, content: str, title: str = "A note") -> IngestResult:
    return await ingest(
        runtime,
        Document(
            artifact_type=ArtifactType.NOTE,
            source_system="test",
            source_id="note-1",
            content=content,
            title=title,
        ),
    )


async def test_the_life_of_a_document(runtime: Runtime) -> None:
    first = await note(runtime, "Alice will ship the parser by Friday.")
    await note(runtime, "Alice will ship the parser by Monday.")
    await note(runtime, "Alice will ship the parser by Monday.")
    await note(runtime, "Alice will ship the parser by Friday.")
    await note(runtime, "Alice will ship the parser by Friday.", title="Another title")
    await reextract(runtime, first.artifact_uid, None, answers=Answers.NEW)
    deleted = await delete_artifact(runtime, artifact_uid=first.artifact_uid)

    listed = await all_changes(runtime.database)

    assert [change.event_type for change in listed] == [
        "artifact.created",
        "artifact.revised",
        "artifact.restored",
        "artifact.relabelled",
        "job.requested",
        "artifact.deleted",
    ]
    assert [change.version for change in listed] == [1, 2, 3, 4, 5, 6]
    assert {change.payload["artifact_uid"] for change in listed} == {first.artifact_uid}
    assert listed[0].position == first.position
    assert listed[-1].position == deleted.position


async def test_memories_and_conversations(runtime: Runtime) -> None:
    stored = await memories.store(
        runtime,
        content="Prefers tea.",
        memory_type=MemoryType.PREFERENCE,
        confidence=0.9,
        conversation_id=None,
    )
    await memories.delete(runtime, stored.memory_id)
    for _ in range(2):
        await conversations.append(
            runtime, conversation_id="chat about tea", role=Role.USER, content="Hi", turn_index=0
        )

    await conversations.delete(runtime, "chat about tea")

    assert await types_in_log(runtime) == [
        "memory.stored",
        "memory.deleted",
        "history.appended",
        "history.deleted",
    ]


async def test_no_text_of_a_document_stands_in_the_log(runtime: Runtime) -> None:
    with acting(source="test"):
        result = await note(runtime, "The zanzibar clause is void.", title="Quagga minutes")
        await memories.store(
            runtime,
            content="Keeps an okapi.",
            memory_type=MemoryType.FACT,
            confidence=1.0,
            conversation_id="wombat",
        )
        await conversations.append(
            runtime, conversation_id="wombat", role=Role.USER, content="numbat", turn_index=0
        )
        await delete_artifact(runtime, artifact_uid=result.artifact_uid)

    with psycopg.connect(runtime.settings.dsn) as connection:
        [written] = connection.execute(
            "SELECT string_agg(e::text, ' ') FROM log.events e"
        ).fetchone() or [""]

    for word in ("zanzibar", "quagga", "okapi", "wombat", "numbat"):
        assert word not in written.lower()


async def test_content_that_is_known_appends_no_change(runtime: Runtime) -> None:
    result = await note(runtime, "Kept.")
    before = await types_in_log(runtime)

    await note(runtime, "Kept.")

    assert result.position is not None
    assert await types_in_log(runtime) == before == ["artifact.created"]
