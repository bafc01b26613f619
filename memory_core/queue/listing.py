"""Jobs page by page, and what became of one: read from the ledger."""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from memory_core.kernel.database import Database, Row
from memory_core.kernel.errors import InvalidInput

JobState = Literal["PENDING", "PROCESSING", "DONE", "FAILED", "CANCELED"]
HISTORY_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Page:
    jobs: list[Row]
    next_cursor: str | None  # None: these were the last


async def page_of_jobs(
    database: Database, *, status: JobState | None = None, limit: int, cursor: str | None = None
) -> Page:
    """The newest first. Jobs that come meanwhile do not move the pages that follow."""
    before, before_id = _read(cursor) if cursor else (None, None)
    place = {"before": before, "before_id": before_id, "limit": limit + 1}
    async with database.session() as session:
        if status is None:
            rows = await session.all("page_of_all_jobs", **place)
        else:
            rows = await session.all("page_of_jobs_in_state", status=status, **place)
    shown = rows[:limit]
    return Page(shown, _written(shown[-1]) if len(rows) > limit else None)


async def history_of(database: Database, job_id: UUID) -> list[Row]:
    """The last transitions, oldest first."""
    async with database.session() as session:
        return await session.all("job_history", job_id=job_id, limit=HISTORY_SHOWN)


def _written(row: Row) -> str:
    place = f"{row['created_at'].isoformat()} {row['job_id']}"
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _read(cursor: str) -> tuple[datetime, UUID]:
    try:
        place = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        created_at, job_id = place.split(" ")
        return datetime.fromisoformat(created_at), UUID(job_id)
    except (ValueError, binascii.Error):
        raise InvalidInput(
            "cursor: not one that job_list returned. Leave it out to begin with the newest.",
            details={"parameter": "cursor"},
        ) from None
