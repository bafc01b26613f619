"""Events by the words of a query and by filters: their number, the most promising, the newest.

The strategy depends on the time that each takes at a million events. Few matches are all read. Of
many, rare words lead to the most promising ones and going back in time to the newest, while the
matches are counted.
"""

import asyncio
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_core.kernel.database import Session
from memory_core.runtime import Runtime
from memory_core.search.bm25 import Statistics
from memory_core.search.lexemes import lexemes_of, quoted
from memory_core.search.query_text import Asked

Parameters = dict[str, Any]

# How many matches are ranked by their words; the others follow in the order of time. For a common
# word these are the newest, otherwise the most promising of LOOKED_AT.
RANKED_MATCHES = 300
LOOKED_AT = 3_000
# Two ways to find the newest few of many matches: going back in time takes longer the fewer matches
# there are, reading all of them takes longer the more there are. They take the same time at about
# this many, times the square root of the number wanted.
FEW_MATCHES = 4_000
# How far back to look for the newest if the number of matches is unknown: this many times as far as
# expected, and never further than LOOKED_BACK events.
_PATIENCE = 3
LOOKED_BACK = 20_000
# Of very many matches, the most promising of any age are collected until there are this many:
# events with a rare word (at most RARE events have it), and events with all of the _RAREST rarest
# words.
_ENOUGH = 100
RARE = 1_000
_RAREST = 3

# With as_of, how many events may have become the latest since, so that going back in time soon
# reaches those of then.
RECENT = 2_000
# With as_of, of how many expected matches each is looked up. There may be ten times as many.
LOOKED_UP = 2_000

_PHRASE = re.compile(r"<(?:-|\d+)>")


@dataclass(frozen=True, slots=True)
class Dated:
    """An event in the order of time."""

    event_id: str
    event_time: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Promising:
    """Events ordered by promise: the weight of the words that they have."""

    ids: list[str]
    promises: list[float]


@dataclass(frozen=True, slots=True)
class _Counted:
    total: int
    ids: list[str]
    promises: list[float]


@dataclass(frozen=True, slots=True)
class Matches:
    """The number of events that match the words of a query and its filters, and the most
    promising."""

    asked: Asked
    # The filters of the search, including the words.
    parameters: Parameters
    total: int
    ranked: list[str]
    # How many of the ranked events have most of the query's words.
    answering: int

    async def newest(
        self, session: Session, limit: int, offset: int, *, without: Iterable[str] = ()
    ) -> list[Dated]:
        return await newest(
            session, self.parameters, self.total, limit, offset,
            without=without, open_ended=self.asked.is_open_ended,
        )  # fmt: skip


async def match(
    runtime: Runtime, asked: Asked, filters: Parameters, statistics: Statistics, *, rank: bool
) -> Matches:
    """`rank`: whether the best matches are needed."""
    if not asked.words:
        return Matches(asked, filters, 0, [], 0)
    search = _Search(asked, filters, statistics)
    parameters = search.parameters()
    async with runtime.database.session() as session:
        likely = await _expect(session, parameters)
        if rank and (likely <= LOOKED_AT or (parameters["letters"] and parameters["words"])):
            given = await _by_index(session, parameters)
            counted = await session.only(
                _Counted,
                "ranked_with_total" if given["latest_at"] is None else "ranked_with_total_as_of",
                limit=LOOKED_AT,
                **search.words,
                **given,
            )
            best_of_all = dict(zip(counted.ids, counted.promises, strict=True))
            return search.matches(parameters, counted.total, best_of_all)

    async def best() -> dict[str, float]:
        if not rank:
            return {}
        async with runtime.database.session() as session:
            return await search.best(session, likely)

    # Each with its own connection, so that none waits for a connection while it holds another.
    total, ranked = await asyncio.gather(search.count(runtime), best())
    return search.matches(parameters, total, ranked)


async def count(session: Session, parameters: Parameters) -> int:
    given = await _by_index(session, parameters)
    name = "count_events" if given["latest_at"] is None else "count_events_as_of"
    return await session.value(int, name, **given)


