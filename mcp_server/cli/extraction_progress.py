"""The progress of extraction: what waits, what failed with which code, and why an answer is
empty."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mcp_server.cli.safe_text import counted
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.upkeep import health
from stack.dagster_orchestrator import DagsterOrchestrator
from stack.memory_in_use import memory_in_use

PROVIDER_CODES = "OPENAI_"


@dataclass(frozen=True, slots=True)
class Setback:
    """Documents whose extraction failed, or waits for another attempt, for the same reason."""

    code: str
    documents: int
    message: str  # of one of them

    @property
    def is_of_provider(self) -> bool:
        return self.code.startswith(PROVIDER_CODES)


@dataclass(frozen=True, slots=True)
class ExtractionProgress:
    """Counts of documents, each by its latest revision."""

    documents: int = 0
    done: int = 0
    waiting: int = 0
    working: int = 0
    failures: tuple[Setback, ...] = ()
    # The last errors of waiting documents.
    delays: tuple[Setback, ...] = ()
    pipeline_runs: bool = False

    @property
    def failed(self) -> int:
        return sum(failure.documents for failure in self.failures)

    @property
    def unfinished(self) -> int:
        return self.waiting + self.working

    def why_no_events(self) -> str:
        """Why a query for events has an empty answer."""
        if not self.documents:
            return NOTHING_STORED
        reasons = []
        if self.done:
            reasons.append(
                f"No event matches in {counted(self.done, 'document')} with extracted events."
            )
        if self.unfinished:
            reasons.append(f"Not extracted yet: {self.waits()}.")
        if self.failures:
            reasons.append(f"Extraction failed: {self.fails()}.")
        if self.waiting and not self.pipeline_runs:
            reasons.append(NO_PIPELINE)
        return " ".join(reasons)

    def why_no_passages(self) -> str:
        """Why a search of texts has an empty answer. Texts are searchable as soon as they are
        stored."""
        if not self.documents:
            return NOTHING_STORED
        return f"No passage matches in {counted(self.documents, 'document')}."

    def waits(self) -> str:
        working = f", {self.working:,} being worked on" if self.working else ""
        delays = f" ({_by_code(self.delays)})" if self.delays else ""
        return f"{self.waiting:,} waiting{delays}{working}"

    def fails(self) -> str:
        return _by_code(self.failures)

    def as_json(self) -> dict[str, Any]:
        return {
            "documents": self.documents,
            "done": self.done,
            "waiting": self.waiting,
            "working": self.working,
            "failed": self.failed,
            "failed_by_code": {failure.code: failure.documents for failure in self.failures},
            "pipeline_runs": self.pipeline_runs,
        }


NOTHING_STORED = "Nothing is stored yet."
NO_PIPELINE = "Nothing extracts events at the moment: start `mcp-memory up`."


def _by_code(setbacks: Iterable[Setback]) -> str:
    return ", ".join(f"{one.documents:,} with {one.code}" for one in setbacks)


@dataclass(frozen=True, slots=True)
class StatusDocuments:
    """The number of documents whose jobs have one status and one error code."""

    status: str
    code: str | None
    documents: int
    message: str | None


async def read_progress(runtime: Runtime, artifact_uid: str | None = None) -> ExtractionProgress:
    """The progress over all documents, or of one."""
    return await progress_of(runtime.database, runtime.settings, artifact_uid)


async def progress_of(
    database: Database, settings: Settings, artifact_uid: str | None = None
) -> ExtractionProgress:
    async with database.session() as session:
        rows = await session.rows(StatusDocuments, "extraction_progress", uid=artifact_uid)
    return ExtractionProgress(
        documents=sum(row.documents for row in rows),
        done=_count(rows, "DONE"),
        # A revision without a job gets one when its events are requested.
        waiting=_count(rows, "PENDING") + _count(rows, "NONE"),
        working=_count(rows, "PROCESSING"),
        failures=_setbacks(rows, "FAILED"),
        delays=_setbacks(rows, "PENDING"),
        pipeline_runs=await pipeline_runs(database, settings),
    )


async def pipeline_runs(database: Database, settings: Settings) -> bool:
    """Whether jobs are being processed, by our own stack or by a daemon elsewhere."""
    running = memory_in_use(settings).stack
    if running is not None and running.postgres_dsn == settings.dsn:
        return running.mode == "full"
    return (await health.check_daemon(database, DagsterOrchestrator())).state == "up"


def _count(rows: list[StatusDocuments], status: str) -> int:
    return sum(row.documents for row in rows if row.status == status)


def _setbacks(rows: list[StatusDocuments], status: str) -> tuple[Setback, ...]:
    return tuple(
        Setback(row.code, row.documents, row.message or "")
        for row in rows
        if row.status == status and row.code
    )
