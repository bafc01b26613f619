"""Version 2 kept everything in Chroma alone: it is never written to, and brought over whole."""

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.ingest import ingest
from memory_core.importing.item import Unusable
from memory_core.importing.v2 import conversion
from memory_core.importing.v2.v2_chroma import COLLECTIONS, Record
from memory_core.importing.v2.v2_import import V2ImportReport, import_v2
from memory_core.index import new_generation
from memory_core.index.chroma import ChromaClient
from memory_core.index.generation import CollectionName
from memory_core.kernel import ids, tls
from memory_core.kernel.errors import ChromaUnavailable, ForeignCollection, InvalidInput
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.upkeep.integrity import CHECKS
from stack import ports
from stack.chroma_copy import serving
from stack.connection import joined_runtime
from tests.conftest import IndexHost
from tests.indexing import ids as indexed_ids
from tests.indexing import upsert_texts
from tests.integration.failing_servers import Server
from tests.tool_client import ToolClient

LONG = " ".join(f"Sentence {number} about the harbour — and Zoë's boat." for number in range(200))


def chunks_of(text: str, size: int, overlap: int) -> list[tuple[int, int]]:
    starts = range(0, max(len(text) - overlap, 1), size - overlap)
    return [(start, min(start + size, len(text))) for start in starts]


def v2_content() -> dict[str, list[Record]]:
    """As version 2 wrote it: four collections, texts in documents, all else in metadata."""
    whole = {
        "artifact_type": "email", "source_system": "gmail", "source_id": "msg-1",
        "source_url": "https://mail.example/1", "title": "The launch", "author": "Alice Moreau",
        "participants": '["Alice Moreau", "Bob Roth"]', "ts": "2024-03-15T14:30:00Z",
        "sensitivity": "sensitive", "visibility_scope": "team", "retention_policy": "1y",
        "is_chunked": False, "num_chunks": 0, "mailbox": "inbox",
    }  # fmt: skip
    pieces = chunks_of(LONG, 900, 100)
    chunked = {"artifact_type": "doc", "source_system": "drive", "source_id": "harbour",
               "title": "The harbour", "is_chunked": True, "num_chunks": len(pieces)}  # fmt: skip
    return {
        "memory": [
            Record("mem_1", "Alice prefers tea.",
                   {"type": "preference", "confidence": 0.9, "conversation_id": "c1",
                    "created_at": "2024-01-02T00:00:00Z"}),
            Record("mem_2", "The office is in Ghent.", {"type": "fact", "confidence": 0.8}),
        ],
        "history": [
            Record("c1_0", "Hello?", {"conversation_id": "c1", "role": "user", "turn_index": 0}),
            Record("c1_1", "Hello.",
                   {"conversation_id": "c1", "role": "assistant", "turn_index": 1}),
        ],
        "artifacts": [
            Record("art_1", "Decision: we launch in May.", whole),
            Record("art_2", LONG[:200], chunked),
            Record("art_3", "A note without an id.",
                   {"artifact_type": "note", "source_system": "slack", "source_id": ""}),
        ],
        "artifact_chunks": [
            Record(f"art_2::chunk::{index:03d}::x", LONG[start:end],
                   {"artifact_id": "art_2", "chunk_index": index, "start_char": start,
                    "end_char": end})
            for index, (start, end) in reversed(list(enumerate(pieces)))
        ],
    }  # fmt: skip


async def fill(address: str, content: dict[str, list[Record]]) -> None:
    client = ChromaClient(address, 0)
    for name, records in content.items():
        collection = await client.make(name, {"hnsw:space": "cosine"})
        await upsert_texts(
            collection,
            {record.id: record.text for record in records},
            [[0.1 * len(record.text), 1.0, 0.0] for record in records],
            [record.metadata for record in records],
        )
    await client.close()


async def contents(address: str) -> dict[str, dict[str, Any]]:
    client = ChromaClient(address, 0)
    versions = {
        name: await collection.call("get", include=["documents", "metadatas", "embeddings"])
        for name, collection in (await client.existing()).items()
    }
    await client.close()
    return versions