async def newest(
    session: Session,
    parameters: Parameters,
    total: int,
    limit: int,
    offset: int = 0,
    *,
    without: Iterable[str] = (),
    open_ended: bool = False,
) -> list[Dated]:
    """The newest of all matches, without those that are ranked before them."""
    page = {"limit": limit, "offset": offset, "without": list(without)}
    if await _few(session, parameters, total, limit + offset, open_ended):
        given = await _by_index(session, parameters)
        name = "newest_of_few" if given["latest_at"] is None else "newest_of_few_as_of"
        return await session.rows(Dated, name, **page, **given)
    if open_ended and await _is_past(session, parameters):
        given = {**_as_of(parameters), "letters": None, "checked": parameters["letters"]}
        return await session.rows(Dated, "newest_of_past", **page, **given)
    return await session.rows(Dated, "newest_of_many", **page, **_without_index(parameters))


async def _few(
    session: Session, parameters: Parameters, total: int, wanted: int, open_ended: bool
) -> bool:
    """Whether an index should find all matches. It can if some filter concerns a column that the
    entry's row does not have; excluded words cannot be looked up."""
    names = ["facets", "actor_facets", "subject"] + ([] if open_ended else ["words", "as_of"])
    if not any(parameters[name] for name in names):
        return False
    return total <= FEW_MATCHES * math.sqrt(wanted) or await _is_past(session, parameters)


async def _is_past(session: Session, parameters: Parameters) -> bool:
    """Whether going back in time from now would pass over many events that are later than
    `as_of`."""
    as_of = parameters["as_of"]
    return as_of is not None and not await session.value(bool, "is_recent", as_of=as_of, few=RECENT)


async def _expect(session: Session, parameters: Parameters) -> int:
    given = await _by_index(session, parameters)
    name = "expected_matches" if given["latest_at"] is None else "expected_matches_as_of"
    return await session.expect(name, **given)


