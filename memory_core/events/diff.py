"""What changed between two revisions, in events and in text."""

import asyncio
import difflib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from rapidfuzz import fuzz, process

from memory_core.artifacts import stored_artifacts as artifacts
from memory_core.events.stored_events import ProvedEvents, RevisionEvents, list_for_revision
from memory_core.kernel.errors import InvalidInput
from memory_core.runtime import Runtime
from memory_core.search.event import Event, StoredEvidence

# Narratives with this similarity (0 to 100) tell of the same occurrence; with an equal quote, less
# is enough.
_SAME_OCCURRENCE = 78.0
_SAME_OCCURRENCE_BY_QUOTE = 92.0
# Limit per category and revision. Beyond it, events are matched only by equality.
COMPARED_EVENTS = 3_000
# Limit per event, for events with the same quote.
_COMPARED_BY_QUOTE = 100
# How many events of each kind (added, removed, changed, kept) an answer shows.
_SHOWN = 300
_COMPARED_FIELDS = (
    *("narrative", "event_time", "due_time", "subject_json", "actors_json", "confidence"),
)
_CONTEXT_LINES = 2
_DIFF_LINES = 400
_LINE_CHARS = 500
_DIFF_CHARS = 40_000
# difflib takes quadratic time on texts that have little in common.
_DIFFABLE_LINES = 20_000

Pairs = list[tuple[Event, Event]]


