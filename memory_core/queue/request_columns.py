"""The columns of a job request: what requested the job, who, in which call, and with which
priority."""

from typing import Any

from memory_core.kernel.settings import Settings
from memory_core.log import origin

LOWEST, HIGHEST = -100, 100


def request_columns(what: str, *, priority: int = 0) -> dict[str, Any]:
    """The columns of a request. `what`: ingest, tool, ui, backfill, schedule or repair."""
    by = origin.current()
    return {
        "origin": what,
        "requested_by": by.user_id or by.actor_id,
        "trace_id": by.trace_id,
        "priority": priority,
    }


def new_job_columns(settings: Settings, what: str, *, priority: int = 0) -> dict[str, Any]:
    """The same, with the columns that the settings decide for new jobs."""
    return {
        **request_columns(what, priority=priority),
        "max_attempts": settings.event_max_attempts,
        "backoff_policy": settings.event_backoff,
    }
