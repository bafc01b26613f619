"""How far each projection is behind the log, and why."""

from dataclasses import dataclass
from typing import Any

from memory_core.kernel.database import Database
from memory_core.log import reading
from memory_core.log.checkpoint import Checkpoint
from memory_core.log.reading import Holder

# From here on, a projection counts as behind.
LATE_SECONDS = 60.0
COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Lag:
    point: Checkpoint
    changes: int  # after its checkpoint; COUNTED means at least that many
    seconds: float  # age of the oldest of them
    dead_letters: int  # unresolved
    is_led: bool
    holder: Holder | None  # of the horizon, when changes are committed that cannot be read yet

    @property
    def is_late(self) -> bool:
        return self.seconds > LATE_SECONDS

    @property
    def reason(self) -> str | None:
        """Why it is behind, as far as can be told."""
        if self.point.status == "paused":
            return "it is paused: `mcp-memory projections resume` lets it go on"
        if self.point.fault is not None:
            return f"it waits: {self.point.fault}"
        if not self.is_led:
            return "no worker runs: `mcp-memory up`, or `mcp-memory worker`"
        if self.holder is not None:
            return (
                f"a transaction has been open for {self.holder.age_seconds:.0f} s (process "
                f"{self.holder.pid} of Postgres, {self.holder.application or 'unnamed'}): changes "
                "after it cannot be read before it ends"
            )
        return None

    def as_json(self) -> dict[str, Any]:
        return {
            "projection": self.point.name,
            "status": self.point.status,
            "position": str(self.point.position),
            "processed": self.point.processed,
            "lag_changes": self.changes,
            "lag_seconds": round(self.seconds, 3),
            "dead_letters": self.dead_letters,
            "is_led": self.is_led,
            "leader": self.point.leader if self.is_led else None,
            "last_processed_at": self.point.last_processed_at,
            "reason": self.reason if self.changes or self.point.status != "running" else None,
        }


async def read_lags(database: Database) -> list[Lag]:
    async with database.session() as session:
        rows = await session.all("projection_lags")
        held = any(row["unreadable"] for row in rows)
        holder = await reading.holder(session) if held else None
    return [
        Lag(
            point=Checkpoint.of(row),
            changes=row["changes"],
            seconds=row["seconds"] or 0.0,
            dead_letters=row["dead_letters"],
            is_led=row["is_led"],
            holder=holder if row["unreadable"] else None,
        )
        for row in rows
    ]
