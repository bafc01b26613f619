"""Canonicalisation: every occurrence becomes one event.

Code merges events that are certainly the same: chunks overlap, so one sentence may be extracted
twice. Events that may be the same are sent, in blocks, to the grouper, which only says which of
them belong together. Code does the merging, so that nothing is invented or lost.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from rapidfuzz import fuzz

from memory_core.extraction.aliases import is_full_name
from memory_core.extraction.ledger import Ledger
from memory_core.extraction.model import (
    Actor,
    CanonicalEvent,
    ChunkEvent,
    Due,
    Entity,
    Evidence,
    Grouper,
)

# Events of one category whose spans share at least this part of their union tell the same sentence.
_SAME_SPAN = 0.8
# Narratives with this similarity (0 to 100) may tell of one occurrence. A lower value is enough
# when subject and actors agree as well.
_ALIKE = 72.0
_ALIKE_WITH_SAME_SUBJECT = 52.0
# Two events of one chunk and sentence are repetitions when their words are this similar.
_REPEATED = 90.0
# A word makes two events worth comparing only if at most this many events contain it.
_FEW = 50
_WORD = re.compile(r"\w+")
# How many following events an event is compared with: a hostile answer may quote one sentence
# thousands of times.
_NEIGHBOURS = 200
# With more events than this, the comparison runs in a thread, so that other documents do not wait.
_MANY = 200
# The number of chunks of a long document per merge question.
_CHUNKS_PER_QUESTION = 10


async def canonicalise(
    events: Sequence[ChunkEvent],
    entities: Sequence[Entity],
    *,
    chunks: int,
    grouper: Grouper | None,
    answers_since: datetime | None = None,
    ledger: Ledger,
) -> list[CanonicalEvent]:
    """The canonical events, in the order of their evidence. A one-chunk document needs no
    question."""
    groups = _Groups(events)
    if len(events) <= _MANY:
        blocks = _join_certain(groups, chunks)
    else:  # other documents and the heartbeat must run meanwhile
        blocks = await asyncio.to_thread(_join_certain, groups, chunks)
    if grouper is not None and blocks:
        most = max(1, chunks // _CHUNKS_PER_QUESTION)
        answer = await grouper.group(
            blocks, max_calls=most, answers_since=answers_since, ledger=ledger
        )
        _join_answered(groups, answer, {event.id for block in blocks for event in block})
    names = _names(entities)
    merged = [_merge(members, names) for members in groups.members()]
    return _numbered_twins(sorted(merged, key=lambda event: event.evidence[0].start_char))


class _Groups:
    """Disjoint sets of events."""

    def __init__(self, events: Sequence[ChunkEvent]) -> None:
        self.events = {event.id: event for event in events}
        self._parent = {event.id: event.id for event in events}

    def find(self, id_: str) -> str:
        while self._parent[id_] != id_:
            self._parent[id_] = self._parent[self._parent[id_]]
            id_ = self._parent[id_]
        return id_

    def join(self, first: str, second: str) -> None:
        a, b = self.find(first), self.find(second)
        if a != b:
            self._parent[b] = a

    def members(self) -> list[list[ChunkEvent]]:
        sets: dict[str, list[ChunkEvent]] = {}
        for id_, event in self.events.items():
            sets.setdefault(self.find(id_), []).append(event)
        return list(sets.values())

    def heads(self) -> list[ChunkEvent]:
        """The most detailed event of each set."""
        return [max(members, key=_detail) for members in self.members()]


def _join_certain(groups: _Groups, chunks: int) -> list[list[ChunkEvent]]:
    """Join events that are certainly the same. Returns the blocks to ask the grouper about."""
    for same in _same_spans(list(groups.events.values())):
        _join_same_occurrences(groups, same)
    return _plausible_blocks(groups.heads()) if chunks > 1 else []


def _same_spans(events: Sequence[ChunkEvent]) -> list[list[ChunkEvent]]:
    """Sets of events with the same span, by a sweep over the spans: only neighbours can overlap."""
    spans = _Groups(events)
    ordered = sorted(events, key=_place)
    for position, event in enumerate(ordered):
        for other in islice(ordered, position + 1, position + 1 + _NEIGHBOURS):
            if other.evidence.start_char >= event.evidence.end_char:
                break
            if event.category == other.category and _overlap(event, other) >= _SAME_SPAN:
                spans.join(event.id, other.id)
    return [span for span in spans.members() if len(span) > 1]


def _join_same_occurrences(groups: _Groups, events: Sequence[ChunkEvent]) -> None:
    """Join events that overlapping chunks extracted twice. One sentence may also tell of two
    occurrences ("Alice will write it and Bob will test it"): then people and words decide."""
    once = max(Counter(event.chunk_index for event in events).values()) == 1
    occurrences: list[list[ChunkEvent]] = []
    for event in sorted(events, key=_place):
        likely = max(
            occurrences, key=lambda occurrence: _likeness(event, occurrence[0]), default=None
        )
        if likely is not None and _tells_the_same(event, likely, once=once):
            groups.join(likely[0].id, event.id)
            likely.append(event)
        else:
            occurrences.append([event])


def _tells_the_same(event: ChunkEvent, others: Sequence[ChunkEvent], *, once: bool) -> bool:
    """Two events of one chunk and sentence are different occurrences, unless they say the same."""
    if once:
        return not _other_people(event, others[0])
    repeats = any(other.chunk_index == event.chunk_index for other in others)
    return _likeness(event, others[0]) >= (_REPEATED if repeats else _ALIKE_WITH_SAME_SUBJECT)


def _likeness(a: ChunkEvent, b: ChunkEvent) -> float:
    """The similarity of two events, 0 to 100."""
    return 0.0 if _other_people(a, b) else fuzz.token_sort_ratio(a.narrative, b.narrative)


def _other_people(a: ChunkEvent, b: ChunkEvent) -> bool:
    """Whether both events name actors and share none of them."""
    first, second = (set(_WORD.findall(" ".join(_people(event)))) for event in (a, b))
    return bool(first and second) and not first & second


def _people(event: ChunkEvent) -> set[str]:
    return {actor.ref.casefold() for actor in event.actors}


def _overlap(a: ChunkEvent, b: ChunkEvent) -> float:
    first, second = a.evidence, b.evidence
    shared = min(first.end_char, second.end_char) - max(first.start_char, second.start_char)
    union = max(first.end_char, second.end_char) - min(first.start_char, second.start_char)
    return max(shared, 0) / union


def _plausible_blocks(events: Sequence[ChunkEvent]) -> list[list[ChunkEvent]]:
    """Sets of events that may be the same. Each set has one category and events of several
    chunks."""
    blocks = _Groups(events)
    by_category: dict[str, list[ChunkEvent]] = {}
    for event in events:
        by_category.setdefault(event.category, []).append(event)
    for members in by_category.values():
        for a, b in _pairs_worth_comparing(members):
            if a.chunk_index != b.chunk_index and plausible(a, b):
                blocks.join(a.id, b.id)
    return [block for block in blocks.members() if len(block) > 1]


def _pairs_worth_comparing(
    events: Sequence[ChunkEvent],
) -> Iterator[tuple[ChunkEvent, ChunkEvent]]:
    """Pairs of events that share a rare word: comparing all pairs would take hours for a long
    document. In a small set of events every word is rare enough."""
    words = [
        set(_WORD.findall(f"{event.narrative} {event.subject.ref}".casefold())) for event in events
    ]
    having: dict[str, list[int]] = {}
    for number, event_words in enumerate(words):
        for word in event_words:
            having.setdefault(word, []).append(number)
    for number, event_words in enumerate(words):
        alike = (having[word] for word in event_words if len(having[word]) <= _FEW)
        for other in sorted({other for numbers in alike for other in numbers if other > number}):
            yield events[number], events[other]


def plausible(a: ChunkEvent, b: ChunkEvent) -> bool:
    if _on_other_days(a.event_time, b.event_time):
        return False
    if _on_other_days(a.due.time if a.due else None, b.due.time if b.due else None):
        return False
    bar = _ALIKE_WITH_SAME_SUBJECT if _same_subject_and_actor(a, b) else _ALIKE
    return fuzz.token_set_ratio(a.narrative, b.narrative, score_cutoff=bar) >= bar


def _on_other_days(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and one.date() != other.date()


def _same_subject_and_actor(a: ChunkEvent, b: ChunkEvent) -> bool:
    if a.subject.ref.casefold() != b.subject.ref.casefold():
        return False
    first, second = _people(a), _people(b)
    return bool(first & second) or not (first or second)


def _join_answered(groups: _Groups, answered: Sequence[Sequence[str]], asked: set[str]) -> None:
    """Join the groups of the answer. Ids that the question did not have, ids in two groups, and
    groups across categories are ignored."""
    times_named = Counter(id_ for group in answered for id_ in set(group))
    for group in answered:
        members = [id_ for id_ in group if id_ in asked and times_named[id_] == 1]
        if len({groups.events[id_].category for id_ in members}) == 1:
            for other in members[1:]:
                groups.join(members[0], other)


def _numbered_twins(events: Sequence[CanonicalEvent]) -> list[CanonicalEvent]:
    """Number the events of one category that begin with the same span by their contents, so that
    the same extraction always gives the same numbers."""
    sharing: dict[tuple[str, int, int], list[CanonicalEvent]] = {}
    for event in events:
        first = event.evidence[0]
        sharing.setdefault((event.category, first.start_char, first.end_char), []).append(event)
    twins = {
        event.members: number
        for same_span in sharing.values()
        for number, event in enumerate(sorted(same_span, key=_contents))
    }
    return [replace(event, twin=twins[event.members]) for event in events]


def _contents(event: CanonicalEvent) -> tuple[list[str], str, str]:
    return sorted(actor.ref for actor in event.actors), event.subject.ref, event.narrative


def _merge(members: Sequence[ChunkEvent], names: dict[str, str]) -> CanonicalEvent:
    ordered = sorted(members, key=_place)
    best = max(ordered, key=_detail)
    return CanonicalEvent(
        category=best.category,
        subject=best.subject,
        narrative=best.narrative,
        confidence=max(event.confidence for event in ordered),
        evidence=_merged_evidence(ordered),
        members=tuple(event.id for event in ordered),
        actors=_actors(ordered, names),
        event_time=best.event_time or next((e.event_time for e in ordered if e.event_time), None),
        due=_due([best, *ordered]),
    )


def _due(members: Sequence[ChunkEvent]) -> Due | None:
    """The first proved due date, or else the first."""
    given = [event.due for event in members if event.due]
    return next((due for due in given if due.quote), given[0] if given else None)


def _place(event: ChunkEvent) -> tuple[int, int, int]:
    return event.evidence.start_char, event.evidence.end_char, event.chunk_index


def _detail(event: ChunkEvent) -> tuple[int, float]:
    return len(event.narrative), event.confidence


def _merged_evidence(ordered: Sequence[ChunkEvent]) -> tuple[Evidence, ...]:
    """Each span once. Of equal spans from two chunks, the first is kept."""
    spans: dict[tuple[int, int], Evidence] = {}
    for event in ordered:
        evidence = event.evidence
        spans.setdefault((evidence.start_char, evidence.end_char), evidence)
    return tuple(spans.values())


def _names(entities: Sequence[Entity]) -> dict[str, str]:
    """Alias -> full name, where the document's own words make that unambiguous. An alias that is a
    full name itself may belong to another person, and is not resolved."""
    meant: dict[str, set[str]] = {}
    for entity in entities:
        short = [alias for alias in entity.aliases if not is_full_name(alias, entity.name)]
        for name in (entity.name, *short):
            meant.setdefault(name.casefold(), set()).add(entity.name)
    return {name: min(full) for name, full in meant.items() if len(full) == 1}


def _actors(ordered: Sequence[ChunkEvent], names: dict[str, str]) -> tuple[Actor, ...]:
    """Each person once, with the first role that an event gives."""
    actors: dict[str, Actor] = {}
    for event in ordered:
        for actor in event.actors:
            ref = names.get(actor.ref.casefold(), actor.ref)
            actors.setdefault(ref.casefold(), Actor(ref, actor.role))
    return tuple(actors.values())
