"""How far each projection is behind the log, and why."""

from dataclasses import dataclass, replace
from typing import Any

from memory_core.kernel.database import Database, Row
from memory_core.log import reading
from memory_core.log.change import START, Position
from memory_core.log.checkpoint import Checkpoint
from memory_core.log.following import FOLLOWERS
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
    note: str | None = None  # what else there is to say

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
            "position": str(self.point.position) if self.point.position != START else None,
            "processed": self.point.processed,
            "lag_changes": self.changes,
            "lag_seconds": round(self.seconds, 3),
            "dead_letters": self.dead_letters,
            "is_led": self.is_led,
            "leader": self.point.leader if self.is_led else None,
            "last_processed_at": self.point.last_processed_at,
            "reason": self.reason or self.note
            if self.changes or self.point.status != "running"
            else self.note,
        }


async def read_lags(database: Database) -> list[Lag]:
    """Of projections, of webhooks, and of what follows the log for clients."""
    async with database.session() as session:
        rows = await session.all("projection_lags")
        followers = await session.all("follower_lags")
        webhooks = await session.one("webhook_lag")
        held = any(row["unreadable"] for row in [*rows, *followers])
        holder = await reading.holder(session) if held else None
    assert webhooks is not None
    found = [
        _lag(Checkpoint.of(row), row, holder, row["is_led"], row["dead_letters"]) for row in rows
    ]
    found.append(_of_webhooks(webhooks))
    found += [_of_follower(name, followers, holder) for name in FOLLOWERS]
    return found


def _lag(
    point: Checkpoint, row: Row, holder: Holder | None, is_led: bool, dead_letters: int = 0
) -> Lag:
    return Lag(
        point=point,
        changes=row["changes"],
        seconds=row["seconds"] or 0.0,
        dead_letters=dead_letters,
        is_led=is_led,
        holder=holder if row.get("unreadable") else None,
    )


def _of_webhooks(row: Row) -> Lag:
    lag = _lag(Checkpoint.without_one("webhooks"), row, None, row["is_led"])
    put_off = row["put_off"]
    note = f"{put_off} messages wait for receivers that failed" if put_off else None
    return replace(lag, note=note)


def _of_follower(name: str, rows: list[Row], holder: Holder | None) -> Lag:
    """The one that is farthest behind, of all servers."""
    mine = [row for row in rows if row["name"] == name]
    if not mine:
        point = Checkpoint.without_one(name)
        return Lag(point, 0, 0.0, 0, False, None, note="no client is subscribed")
    point = replace(Checkpoint.without_one(name), position=Position.of(mine[0]))
    return _lag(point, mine[0], holder, True)
