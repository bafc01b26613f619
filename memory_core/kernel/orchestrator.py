"""The interface to the program that runs extractions. It is implemented outside the core."""

from typing import Any, Protocol

from memory_core.kernel.database import Database, Session


class Orchestrator(Protocol):
    async def forget(self, session: Session, artifact_uid: str) -> int:
        """Delete its records of a document, in the transaction that deletes the document, before
        the revisions go. Returns the number of deleted entries."""

    async def check(self, database: Database) -> dict[str, Any]:
        """Whether it is running: the fields of a `DaemonCheck`."""


class NoOrchestrator:
    """A memory without an orchestrator: documents are extracted by other means, or not at all."""

    async def forget(self, session: Session, artifact_uid: str) -> int:
        return 0

    async def check(self, database: Database) -> dict[str, Any]:
        return {"state": "unknown", "detail": "nothing extracts events here"}