@dataclass(frozen=True, slots=True)
class ChangedEvent:
    before: Event
    after: Event
    fields: dict[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class EventDiff:
    from_revision: str
    to_revision: str
    added: list[Event]
    removed: list[Event]
    changed: list[ChangedEvent]
    kept: list[Event]
    evidence: dict[UUID, list[StoredEvidence]]
    text_diff: str
    statuses: dict[str, str | None] = field(default_factory=dict)
    # Why there is nothing to compare, or that newer events are still to come.
    explanation: str | None = None


async def diff_revisions(
    runtime: Runtime, artifact_uid: str, from_revision: str | None, to_revision: str | None
) -> EventDiff:
    """By default, compares the revision before the latest with the latest."""
    source, target = await _choose(runtime, artifact_uid, from_revision, to_revision)
    before = await _events(runtime, artifact_uid, source)
    after = await _events(runtime, artifact_uid, target)
    explanation = _explanation(before, after)
    diff = EventDiff(
        from_revision=source,
        to_revision=target,
        added=[],
        removed=[],
        changed=[],
        kept=[],
        evidence={**before.evidence, **after.evidence},
        text_diff=await _text_diff(runtime, artifact_uid, source, target),
        statuses={
            source: before.revision.job_status,
            target: after.revision.job_status,
        },
        explanation=explanation,
    )
    if not (_is_extracted(before) and _is_extracted(after)):
        return diff
    # Thousands of events take seconds, so the comparison runs in a thread.
    return _bounded(await asyncio.to_thread(_compare, diff, before, after))


def _compare(diff: EventDiff, before: RevisionEvents, after: RevisionEvents) -> EventDiff:
    pairs, removed, added = match(before, after)
    changed: list[ChangedEvent] = []
    kept: list[Event] = []
    for old, new in pairs:
        fields = differences(old, new, before, after)
        if fields:
            changed.append(ChangedEvent(old, new, fields))
        else:
            kept.append(new)
    return replace(diff, added=added, removed=removed, changed=changed, kept=kept)


def _bounded(diff: EventDiff) -> EventDiff:
    """Limit the answer to a readable size, and say what is left out."""
    parts: dict[str, Any] = {
        name: getattr(diff, name) for name in ("added", "removed", "changed", "kept")
    }
    left_out = [
        f"Of {len(events)} events {name} the first {_SHOWN} are shown."
        for name, events in parts.items()
        if len(events) > _SHOWN
    ]
    if not left_out:
        return diff
    explanation = " ".join(filter(None, [diff.explanation, *left_out]))
    shown = {name: events[:_SHOWN] for name, events in parts.items()}
    return replace(diff, **shown, explanation=explanation)


async def _events(runtime: Runtime, uid: str, revision_id: str) -> RevisionEvents:
    return await list_for_revision(runtime, uid, revision_id, include_evidence=True)


def _is_extracted(revision: RevisionEvents) -> bool:
    """Old events stay while their revision is extracted again, but a revision without events may
    not be extracted yet."""
    return revision.revision.job_status == "DONE" or bool(revision.events)


def _explanation(before: RevisionEvents, after: RevisionEvents) -> str | None:
    lines = []
    for side in (before, after):
        name, status = side.revision.revision_id, side.revision.job_status
        if status == "DONE":
            continue
        if _is_extracted(side):
            lines.append(f"{name} is being extracted again ({status}): these are its old events.")
        else:
            lines.append(
                f"{name} has no events yet ({status or 'no job'}), so only the text is compared; "
                "job_status says how its extraction goes."
            )
    return " ".join(dict.fromkeys(lines)) or None


async def _choose(
    runtime: Runtime, uid: str, from_revision: str | None, to_revision: str | None
) -> tuple[str, str]:
    revisions = await artifacts.list_revisions(runtime, uid)
    # Ordered by when each was last the latest: a restored revision is newer than the one it
    # replaced.
    order = [row.revision_id for row in sorted(revisions, key=lambda row: row.latest_since)]
    for revision in (from_revision, to_revision):
        if revision is not None and revision not in order:
            raise InvalidInput(
                f"{revision!r} is not a revision of {uid!r}. Its revisions: {', '.join(order)}.",
                details={"parameter": "from_revision or to_revision", "allowed": order},
            )
    target = to_revision or order[-1]
    if from_revision is not None:
        if to_revision is None and from_revision == target:
            raise InvalidInput(
                f"{target!r} is the latest revision of {uid!r}: there is none after it. Give "
                "to_revision as well, or neither for what changed last.",
                details={"parameter": "from_revision", "allowed": order[:-1]},
            )
        return from_revision, target
    earlier = order[: order.index(target)]
    if not earlier:
        # A revision restored since then existed before the target as well, so the order of creation
        # counts.
        first = [row.revision_id for row in revisions]
        earlier = first[: first.index(target)]
    if not earlier:
        raise InvalidInput(
            f"{uid!r} has no revision before {target!r} to compare with.",
            details={"parameter": "from_revision", "allowed": order},
        )
    return earlier[-1], target


def match(before: ProvedEvents, after: ProvedEvents) -> tuple[Pairs, list[Event], list[Event]]:
    """Pairs of events about the same occurrence, best first, then the removed and the added
    events."""
    matching = _Matching(before, after)
    matching.pair_equal()
    for category in sorted({row.category for row in before.events}):
        matching.pair_alike(category)
    return matching.pairs, matching.left(before), matching.left(after)


class _Matching:
    """Pairs events in steps of decreasing equality: everything equal, an equal quote, a similar
    narrative, a similar quote. A later step always scores less than an earlier one, so it skips
    events that are already paired."""

    def __init__(self, before: ProvedEvents, after: ProvedEvents) -> None:
        self.before, self.after = before, after
        self.pairs: Pairs = []
        # Separate sets: two extractions of one revision give the same ids to the same spans.
        self._paired: dict[int, set[UUID]] = {id(before): set(), id(after): set()}

    def left(self, revision: ProvedEvents, category: str | None = None) -> list[Event]:
        paired = self._paired[id(revision)]
        return [
            row
            for row in revision.events
            if row.event_id not in paired and category in (None, row.category)
        ]

    def pair_equal(self) -> None:
        waiting: dict[tuple[Any, ...], list[Event]] = defaultdict(list)
        for row in reversed(self.before.events):
            waiting[_contents(row, self.before)].append(row)
        for row in self.after.events:
            same = waiting[_contents(row, self.after)]
            if same:
                self._pair([(0.0, same.pop(), row)])

    def pair_alike(self, category: str) -> None:
        for step in (self._by_quote, self._by_narrative, self._by_near_quote):
            old = self.left(self.before, category)[:COMPARED_EVENTS]
            new = self.left(self.after, category)[:COMPARED_EVENTS]
            if not old or not new:
                return
            self._pair(step(old, new))

    def _by_quote(self, old: list[Event], new: list[Event]) -> Iterable[tuple[float, Event, Event]]:
        """Many events may quote the same "Approved.", so their narratives decide."""
        numbers: dict[str, list[int]] = defaultdict(list)
        for place, row in enumerate(new):
            for quote in _quotes(row, self.after):
                numbers[quote].append(place)
        sharing = [
            (row, places)
            for row in old
            if (
                places := {p for quote in _quotes(row, self.before) for p in numbers.get(quote, ())}
            )
        ]
        for row, places in sharing:
            for place in sorted(places)[:_COMPARED_BY_QUOTE]:
                yield _alike(row, new[place]), row, new[place]

    def _by_narrative(
        self, old: list[Event], new: list[Event]
    ) -> Iterable[tuple[float, Event, Event]]:
        # What token_sort_ratio does for each pair, done once per narrative.
        scores = process.cdist(
            [_in_order(row) for row in old],
            [_in_order(row) for row in new],
            scorer=fuzz.ratio,
            score_cutoff=_SAME_OCCURRENCE,
        )
        for first, second in zip(*scores.nonzero(), strict=True):
            yield float(scores[first, second]), old[first], new[second]

    def _by_near_quote(
        self, old: list[Event], new: list[Event]
    ) -> Iterable[tuple[float, Event, Event]]:
        first = [(quote, row) for row in old for quote in _quotes(row, self.before)]
        second = [(quote, row) for row in new for quote in _quotes(row, self.after)]
        first, second = first[:COMPARED_EVENTS], second[:COMPARED_EVENTS]
        if not first or not second:
            return
        scores = process.cdist(
            [quote for quote, _ in first],
            [quote for quote, _ in second],
            scorer=fuzz.ratio,
            score_cutoff=_SAME_OCCURRENCE_BY_QUOTE,
        )
        for one, other in zip(*scores.nonzero(), strict=True):
            yield _alike(first[one][1], second[other][1]), first[one][1], second[other][1]

    def _pair(self, scored: Iterable[tuple[float, Event, Event]]) -> None:
        paired_before, paired_after = self._paired[id(self.before)], self._paired[id(self.after)]
        for _, old, new in sorted(scored, key=lambda item: -item[0]):
            if old.event_id not in paired_before and new.event_id not in paired_after:
                self.pairs.append((old, new))
                paired_before.add(old.event_id)
                paired_after.add(new.event_id)


def _alike(old: Event, new: Event) -> float:
    return fuzz.ratio(_in_order(old), _in_order(new))


def _in_order(row: Event) -> str:
    return " ".join(sorted(row.narrative.split()))


def _contents(row: Event, revision: ProvedEvents) -> tuple[Any, ...]:
    return row.category, row.narrative, frozenset(_quotes(row, revision))


def _quotes(event: Event, revision: ProvedEvents) -> set[str]:
    rows = revision.evidence[event.event_id]
    return {" ".join(row.quote.split()) for row in rows}


def differences(
    old: Event, new: Event, before: ProvedEvents, after: ProvedEvents
) -> dict[str, tuple[Any, Any]]:
    fields = {
        name.removesuffix("_json"): (getattr(old, name), getattr(new, name))
        for name in _COMPARED_FIELDS
        if _compared(getattr(old, name)) != _compared(getattr(new, name))
    }
    first, second = _quotes(old, before), _quotes(new, after)
    if first != second:
        fields["quotes"] = (sorted(first), sorted(second))
    return fields


def _compared(value: Any) -> Any:
    """The order of names is ignored."""
    if isinstance(value, list):
        return sorted(value, key=lambda actor: (actor.get("ref", ""), actor.get("role", "")))
    return value


async def _text_diff(runtime: Runtime, uid: str, source: str, target: str) -> str:
    texts = []
    for revision in (source, target):
        stored = await artifacts.get_revision(runtime, artifact_uid=uid, revision_id=revision)
        texts.append((stored.content or "").splitlines())
    if max(map(len, texts)) > _DIFFABLE_LINES:
        return f"(not shown: a text has more than {_DIFFABLE_LINES:,} lines)"
    return await asyncio.to_thread(_diff_of, texts[0], texts[1], source, target)


def _diff_of(before: list[str], after: list[str], source: str, target: str) -> str:
    """The first lines of the diff, each cut: a document may be one line of a million characters."""
    lines = list(difflib.unified_diff(before, after, source, target, lineterm="", n=_CONTEXT_LINES))
    shown: list[str] = []
    left = _DIFF_CHARS
    for line in lines[:_DIFF_LINES]:
        if len(line) > _LINE_CHARS:
            line = f"{line[:_LINE_CHARS]}… ({len(line) - _LINE_CHARS:,} more characters)"
        if len(line) > left:
            break
        shown.append(line)
        left -= len(line) + 1
    if len(shown) < len(lines):
        shown.append(f"… {len(lines) - len(shown)} more lines")
    return "\n".join(shown)
