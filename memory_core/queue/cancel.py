"""Canceling a job: at once, or at the next safe point of the run that holds it."""

from dataclasses import dataclass
from uuid import UUID

from memory_core.kernel.database import Database
from memory_core.kernel.errors import Conflict, NotFound
from memory_core.log import origin
from memory_core.queue.jobs import LEASE_SECONDS


@dataclass(frozen=True, slots=True)
class Cancellation:
    job_id: UUID
    status: str
    message: str


async def cancel(database: Database, job_id: UUID) -> Cancellation:
    """Stored events stay; what the run has not stored yet is dropped. Canceling a canceled job
    changes nothing."""
    by = origin.current()
    async with database.transaction() as session:
        await session.run("act_as", who=by.user_id or by.actor_id or by.source)
        status = await session.maybe(str, "cancel_job", job_id=job_id, lease=LEASE_SECONDS)
        if status is None:
            status = await session.maybe(str, "status_of_job", job_id=job_id)
            if status is None:
                raise NotFound(f"There is no job {job_id}.", details={"job_id": str(job_id)})
            if status != "CANCELED":
                raise Conflict(
                    f"The job is {status} already; there is nothing to cancel.",
                    details={"job_id": str(job_id), "status": status},
                )
    if status == "CANCELED":
        return Cancellation(
            job_id, status, "The job is canceled; event_reextract asks for it again."
        )
    return Cancellation(
        job_id,
        status,
        "Its run stops working on it at the next safe point; nothing of it will be stored.",
    )
