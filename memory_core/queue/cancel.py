"""Canceling a job: at once, or at the next safe point of the run that holds it."""

from dataclasses import dataclass
from uuid import UUID

from memory_core.kernel.database import Database, Row
from memory_core.kernel.errors import Conflict, NotFound
from memory_core.log import origin
from memory_core.queue.jobs import LEASE_SECONDS


@dataclass(frozen=True, slots=True)
class Cancellation:
    job: Row
    message: str


async def cancel(database: Database, job_id: UUID) -> Cancellation:
    """Events that are stored stay; what a run has not stored yet is not. To cancel a canceled job
    changes nothing."""
    by = origin.current()
    async with database.transaction() as session:
        await session.run("act_as", who=by.user_id or by.actor_id or by.source)
        row = await session.one("cancel_job", job_id=job_id, lease=LEASE_SECONDS)
        if row is None:
            row = await session.one("job_by_id", job_id=job_id)
            if row is None:
                raise NotFound(f"There is no job {job_id}.", details={"job_id": str(job_id)})
            if row["status"] != "CANCELED":
                raise Conflict(
                    f"The job is {row['status']} already; there is nothing to cancel.",
                    details={"job_id": str(job_id), "status": row["status"]},
                )
    if row["status"] == "CANCELED":
        return Cancellation(row, "The job is canceled; event_reextract asks for it again.")
    return Cancellation(
        row, "Its run stops working on it at the next safe point; nothing of it will be stored."
    )
