"""The partitions of the audit: created ahead, and dropped when everything in them is older than
AUDIT_DAYS."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memory_core.kernel.database import Database
from memory_core.log.log_partitions import MONTHS_AHEAD


@dataclass(frozen=True, slots=True)
class AuditPartitions:
    made: list[str]
    dropped: list[str]


async def keep_audit(database: Database, days: int, now: datetime | None = None) -> AuditPartitions:
    """A call is kept for `days`, and for the rest of its month."""
    now = now or datetime.now(UTC)
    made = await _make_ahead(database, now)
    async with database.session() as session:
        dropped = await session.values(
            str, "old_audit_partitions", before=now - timedelta(days=days)
        )
    for name in dropped:
        async with database.transaction() as session:
            await session.run("drop_audit_partition", name=name)
    return AuditPartitions(made, dropped)


async def _make_ahead(database: Database, now: datetime) -> list[str]:
    span = {"first": now.date(), "months": MONTHS_AHEAD + 1}
    async with database.transaction() as session:
        # The check is cheap; creating a partition takes locks that the audit's writers wait for.
        if not await session.value(int, "missing_audit_partitions", **span):
            return []
        return await session.values(str, "make_audit_partitions", **span)
