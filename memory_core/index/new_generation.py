"""A new generation is filled from Postgres while the old one serves.

Filling goes through all owners in the order of their ids and stores its position in Postgres.
Meanwhile the changes of the log are applied to both generations. After the last owner, a change of
state makes the new generation serve, and the old one is dropped.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memory_core.index import generation as generations
from memory_core.index.generation import Generation
from memory_core.index.legacy_vectors import drop_legacy
from memory_core.index.store import IndexParts
from memory_core.index.writer import holding_index, settle
from memory_core.kernel.database import Session

log = logging.getLogger(__name__)

# Owners per page. Changes wait while a page is written.
_OWNERS = 50


@dataclass(frozen=True, slots=True)
class FillProgress:
    """How many owners the newest generation has passed, and how many there are."""

    generation: int
    is_filled: bool
    owners: int
    passed: int


async def rebuild(runtime: IndexParts) -> None:
    """Fill a new generation, or continue an unfinished one, until it serves."""
    async with runtime.database.transaction() as session:
        unfilled = await session.row(Generation, "unfilled_generation")
        if unfilled is None or not unfilled.fits(runtime.embedder):
            await generations.begin(session, runtime.embedder)
    while await fill_page(runtime):
        pass


async def fill_page(runtime: IndexParts) -> bool:
    """Write the next owners of the unfinished generation; False if there is none."""
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


async def _serve(runtime: IndexParts, generation: Generation) -> None:
    async with holding_index(runtime) as session:
        await session.run("retire_others", generation=generation.generation)
        if await session.run("serve_generation", generation=generation.generation):
            log.info("generation %d of the index serves now", generation.generation)
    await drop_legacy(runtime.vectors)


async def drop_retired(runtime: IndexParts) -> None:
    """Drop the collections of generations that no longer serve. A search that still asks one gets
    an error and asks the serving one."""
    async with runtime.database.session() as session:
        retired = await session.rows(Generation, "retired_generations")
    for one in retired:
        await runtime.vectors.drop(filter(one.has_named, await runtime.vectors.labels()))
        async with runtime.database.session() as session:
            await session.run("forget_generation", generation=one.generation)


async def progress(runtime: IndexParts) -> FillProgress | None:
    async with runtime.database.session() as session:
        return await session.row(FillProgress, "progress_of_filling")
