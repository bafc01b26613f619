"""The demo corpus in the session's stores, extracted by the rules, without Dagster."""

import json
from pathlib import Path
from typing import Any

from memory_core.artifacts.document import (
    ArtifactType,
    Document,
    RetentionPolicy,
    Sensitivity,
    VisibilityScope,
)
from memory_core.artifacts.ingest import ingest
from memory_core.extraction.engine import open_engine
from memory_core.kernel.times import parse_time
from memory_core.processing.batch import process
from memory_core.queue import jobs
from memory_core.runtime import Runtime

DEMO = Path(__file__).resolve().parents[2] / "demo"
QUESTIONS = json.loads((DEMO / "questions.json").read_text(encoding="utf-8"))


def text_of(file: str) -> str:
    return (DEMO / file).read_bytes().decode()


def documents() -> list[Document]:
    manifest: list[dict[str, Any]] = json.loads((DEMO / "manifest.json").read_text("utf-8"))
    return [_document(entry) for entry in manifest]


def _document(entry: dict[str, Any]) -> Document:
    return Document(
        artifact_type=ArtifactType(entry["artifact_type"]),
        source_system=entry["source_system"],
        source_id=entry["source_id"],
        content=text_of(entry["file"]),
        source_url=entry.get("source_url"),
        title=entry.get("title"),
        author=entry.get("author"),
        participants=tuple(entry.get("participants", ())),
        ts=parse_time("ts", entry.get("ts")),
        sensitivity=Sensitivity(entry.get("sensitivity", "normal")),
        visibility_scope=VisibilityScope(entry.get("visibility_scope", "me")),
        retention_policy=RetentionPolicy(entry.get("retention_policy", "forever")),
    )


async def load(runtime: Runtime) -> None:
    for document in documents():
        await ingest(runtime, document)
    await extract_pending(runtime)


async def extract_pending(runtime: Runtime, run_id: str = "test-run") -> None:
    due = await jobs.claimable(runtime.database, 1000)
    claimed = await jobs.claim(runtime.database, [job.partition_key for job in due], run_id)
    async with open_engine(runtime.settings, runtime.database) as engine:
        outcomes = await process(runtime, engine, claimed)
    failed = [outcome.failure for outcome in outcomes if outcome.failure]
    assert not failed, failed
