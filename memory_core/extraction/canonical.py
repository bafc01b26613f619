"""Canonicalisation: every occurrence told once.

Code merges what certainly is the same: chunks overlap, so the same words may be found twice. What
plausibly is the same goes, in blocks, to the grouper, which only says which belong together.
Merging itself is code, so nothing can be invented and nothing lost.
"""

from collections.abc import Sequence
from itertools import combinations

from rapidfuzz import fuzz

from memory_core.extraction.model import (
    Actor,
    CallLog,
    CanonicalEvent,
    ChunkEvent,
    Entity,
    Evidence,
    Grouper,
)

# The same category, and spans that share at least this much of their union: the same sentence.
_SAME_SPAN = 0.8
# Narratives this alike (0 to 100) may tell of one occurrence; less will do when subject and
# actors agree as well.
_ALIKE = 72.0
_ALIKE_WITH_SAME_SUBJECT = 52.0
# A long document asks at most one merge question per so many chunks.
_CHUNKS_PER_QUESTION = 10


async def canonicalise(
    events: Sequence[ChunkEvent],
    entities: Sequence[Entity],
    *,
    chunks: int,
    grouper: Grouper | None,
    log: CallLog,
) -> list[CanonicalEvent]:
    """In the order of their evidence. No question is asked about a one-chunk document."""
    groups = _Groups(events)
    _join_same_spans(groups, events)
    if grouper is not None and chunks > 1:
        blocks = _plausible_blocks(groups.heads())
        if blocks:
            answer = await grouper.group(
                blocks, max_calls=max(1, chunks // _CHUNKS_PER_QUESTION), log=log
            )
            _join_as_told(groups, answer, {event.id for block in blocks for event in block})
    names = _names(entities)
    merged = [_merge(members, names) for members in groups.members()]
    return sorted(merged, key=lambda event: event.evidence[0].start_char)


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
        """One event for each set: its most detailed."""
        return [max(members, key=_detail) for members in self.members()]


def _join_same_spans(groups: _Groups, events: Sequence[ChunkEvent]) -> None:
    """A sweep over spans in order: only neighbours can share text."""
    ordered = sorted(events, key=lambda event: event.evidence.start_char)
    for position, event in enumerate(ordered):
        for other in ordered[position + 1 :]:
            if other.evidence.start_char >= event.evidence.end_char:
                break
            if event.category == other.category and _overlap(event, other) >= _SAME_SPAN:
                groups.join(event.id, other.id)


def _overlap(a: ChunkEvent, b: ChunkEvent) -> float:
    first, second = a.evidence, b.evidence
    shared = min(first.end_char, second.end_char) - max(first.start_char, second.start_char)
    union = max(first.end_char, second.end_char) - min(first.start_char, second.start_char)
    return max(shared, 0) / union


def _plausible_blocks(events: Sequence[ChunkEvent]) -> list[list[ChunkEvent]]:
    """Sets of events, each of one category and more than one chunk, that may be the same."""
    blocks = _Groups(events)
    by_category: dict[str, list[ChunkEvent]] = {}
    for event in events:
        by_category.setdefault(event.category, []).append(event)
    for members in by_category.values():
        for a, b in combinations(members, 2):
            if a.chunk_index != b.chunk_index and _plausible(a, b):
                blocks.join(a.id, b.id)
    return [block for block in blocks.members() if len(block) > 1]


def _plausible(a: ChunkEvent, b: ChunkEvent) -> bool:
    if a.event_time and b.event_time and a.event_time.date() != b.event_time.date():
        return False
    bar = _ALIKE_WITH_SAME_SUBJECT if _same_subject_and_actor(a, b) else _ALIKE
    return fuzz.token_set_ratio(a.narrative, b.narrative, score_cutoff=bar) >= bar


def _same_subject_and_actor(a: ChunkEvent, b: ChunkEvent) -> bool:
    if a.subject.ref.casefold() != b.subject.ref.casefold():
        return False
    first = {actor.ref.casefold() for actor in a.actors}
    second = {actor.ref.casefold() for actor in b.actors}
    return bool(first & second) or not (first or second)


def _join_as_told(groups: _Groups, told: Sequence[Sequence[str]], asked: set[str]) -> None:
    """Ids that were not asked about, ids in two groups and groups across categories are ignored."""
    times_named: dict[str, int] = {}
    for group in told:
        for id_ in set(group):
            times_named[id_] = times_named.get(id_, 0) + 1
    for group in told:
        members = [id_ for id_ in group if id_ in asked and times_named[id_] == 1]
        if len({groups.events[id_].category for id_ in members}) == 1:
            for other in members[1:]:
                groups.join(members[0], other)


def _merge(members: Sequence[ChunkEvent], names: dict[str, str]) -> CanonicalEvent:
    ordered = sorted(members, key=_place)
    best = max(ordered, key=_detail)
    return CanonicalEvent(
        category=best.category,
        subject=best.subject,
        narrative=best.narrative,
        confidence=max(event.confidence for event in ordered),
        evidence=_united(ordered),
        members=tuple(event.id for event in ordered),
        actors=_actors(ordered, names),
        event_time=best.event_time or next((e.event_time for e in ordered if e.event_time), None),
    )


def _place(event: ChunkEvent) -> tuple[int, int, int]:
    return event.evidence.start_char, event.evidence.end_char, event.chunk_index


def _detail(event: ChunkEvent) -> tuple[int, float]:
    return len(event.narrative), event.confidence


def _united(ordered: Sequence[ChunkEvent]) -> tuple[Evidence, ...]:
    """Each span once; of the same span found in two chunks, the first."""
    spans: dict[tuple[int, int], Evidence] = {}
    for event in ordered:
        evidence = event.evidence
        spans.setdefault((evidence.start_char, evidence.end_char), evidence)
    return tuple(spans.values())


def _names(entities: Sequence[Entity]) -> dict[str, str]:
    """How a document's own words resolve a name: alias to full name, where that is unambiguous."""
    meant: dict[str, set[str]] = {}
    for entity in entities:
        for name in (entity.name, *entity.aliases):
            meant.setdefault(name.casefold(), set()).add(entity.name)
    return {name: min(full) for name, full in meant.items() if len(full) == 1}


def _actors(ordered: Sequence[ChunkEvent], names: dict[str, str]) -> tuple[Actor, ...]:
    """Each person once, with the first role told of."""
    actors: dict[str, Actor] = {}
    for event in ordered:
        for actor in event.actors:
            ref = names.get(actor.ref.casefold(), actor.ref)
            actors.setdefault(ref.casefold(), Actor(ref, actor.role))
    return tuple(actors.values())
