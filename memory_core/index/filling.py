"""A new generation, filled from Postgres while the old one serves.

The filling passes all owners in the order of their ids and keeps its place in Postgres; the log's
changes are applied to both generations meanwhile. When the last owner is passed, the new one
serves by a change of state, and the old one is dropped.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memory_core.index import generation as generations
from memory_core.index.adopting import drop_legacy
from memory_core.index.generation import Generation
from memory_core.index.store import Parts
from memory_core.index.writing import holding_index, settle
from memory_core.kernel.database import Session

log = logging.getLogger(__name__)

# Changes wait while one page is written.
_OWNERS = 50


@dataclass(frozen=True, slots=True)
class Progress:
    """How many owners the newest generation has passed, and how many there are."""

    generation: int
    is_filled: bool
    owners: int
    passed: int


async def rebuild(runtime: Parts) -> None:
    """Fill a new generation, or go on with the one that was begun; until it serves."""
    async with runtime.database.transaction() as session:
        unfilled = await session.row(Generation, "unfilled_generation")
        if unfilled is None or not unfilled.fits(runtime.embedder):
            await generations.begin(session, runtime.embedder)
    while await fill_page(runtime):
        pass


async def fill_page(runtime: Parts) -> bool:
    """The next owners of the generation that is not complete; False when there is none."""
    async with runtime.database.session() as session:
        generation = await session.row(Generation, "unfilled_generation")
        if generation is None:
            await drop_retired(runtime)
            return False
        owners = await session.values(
            str, "owners_of_index", after=generation.filled_after, limit=_OWNERS
        )
    if not owners:
        await _serve(runtime, generation)
        return True

    @asynccontextmanager
    async def commit() -> AsyncIterator[Session]:
        async with runtime.database.transaction() as writing:
            yield writing
            await writing.run("pass_owners", generation=generation.generation, after=owners[-1])

    await settle(runtime, owners, commit, only=generation.generation)
    return True


async def _serve(runtime: Parts, generation: Generation) -> None:
    async with holding_index(runtime) as session:
        await session.run("retire_others", generation=generation.generation)
        if await session.run("serve_generation", generation=generation.generation):
            log.info("generation %d of the index serves now", generation.generation)
    await drop_legacy(runtime.vectors)


async def drop_retired(runtime: Parts) -> None:
    """Collections of generations that serve no more. A search that still asks one is told, and
    asks the one that serves."""
    async with runtime.database.session() as session:
        retired = await session.rows(Generation, "retired_generations")
    for one in retired:
        await runtime.vectors.drop(filter(one.has_named, await runtime.vectors.labels()))
        async with runtime.database.session() as session:
            await session.run("forget_generation", generation=one.generation)


async def progress(runtime: Parts) -> Progress | None:
    async with runtime.database.session() as session:
        return await session.row(Progress, "progress_of_filling")
