"""Retention: documents whose policy has expired are deleted, each in its own transaction.

`1y` counts from the moment at which the latest revision was stored or restored. It does not count
from the document's own date: an import of old mail would be deleted within the hour.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from memory_core.artifacts.deletion import delete_uid
from memory_core.events.commitments import Commitment, judge
from memory_core.kernel import principal
from memory_core.kernel.database import Database, Session
from memory_core.kernel.errors import NotFound, PostgresUnavailable
from memory_core.kernel.orchestrator import Orchestrator
from memory_core.log.change import ChangeType
from memory_core.log.origin import acting

log = logging.getLogger(__name__)

# The maximum per run; the next run takes the rest.
DOCUMENTS_PER_RUN = 1_000
_PAGE = 50
_WHY = "the retention policy of a document has run out"


@dataclass(frozen=True, slots=True)
class Expired:
    artifact_uid: str
    tenant_id: UUID
    policy: str
    title: str | None
    source_system: str
    due: datetime | None  # None: its promises are resolved


@dataclass(frozen=True, slots=True)
class RetentionCandidate(Expired):
    """A document that has expired, or that is kept until its promises are resolved."""

    promises: list[UUID]


@dataclass(slots=True)
class RetentionOutcome:
    expired: list[Expired] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # error class by uid


async def expired(
    session: Session, now: datetime, *, most: int = DOCUMENTS_PER_RUN, uid: str | None = None
) -> list[Expired]:
    """Ordered by uid. Needs a session of the system."""
    over: list[Expired] = []
    after = ""
    while len(over) < most:
        page = await session.rows(
            RetentionCandidate, "retention_candidates", now=now, after=after, uid=uid, limit=_PAGE
        )
        over += await _expired_ones(session, page, now)
        if len(page) < _PAGE:
            break
        after = page[-1].artifact_uid
    return over[:most]


async def run(
    database: Database,
    orchestrator: Orchestrator,
    now: datetime,
    *,
    dry_run: bool = False,
    most: int = DOCUMENTS_PER_RUN,
) -> RetentionOutcome:
    """Delete what has expired. A document that cannot be deleted is left for the next run."""
    with principal.system(_WHY):
        async with database.session() as session:
            outcome = RetentionOutcome(await expired(session, now, most=most))
    for document in [] if dry_run else outcome.expired:
        try:
            if await _delete(database, orchestrator, document, now):
                outcome.deleted.append(document.artifact_uid)
        except PostgresUnavailable:
            raise  # the other documents would fail in the same way
        except Exception as error:
            log.exception("%s has expired and could not be deleted", document.artifact_uid)
            outcome.failed[document.artifact_uid] = type(error).__name__
    return outcome


async def _delete(
    database: Database, orchestrator: Orchestrator, document: Expired, now: datetime
) -> bool:
    uid = document.artifact_uid

    async def still_expired(session: Session) -> bool:
        # It may have been revised or relabelled since it was listed.
        return bool(await expired(session, now, uid=uid))

    with (
        principal.system(_WHY, document.tenant_id),
        acting(source="retention", tenant_id=document.tenant_id),
    ):
        try:
            await delete_uid(
                database, orchestrator, uid, ChangeType.ARTIFACT_EXPIRED, only_if=still_expired
            )
        except NotFound:
            return False
    return True


async def _expired_ones(
    session: Session, page: list[RetentionCandidate], now: datetime
) -> list[Expired]:
    promises = [id_ for candidate in page for id_ in candidate.promises]
    judged = await judge(session, promises, now) if promises else []
    by_id = {one.event.event_id: one for one in judged}
    return [
        candidate
        for candidate in page
        if candidate.due is not None
        or await _is_resolved(session, candidate, [by_id.get(id_) for id_ in candidate.promises])
    ]


async def _is_resolved(
    session: Session, candidate: RetentionCandidate, commitments: Iterable[Commitment | None]
) -> bool:
    """Whether all promises were done, according to documents that the owner of this one may see:
    the system, which checks this, sees those of all tenants and users."""
    reports: set[str] = set()
    for one in commitments:
        if one is None or one.fulfilled_by is None:
            return False
        reports.add(one.fulfilled_by.artifact_uid)
    seen = await session.values(
        str, "reports_owner_sees", uid=candidate.artifact_uid, reports=sorted(reports)
    )
    return reports <= set(seen)
