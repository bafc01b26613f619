"""Health checks of everything that the product needs, for `/health`, `doctor` and monitoring."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field

from memory_core.kernel import principal
from memory_core.kernel.database import Database
from memory_core.kernel.errors import MemoryFault
from memory_core.kernel.orchestrator import Orchestrator
from memory_core.log.lag import read_lags
from memory_core.queue.listing import count_by_status

State = Literal["up", "down", "unknown"]
C = TypeVar("C", bound="ServiceCheck")
CHECK_SECONDS = 5.0
_WHY = "the health of the whole installation"


class ServiceCheck(BaseModel):
    state: State
    latency_ms: float | None = None
    detail: str | None = None


class QueueCheck(ServiceCheck):
    pending: int = 0
    processing: int = 0
    failed: int = 0
    done: int = 0


class DaemonCheck(ServiceCheck):
    last_heartbeat: datetime | None = None


class LogCheck(ServiceCheck):
    """How far the projections are behind the log."""

    lag_changes: int = 0
    lag_seconds: float = 0.0
    dead_letters: int = 0
    projections: dict[str, str] = Field(default_factory=dict)


class Health(BaseModel):
    """`down`: Postgres is missing and tools fail. `degraded`: tools work, but nothing is extracted,
    or searches use words alone because Chroma is missing."""

    status: Literal["ok", "degraded", "down"]
    postgres: ServiceCheck
    chroma: ServiceCheck
    queue: QueueCheck
    daemon: DaemonCheck
    log: LogCheck


async def check_health(
    database: Database,
    chroma_heartbeat: Callable[[], Awaitable[Any]],
    orchestrator: Orchestrator,
) -> Health:
    with principal.system(_WHY):
        postgres, chroma, queue, daemon, log = await asyncio.gather(
            _timed(ServiceCheck, _postgres(database)),
            _timed(ServiceCheck, _chroma(chroma_heartbeat)),
            _timed(QueueCheck, _queue(database)),
            _timed(DaemonCheck, orchestrator.check(database)),
            _timed(LogCheck, _log(database)),
        )
    if postgres.state == "down":
        status: Literal["ok", "degraded", "down"] = "down"
    else:
        working = {chroma.state, daemon.state, queue.state, log.state} == {"up"}
        status = "ok" if working else "degraded"
    return Health(
        status=status, postgres=postgres, chroma=chroma, queue=queue, daemon=daemon, log=log
    )


async def check_daemon(database: Database, orchestrator: Orchestrator) -> DaemonCheck:
    """Whether the program that starts extractions is alive."""
    with principal.system(_WHY):
        return await _timed(DaemonCheck, orchestrator.check(database))


async def _timed(kind: type[C], question: Awaitable[dict[str, Any]]) -> C:
    begun = time.perf_counter()
    try:
        answer = await asyncio.wait_for(question, CHECK_SECONDS)
    except TimeoutError:
        return kind(state="down", detail=f"no answer within {CHECK_SECONDS:g} s")
    except MemoryFault as fault:
        return kind(state="down", detail=fault.message)
    except Exception as error:
        # A failed check must not hide the results of the others.
        return kind(state="down", detail=f"{type(error).__name__}: {error}".splitlines()[0])
    elapsed = round((time.perf_counter() - begun) * 1000, 2)
    return kind(**{"state": "up", "latency_ms": elapsed, **answer})


async def _postgres(database: Database) -> dict[str, Any]:
    async with database.session() as session:
        await session.run("ping")
    return {}


async def _chroma(heartbeat: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
    await heartbeat()
    return {}


async def _queue(database: Database) -> dict[str, Any]:
    async with database.session() as session:
        counts = await count_by_status(session)
    return {status.lower(): jobs for status, jobs in counts.items()}


async def _log(database: Database) -> dict[str, Any]:
    lags = await read_lags(database)
    late = [lag for lag in lags if lag.is_late]
    return {
        "state": "down" if late else "up",
        "lag_changes": max((lag.changes for lag in lags), default=0),
        "lag_seconds": round(max((lag.seconds for lag in lags), default=0.0), 3),
        "dead_letters": sum(lag.dead_letters for lag in lags),
        "projections": {lag.point.name: lag.point.status for lag in lags},
        "detail": "; ".join(
            f"{lag.point.name} is behind: {lag.reason or 'it is at work'}" for lag in late
        )
        or None,
    }
