"""Events by the words of a query and by filters: how many match, the best of them, the newest.

What takes how long at a million events decides how they are looked for: few matches are all looked
at; of many the newest are found by going back in time, while they are counted.
"""

import asyncio
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from memory_core.kernel.database import Row, Session
from memory_core.runtime import Runtime
from memory_core.search.query_text import Asked

Parameters = dict[str, Any]

# How many of the newest matches are ranked by their words. All matches of a rare word; of a
# common one the newest, after which the others follow in the order of time.
RANKED_MATCHES = 300
# Finding the newest few of many matches: going back in time takes the longer the fewer matches
# there are, looking at all of them the longer the more. They take the same time at about this
# many, times the square root of how many are wanted.
_FEW_MATCHES = 4_000
# How far back the newest are looked for when it is not known how many matches there are: so many
# times as far as it should take, and never farther than this.
_PATIENCE = 3
_LOOKED_BACK = 20_000
# Of more than this many, it pays to count them while the newest are found.
_MANY_MATCHES = 3_000


@dataclass(frozen=True, slots=True)
class Matches:
    """How many events match the words of a query and its filters, and the best of the newest."""

    asked: Asked
    # The filters of the search, and the words as one of them.
    parameters: Parameters
    total: int
    ranked: list[str]

    async def newest(
        self, session: Session, limit: int, offset: int, *, without: Iterable[str] = ()
    ) -> list[Row]:
        return await newest(
            session, self.parameters, self.total, limit, offset,
            without=without, open_ended=self.asked.is_open_ended,
        )  # fmt: skip


async def match(runtime: Runtime, asked: Asked, filters: Parameters, *, rank: bool) -> Matches:
    """`rank`: whether it matters which are the best."""
    if not asked.words:
        return Matches(asked, filters, 0, [])
    parameters = {**filters, "words": asked.words}
    each_word = list(asked.each_word)
    async with runtime.database.session() as session:
        likely = await session.expect("expected_matches", **parameters)
        if likely <= _MANY_MATCHES and rank:
            row = await session.one(
                "ranked_with_total", limit=RANKED_MATCHES, each_word=each_word, **parameters
            )
            assert row is not None
            return Matches(asked, parameters, row["total"], row["ranked"])

    async def best() -> list[str]:
        if not rank:
            return []
        async with runtime.database.session() as session:
            return await _best(session, asked, parameters, likely)

    # Each with a connection of its own, which nobody may wait for while holding another one.
    total, ranked = await asyncio.gather(_total(runtime, asked, parameters), best())
    return Matches(asked, parameters, total, ranked)


async def count(session: Session, parameters: Parameters) -> int:
    row = await session.one("count_events", **parameters)
    assert row is not None
    total: int = row["total"]
    return total


async def newest(
    session: Session,
    parameters: Parameters,
    total: int,
    limit: int,
    offset: int = 0,
    *,
    without: Iterable[str] = (),
    open_ended: bool = False,
) -> list[Row]:
    """The newest of so many matches, without those that are ranked before them."""
    few = _few(parameters, total, limit + offset, open_ended)
    return await session.all(
        "newest_of_few" if few else "newest_of_many",
        limit=limit,
        offset=offset,
        without=list(without),
        **parameters,
    )


def _few(parameters: Parameters, total: int, wanted: int, open_ended: bool) -> bool:
    """Whether an index should lead to all matches. It can when some filter is about what the row of
    an entry does not have; words that must not be there lead nowhere."""
    names = ["facets", "actor_facets", "subject"] + ([] if open_ended else ["words"])
    indexed = any(parameters[name] for name in names)
    return indexed and total <= _FEW_MATCHES * math.sqrt(wanted)


async def _best(session: Session, asked: Asked, parameters: Parameters, likely: int) -> list[str]:
    """The best of the newest of as many matches as Postgres expects, which may be wrong about words
    that seldom or never stand together."""
    open_ended = asked.is_open_ended

    async def ranked(query: str, **more: int) -> list[str]:
        row = await session.one(
            query, limit=RANKED_MATCHES, each_word=list(asked.each_word), **more, **parameters
        )
        assert row is not None
        ids: list[str] = row["ranked"]
        return ids

    if not _few(parameters, likely, RANKED_MATCHES, open_ended):
        last = await _looked_back(session, parameters, likely)
        ids = await ranked("ranked_of_last", last=last)
        if len(ids) == RANKED_MATCHES or open_ended:
            return ids
        likely = 0
    few = _few(parameters, likely, RANKED_MATCHES, open_ended)
    return await ranked("ranked_of_few" if few else "ranked_of_many")


async def _looked_back(session: Session, parameters: Parameters, likely: int) -> int:
    passed = {**parameters, "words": None, "facets": None, "actor_facets": None, "subject": None}
    events = await session.expect("expected_matches", **passed)
    return min(_LOOKED_BACK, _PATIENCE * RANKED_MATCHES * max(events // max(likely, 1), 1))


async def _total(runtime: Runtime, asked: Asked, parameters: Parameters) -> int:
    async def number(words: str | None) -> int:
        async with runtime.database.session() as session:
            return await count(session, {**parameters, "words": words})

    if asked.all_but is None:
        return await number(asked.words)
    every, others = await asyncio.gather(number(None), number(asked.all_but))
    return every - others
