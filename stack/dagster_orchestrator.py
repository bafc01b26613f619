"""Dagster as the memory's orchestrator: its records of documents, and whether its daemon is
alive."""

from datetime import UTC, datetime, timedelta
from typing import Any

from memory_core.kernel.database import Database, Session
from stack import dagster_lineage

# The daemon sends a heartbeat every 30 s.
DAEMON_SILENT_AFTER = timedelta(seconds=90)


class DagsterOrchestrator:
    async def forget(self, session: Session, artifact_uid: str) -> int:
        return await dagster_lineage.forget(session, artifact_uid)

    async def check(self, database: Database) -> dict[str, Any]:
        """Whether the sensor daemon has sent a heartbeat recently."""
        async with database.session() as session:
            if not await session.value(bool, "daemon_table_exists"):
                return {"state": "unknown", "detail": "Dagster has never run on this database"}
            heartbeat = await session.maybe(datetime, "daemon_last_heartbeat")
        if heartbeat is None:
            return {"state": "down", "detail": "the Dagster daemon has never run"}
        beat = heartbeat.replace(tzinfo=UTC)
        silent = datetime.now(UTC) - beat > DAEMON_SILENT_AFTER
        return {
            "state": "down" if silent else "up",
            "last_heartbeat": beat,
            "detail": "no heartbeat lately: start the stack, or see the daemon's log"
            if silent
            else None,
        }
