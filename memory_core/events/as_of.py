"""Which events of a past revision the memory had at a past moment.

`as_of` shows the revision that was the latest then, with its events that are stored now. The log
says which of them had already been extracted. Events that were replaced since are gone.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memory_core.log.change import AggregateType, aggregate_id
from memory_core.runtime import Runtime
from memory_core.search.event import Event


async def extracted_later(
    runtime: Runtime, events: Sequence[Event], as_of: datetime | None
) -> frozenset[UUID]:
    """Those of the events that the memory did not have at that moment; empty without a moment."""
    if as_of is None or not events:
        return frozenset()
    uids = [row.artifact_uid for row in events]
    async with runtime.database.session() as session:
        later = await session.values(
            UUID,
            "events_extracted_later",
            ids=[row.event_id for row in events],
            uids=uids,
            aggregates=[aggregate_id(AggregateType.ARTIFACT, uid) for uid in uids],
            revisions=[row.revision_id for row in events],
            as_of=as_of,
        )
    return frozenset(later)