def digests(directory: Path) -> dict[str, str]:
    return {
        str(file.relative_to(directory)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(directory.rglob("*"))
        if file.is_file()
    }


@pytest.fixture(scope="module")
def v2_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Chroma server that version 2 filled."""
    folder = tmp_path_factory.mktemp("v2")
    port = ports.free_port()
    address = f"http://127.0.0.1:{port}"
    server = Server(
        [
            *(str(Path(sys.executable).with_name("chroma")), "run"),
            *("--path", str(folder), "--host", "127.0.0.1", "--port", str(port)),
        ],
        lambda: httpx.get(f"{address}/api/v2/heartbeat", verify=tls.verify(address)).is_success,
        cwd=folder,
    )
    server.start()
    asyncio.run(_fill_when_ready(server, address))
    yield address
    server.stop()


async def _fill_when_ready(server: Server, address: str) -> None:
    await server.ready()
    await fill(address, v2_content())


@pytest.fixture(scope="module")
def v2_directory(v2_server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What its directory looks like. The tests do not write meanwhile."""
    copy = tmp_path_factory.mktemp("v2-directory") / "chroma"
    shutil.copytree(tmp_path_factory.getbasetemp() / "v20", copy)
    return copy


# --- what is not ours is left alone -------------------------------------------------------------


@pytest.fixture
async def over_v2(settings: Settings, v2_server: str) -> AsyncIterator[Runtime]:
    """This version, pointed at the Chroma of version 2."""
    host, _, port = v2_server.removeprefix("http://").partition(":")
    values = {"chroma_host": host, "chroma_port": int(port)}
    runtime = joined_runtime(
        settings.model_copy(update=values), unasked="a test looks at what is stored"
    )
    await runtime.open()
    yield runtime
    await runtime.close()


async def test_nothing_is_written_to_or_dropped_from_the_chroma_of_version_2(
    over_v2: Runtime, v2_server: str, index_host: IndexHost
) -> None:
    """This version has collections of its own in the same Chroma."""
    before = await contents(v2_server)
    await index_host.serve(over_v2)
    try:
        note = Document(ArtifactType.NOTE, "notes", "Decision: we stay.", source_id="a")
        stored = await ingest(over_v2, note)
        assert await over_v2.indexed(stored.position)
        await new_generation.rebuild(over_v2)
        await over_v2.vectors.drop([*before])

        after = await contents(v2_server)
        assert {name: after[name] for name in COLLECTIONS} == before
        assert await indexed_ids(over_v2, CollectionName.ARTIFACTS) == {stored.artifact_id}
        with pytest.raises(ForeignCollection, match="from-v2"):
            await over_v2.vectors.on("memory", "delete", ids=["mem_1"])
    finally:
        await index_host.stop()


# --- bringing it over ---------------------------------------------------------------------------


def counts_of(report: V2ImportReport) -> list[tuple[int, int, int]]:
    return [
        (counts.read, counts.created, counts.unchanged)
        for counts in (report.memories, report.turns, report.documents)
    ]


@pytest.mark.parametrize("kind", ["server", "directory"])
async def test_everything_comes_over_once_and_version_2_stays_as_it_was(
    tools: ToolClient, runtime: Runtime, v2_server: str, v2_directory: Path, kind: str
) -> None:
    place = v2_server if kind == "server" else str(v2_directory)
    before = (await contents(v2_server), digests(v2_directory))

    trial = await import_v2(runtime, place, serving, dry_run=True)
    assert (await tools("memory_list"))["total"] == 0
    first = await import_v2(runtime, place, serving, dry_run=False)
    again = await import_v2(runtime, place, serving, dry_run=False)

    assert (await contents(v2_server), digests(v2_directory)) == before
    assert [report.refused for report in (trial, first, again)] == [[], [], []]
    assert counts_of(trial) == [(2, 0, 0), (2, 0, 0), (3, 0, 0)]
    assert counts_of(first) == [(2, 2, 0), (2, 2, 0), (3, 3, 0)]
    assert counts_of(again) == [(2, 0, 2), (2, 0, 2), (3, 0, 3)]
    assert first.not_kept == {"mailbox"}
    for check in CHECKS:
        assert (await check.examine(runtime)).offenders == []


async def test_texts_and_labels_are_those_of_version_2(
    tools: ToolClient, runtime: Runtime, v2_server: str
) -> None:
    await import_v2(runtime, v2_server, serving, dry_run=False)

    mail = await tools("artifact_get", artifact_uid=ids.artifact_uid("gmail", "msg-1"))
    assert mail["content"] == "Decision: we launch in May."
    assert {name: mail[name] for name in (
        "artifact_type", "source_system", "source_id", "source_url", "title", "author",
        "participants", "source_ts", "sensitivity", "visibility_scope", "retention_policy",
    )} == {
        "artifact_type": "email", "source_system": "gmail", "source_id": "msg-1",
        "source_url": "https://mail.example/1", "title": "The launch", "author": "Alice Moreau",
        "participants": ["Alice Moreau", "Bob Roth"], "source_ts": "2024-03-15T14:30:00Z",
        "sensitivity": "sensitive", "visibility_scope": "team", "retention_policy": "1y",
    }  # fmt: skip
    long = await tools("artifact_get", artifact_uid=ids.artifact_uid("drive", "harbour"))
    assert long["content"] == LONG
    nameless = await tools("artifact_get", artifact_uid=ids.artifact_uid("slack", "art_3"))
    assert nameless["content"] == "A note without an id."
    memories = (await tools("memory_list"))["memories"]
    assert {(one["type"], one["content"], one["confidence"]) for one in memories} == {
        ("preference", "Alice prefers tea.", 0.9),
        ("fact", "The office is in Ghent.", 0.8),
    }
    turns = (await tools("history_get", conversation_id="c1"))["turns"]
    assert [(turn["role"], turn["content"]) for turn in turns] == [
        ("user", "Hello?"),
        ("assistant", "Hello."),
    ]


async def test_places_that_are_not_of_version_2_are_refused(
    runtime: Runtime, tmp_path: Path
) -> None:
    own = f"http://{runtime.settings.chroma_host}:{runtime.settings.chroma_port}"
    await ingest(runtime, Document(ArtifactType.NOTE, "notes", "Ours.", source_id="a"))

    for place, words in ((own, "no collection of version 2"), (str(tmp_path), "no chroma.sqlite3")):
        with pytest.raises(InvalidInput, match=words):
            await import_v2(runtime, place, serving, dry_run=False)
    with pytest.raises(ChromaUnavailable, match="does not answer"):
        await import_v2(runtime, f"http://127.0.0.1:{ports.free_port()}", serving, dry_run=False)


def test_the_command_prints_what_it_did_and_needs_no_stack(
    v2_server: str, services: Settings, settings: Settings
) -> None:
    environment = {
        **os.environ, "EVENTS_DB_DSN": services.dsn, "DATA_DIR": str(services.data_dir),
        "CHROMA_HOST": str(services.chroma_host), "CHROMA_PORT": str(services.chroma_port),
        "EMBEDDER": "local", "EXTRACTOR": "rules",
    }  # fmt: skip
    command = [str(Path(sys.executable).with_name("mcp-memory")), "import-v2", v2_server]

    done = subprocess.run(
        [*command, "--dry-run", "--json"], env=environment, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["documents"] == {"read": 3, "created": 0, "unchanged": 0}


# --- joining chunks -----------------------------------------------------------------------------


def piece(text: str, start: int, end: int) -> Record:
    return Record(f"chunk {start}", text[start:end], {"start_char": start, "end_char": end})


@given(
    text=st.text(min_size=1, max_size=200),
    size=st.integers(min_value=2, max_value=40),
    overlap=st.integers(min_value=0, max_value=39),
    shuffle=st.randoms(use_true_random=False),
)
def test_chunks_are_joined_to_the_text_they_were_cut_from(
    text: str, size: int, overlap: int, shuffle: Any
) -> None:
    pieces = [piece(text, *place) for place in chunks_of(text, size, min(overlap, size - 1))]
    shuffle.shuffle(pieces)

    assert conversion.joined(pieces) == text


def test_what_does_not_fit_together_is_refused() -> None:
    text = "We launch in May, and the harbour stays open."
    wrong = Record("b", "in June, and", {"start_char": 10, "end_char": 22})
    cases = [
        ([piece(text, 0, 10), piece(text, 20, 30)], "from character 10 to 20"),
        ([piece(text, 0, 16), wrong], "does not agree"),
        ([Record("a", "abc", {"start_char": 0, "end_char": 9})], "3 characters"),
        ([Record("a", "abc", {})], "does not say where"),
    ]
    for pieces, words in cases:
        with pytest.raises(Unusable, match=words):
            conversion.joined(pieces)
    lost = Record("art", "We", {"is_chunked": True, "num_chunks": 3, "artifact_type": "doc"})
    with pytest.raises(Unusable, match="2 of its 3 chunks"):
        conversion.document(lost, [piece(text, 0, 10), piece(text, 10, 20)])


@pytest.mark.parametrize(
    "told",
    [
        {"role": "user", "turn_index": 0},
        {"conversation_id": "c", "turn_index": 0},
        {"conversation_id": "c", "role": "user", "turn_index": -1},
        {"conversation_id": "c", "role": "user"},
    ],
)
def test_a_turn_that_does_not_say_where_it_belongs_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(Unusable):
        conversion.turn(Record("t", "Hello.", told))


@pytest.mark.parametrize(
    ("value", "people"),
    [
        (["Ada", "Bob"], ("Ada", "Bob")),
        ('["Ada", "Bob"]', ("Ada", "Bob")),
        ("Ada, Bob", ("Ada", "Bob")),
        ("", ()),
        ("None", ()),
        (None, ()),
        (7, ()),
    ],
)
def test_participants_are_read_however_they_were_written(value: Any, people: Any) -> None:
    arguments = {"artifact_type": "note", "participants": value, "ts": 1710513000}
    document = conversion.document(Record("a", "Text.", arguments), [])

    assert document.participants == people
    assert document.ts == datetime(2024, 3, 15, 14, 30, tzinfo=UTC)
