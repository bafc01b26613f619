"""What the memory asks of the program that runs extractions. It is answered outside the core."""

from typing import Any, Protocol

from memory_core.kernel.database import Database, Session


class Orchestrator(Protocol):
    async def forget(self, session: Session, artifact_uid: str) -> int:
        """Remove what it keeps of a document, in the transaction that deletes it, before the
        revisions go. Returns how many entries are gone."""

    async def check(self, database: Database) -> dict[str, Any]:
        """Whether it is at work: fields of a `DaemonCheck`."""


class NoOrchestrator:
    """A memory whose documents are extracted by other means, or not at all."""

    async def forget(self, session: Session, artifact_uid: str) -> int:
        return 0

    async def check(self, database: Database) -> dict[str, Any]:
        return {"state": "unknown", "detail": "nothing extracts events here"}
