"""The pipeline in this process: documents in, jobs claimed and worked on, rows out."""

import copy
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.ingest import ingest
from memory_core.artifacts.result import IngestResult
from memory_core.events.broken_evidence import BrokenEvidence
from memory_core.extraction import prompts
from memory_core.extraction.current_versions import current
from memory_core.extraction.engine import open_engine
from memory_core.kernel.settings import Settings
from memory_core.log.projection_wait import wait_until
from memory_core.processing.batch import JobOutcome, process
from memory_core.queue import jobs
from memory_core.queue.answers import Answers
from memory_core.queue.versions import number
from memory_core.runtime import Runtime
from memory_core.upkeep.integrity import PartOfRevision
from tests.patience import PATIENCE
from tests.scripted_provider import ScriptedProvider

API_KEY = "sk-test-0123456789"
# So small that a few sentences make a document of several chunks.
SMALL_CHUNKS = {
    "single_piece_max_tokens": 60,
    "chunk_target_tokens": 60,
    "chunk_overlap_tokens": 15,
}


def with_openai(settings: Settings, provider: ScriptedProvider, **changes: Any) -> Settings:
    """The settings, with the scripted provider as the extractor; retries are the test's choice."""
    values = {
        "extractor": "openai",
        "openai_api_key": SecretStr(API_KEY),
        "openai_base_url": provider.base_url,
        "openai_max_retries": 0,
        **changes,
    }
    return settings.model_copy(update=values)


def bump(folder: Path, **generations: int) -> Path:
    """A folder of prompts for PROMPTS_DIR: the shipped ones are generation 1, these are changed and
    follow them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, generation in generations.items():
        text = prompts.load(name).text + f"\nThis is generation {generation}.\n"
        (folder / f"{name}.{number_of(name, generation)}.md").write_text(text)
    return folder


def number_of(name: str, generation: int) -> int:
    return prompts.load(name).number + generation - 1


def generations_of(extract_version: str, merge_version: str) -> str:
    """Of an extraction: "1/1" is what the shipped prompts made."""
    made = {"extract": extract_version, "merge": merge_version}
    return "/".join(str(number(v) - number_of(name, 1) + 1) for name, v in made.items())


class Pipeline:
    """One deployment: its stores, its settings, and everything it was given to remember."""

    def __init__(self, runtime: Runtime, **changes: Any) -> None:
        self.runtime = copy.copy(runtime)
        self.runtime.settings = runtime.settings.model_copy(update=changes)
        self.outcomes: list[JobOutcome] = []

    async def remember(
        self,
        content: str,
        source_id: str = "minutes",
        *,
        title: str | None = "Minutes",
        ts: datetime | None = None,
        artifact_type: ArtifactType = ArtifactType.NOTE,
    ) -> IngestResult:
        document = Document(
            artifact_type=artifact_type,
            source_system="notes",
            source_id=source_id,
            title=title,
            content=content,
            ts=ts,
        )
        result = await ingest(self.runtime, document)
        if result.position is not None:
            assert await wait_until(self.runtime.database, "index", result.position, PATIENCE)
        return result

    async def extract(
        self,
        run_id: str = "run-1",
        *,
        keys: Sequence[str] | None = None,
        asked_by: str | None = None,
        answers: Answers = Answers.KNOWN,
    ) -> list[JobOutcome]:
        """What one run does: claim, then work on all of it at once."""
        if keys is None:
            keys = await self.keys()
        settings, database = self.runtime.settings, self.runtime.database
        async with open_engine(settings, database) as engine:
            claimed = await jobs.claim(
                database,
                keys,
                run_id,
                asked_by=asked_by,
                answers=answers,
                versions=current(settings),
                max_attempts=settings.event_max_attempts,
            )
            outcomes = await process(self.runtime, engine, claimed)
        self.outcomes += outcomes
        return outcomes

    async def keys(self) -> list[str]:
        rows = await self.rows("SELECT partition_key FROM artifact_revision ORDER BY ingested_at")
        return [row["partition_key"] for row in rows]

    async def rows(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        async with self.runtime.database.session() as session:
            cursor = await session.connection.execute(query, parameters)  # type: ignore[arg-type]
            return await cursor.fetchall() if cursor.description else []

    async def jobs(self) -> list[dict[str, Any]]:
        return await self.rows("SELECT * FROM event_jobs ORDER BY created_at")

    async def events(self) -> list[dict[str, Any]]:
        """Every stored event, in the order of its evidence."""
        return await self.rows(
            "SELECT e.*, v.quote, v.start_char, v.end_char, v.chunk_id, v.match_kind "
            "FROM semantic_event e LEFT JOIN event_evidence v USING (event_id) "
            "ORDER BY e.artifact_uid, e.revision_id, v.start_char, v.end_char, e.category"
        )

    async def calls(self) -> list[dict[str, Any]]:
        return await self.rows("SELECT * FROM model_call ORDER BY call_id")

    async def broken_evidence(self, limit: int = 100) -> list[BrokenEvidence]:
        """Quotes in the whole database that are not proved."""
        async with self.runtime.database.session() as session:
            return await session.rows(BrokenEvidence, "find_broken_evidence", limit=limit)

    async def events_without_evidence(self, limit: int = 100) -> list[PartOfRevision]:
        async with self.runtime.database.session() as session:
            return await session.rows(PartOfRevision, "find_events_without_evidence", limit=limit)

    async def all_due(self) -> None:
        """As if every back-off were over."""
        await self.rows("UPDATE event_jobs SET next_run_at = now() WHERE status = 'PENDING'")
