"""How far each projection is behind the log, and why."""

from dataclasses import dataclass
from typing import Any

from memory_core.kernel.database import Database
from memory_core.log import log_reader
from memory_core.log.change import START, Position
from memory_core.log.checkpoint import Checkpoint
from memory_core.log.follower import FOLLOWERS
from memory_core.log.log_reader import Holder

# From this lag on, a projection counts as behind.
LATE_SECONDS = 60.0
COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Lag:
    point: Checkpoint
    changes: int  # number of changes after its checkpoint; COUNTED means at least that many
    seconds: float  # age of the oldest of them
    is_led: bool
    dead_letters: int = 0  # unresolved
    # Who holds the horizon back, if committed changes cannot be read yet.
    holder: Holder | None = None
    note: str | None = None  # any other remark

    @property
    def is_late(self) -> bool:
        return self.seconds > LATE_SECONDS

    @property
    def reason(self) -> str | None:
        """Why it is behind, if that is known."""
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


@dataclass(frozen=True, slots=True)
class ProjectionLag(Checkpoint):
    changes: int
    seconds: float | None
    unreadable: bool
    dead_letters: int
    is_led: bool


@dataclass(frozen=True, slots=True)
class WebhookLag:
    changes: int
    seconds: float | None
    put_off: int  # number of postponed messages
    is_led: bool


@dataclass(frozen=True, slots=True)
class FollowerLag:
    name: str
    transaction_id: int
    sequence_number: int
    changes: int
    seconds: float | None
    unreadable: bool


async def read_lags(database: Database) -> list[Lag]:
    """The lags of projections, webhooks, and followers for clients."""
    async with database.session() as session:
        projections = await session.rows(ProjectionLag, "projection_lags")
        followers = await session.rows(FollowerLag, "follower_lags")
        webhooks = await session.only(WebhookLag, "webhook_lag")
        lags: list[ProjectionLag | FollowerLag] = [*projections, *followers]
        held = any(lag.unreadable for lag in lags)
        holder = await log_reader.holder(session) if held else None
    return [
        *(_of_projection(lag, holder) for lag in projections),
        _of_webhooks(webhooks),
        *(_of_follower(name, followers, holder) for name in FOLLOWERS),
    ]


def _of_projection(lag: ProjectionLag, holder: Holder | None) -> Lag:
    return Lag(
        point=lag,
        changes=lag.changes,
        seconds=lag.seconds or 0.0,
        is_led=lag.is_led,
        dead_letters=lag.dead_letters,
        holder=holder if lag.unreadable else None,
    )


def _of_webhooks(lag: WebhookLag) -> Lag:
    return Lag(
        point=Checkpoint.at("webhooks"),
        changes=lag.changes,
        seconds=lag.seconds or 0.0,
        is_led=lag.is_led,
        note=f"{lag.put_off} messages wait for receivers that failed" if lag.put_off else None,
    )


def _of_follower(name: str, lags: list[FollowerLag], holder: Holder | None) -> Lag:
    """The lag of the server that is furthest behind."""
    lag = next((lag for lag in lags if lag.name == name), None)
    if lag is None:
        return Lag(Checkpoint.at(name), 0, 0.0, is_led=False, note="no client is subscribed")
    return Lag(
        point=Checkpoint.at(name, Position(lag.transaction_id, lag.sequence_number)),
        changes=lag.changes,
        seconds=lag.seconds or 0.0,
        is_led=True,
        holder=holder if lag.unreadable else None,
    )
