"""Positions after a dump was restored into another cluster.

A position contains transaction ids, which have no meaning in another cluster: it may count from
lower ones, and readers would wait for new changes, or skip them.
"""

from dataclasses import dataclass

from memory_core.kernel.database import Database, Session
from memory_core.kernel.errors import ConfigurationFault


@dataclass(frozen=True, slots=True)
class Rebased:
    changes: int
    checkpoints: int


async def is_needed(session: Session) -> bool:
    return await session.value(bool, "positions_are_foreign")


async def refuse_foreign_positions(session: Session) -> None:
    if await is_needed(session):
        raise ConfigurationFault(
            "The log's positions come from another Postgres cluster (a dump was restored here): "
            "projections would lose changes, so none is run. Run `mcp-memory log rebase` once."
        )


async def rebase(database: Database) -> Rebased:
    """Give every change a position of this cluster, in the same order, and move the checkpoints.
    Appending waits for the end of this one transaction."""
    async with database.transaction() as session:
        return await session.only(Rebased, "rebase_log")