class _Search:
    """The words of one query among the events that pass its filters."""

    def __init__(self, asked: Asked, filters: Parameters, statistics: Statistics) -> None:
        self._asked, self._filters, self._statistics = asked, filters, statistics
        lexemes = sorted(lexemes_of(asked.each_word), key=statistics.weight, reverse=True)
        self._lexemes: Sequence[str] = lexemes

    @property
    def words(self) -> Parameters:
        """The words that events are ranked by."""
        each_word = [quoted(lexeme) for lexeme in self._lexemes]
        weights = [self._statistics.weight(lexeme) for lexeme in self._lexemes]
        return {
            "each_word": each_word,
            "weights": weights,
            "any_word": " | ".join(each_word),
            "ranked": RANKED_MATCHES,
        }

    def matches(self, parameters: Parameters, total: int, promises: dict[str, float]) -> Matches:
        """`promises`: the promise of some events."""
        asked = self._asked
        enough = sum(self._statistics.weight(lexeme) for lexeme in self._lexemes) / 2
        answering = sum(promise > enough for promise in promises.values())
        if asked.to_the_letter or not promises:
            answering = total
        ranked = sorted(promises, key=lambda key: -promises[key])
        return Matches(asked, parameters, total, ranked, answering)

    def parameters(self) -> Parameters:
        if self._asked.is_open_ended:
            return {**self._filters, "words": None, "letters": self._asked.words}
        return self.narrowed_to(self._asked.words)

    def narrowed_to(self, words: str | None) -> Parameters:
        """The filters, with other words than those of the query."""
        indexed, letters = by_index(words) if words else (None, None)
        return {**self._filters, "words": indexed, "letters": letters}

    async def count(self, runtime: Runtime) -> int:
        async def number(parameters: Parameters) -> int:
            async with runtime.database.session() as session:
                return await count(session, parameters)

        if self._asked.all_but is None:
            return await number(self.parameters())
        every, others = await asyncio.gather(
            number(self._filters), number(self.narrowed_to(self._asked.all_but))
        )
        return every - others

    async def best(self, session: Session, likely: int) -> dict[str, float]:
        """The most promising of the number of matches that Postgres expects."""
        promises: dict[str, float] = {}
        for narrower, looked_at in self._narrower():
            parameters = self.narrowed_to(f"({self._asked.words}) & ({narrower})")
            expected = await _expect(session, parameters)
            promises |= await self._newest(session, parameters, expected, looked_at)
            if len(promises) >= _ENOUGH:
                break
        if len(promises) < _ENOUGH:
            promises |= await self._newest(session, self.parameters(), likely, RANKED_MATCHES)
        return promises

    def _narrower(self) -> list[tuple[str, int]]:
        """Narrower queries for the most promising of very many matches, and how many matches of
        each are read: events with all of the words have the same promise."""
        if self._asked.to_the_letter or len(self._lexemes) < 2:
            return []
        rare, followed = [], 0.0
        for lexeme in self._lexemes:
            followed += self._statistics.frequencies.get(lexeme, 0.0)
            if followed > RARE:
                break
            rare.append(quoted(lexeme))
        every = " & ".join(map(quoted, self._lexemes[:_RAREST]))
        with_all = [(every, RANKED_MATCHES)]
        return [(" | ".join(rare), LOOKED_AT), *with_all] if rare else with_all

    async def _newest(
        self, session: Session, parameters: Parameters, likely: int, looked_at: int
    ) -> dict[str, float]:
        """The most promising of the newest matches, with their promise. Postgres' estimate of the
        number may be wrong for words that seldom or never occur together."""
        open_ended = self._asked.is_open_ended

        async def ranked(query: str, parameters: Parameters) -> dict[str, float]:
            best = await session.only(Promising, query, **self.words, **parameters)
            return dict(zip(best.ids, best.promises, strict=True))

        passing = _without_index(parameters)
        if not await _few(session, parameters, likely, RANKED_MATCHES, open_ended):
            last = await _looked_back(session, parameters, likely)
            promises = await ranked(
                "ranked_of_last", {**passing, "last": last, "limit": RANKED_MATCHES}
            )
            if len(promises) == RANKED_MATCHES or open_ended:
                return promises
            likely = 0
        if await _few(session, parameters, likely, RANKED_MATCHES, open_ended):
            given = await _by_index(session, parameters)
            name = "ranked_of_few" if given["latest_at"] is None else "ranked_of_few_as_of"
            return await ranked(name, {**given, "limit": looked_at})
        return await ranked("ranked_of_many", {**passing, "limit": RANKED_MATCHES})


def by_index(words: str) -> tuple[str | None, str | None]:
    """The part of a tsquery that the index finds, and the part that must be checked in each event:
    the index does not know phrases. Excluded words cannot be looked up."""
    if not _PHRASE.search(words):
        return words, None
    if "!" in words:
        return " | ".join(map(quoted, lexemes_of([words]))), words
    return _PHRASE.sub("&", words), words


async def _by_index(session: Session, parameters: Parameters) -> Parameters:
    """With `latest_at`, if indexes should find the events of the moment `as_of`. Of few matches,
    each is looked up."""
    if parameters["as_of"] is not None:
        likely = await session.expect("expected_matches", **{**parameters, "as_of": None})
        if likely > LOOKED_UP:
            return _as_of(parameters)
    return {**parameters, "latest_at": None}


def _as_of(parameters: Parameters) -> Parameters:
    return {**parameters, "as_of": None, "latest_at": parameters["as_of"]}


def _without_index(parameters: Parameters) -> Parameters:
    """For going back in time: the words are checked in each event, and its audience is in its
    row."""
    letters = parameters["letters"] or parameters["words"]
    return {**parameters, "words": None, "letters": letters, "audience_facets": None}


async def _looked_back(session: Session, parameters: Parameters, likely: int) -> int:
    names = ("words", "letters", "facets", "actor_facets", "audience_facets", "subject", "as_of")
    passed = dict.fromkeys(names)
    events = await session.expect("expected_matches", **{**parameters, **passed})
    return min(LOOKED_BACK, _PATIENCE * RANKED_MATCHES * max(events // max(likely, 1), 1))
