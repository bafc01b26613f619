"""What changed between two revisions, in events and in text."""

import difflib
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from rapidfuzz import fuzz

from memory_core.artifacts import reading as artifacts
from memory_core.database import Row
from memory_core.errors import InvalidInput
from memory_core.events.reading import RevisionEvents, list_for_revision
from memory_core.runtime import Runtime

# Narratives this alike (0 to 100) tell of the same occurrence; the same quote needs less.
_SAME_OCCURRENCE = 78.0
_SAME_OCCURRENCE_BY_QUOTE = 92.0
_COMPARED_FIELDS = ("narrative", "event_time", "subject_json", "actors_json", "confidence")
_CONTEXT_LINES = 2
_DIFF_LINES = 400
# difflib takes quadratic time on texts that have little in common.
_DIFFABLE_LINES = 20_000


@dataclass(frozen=True, slots=True)
class ChangedEvent:
    before: Row
    after: Row
    fields: dict[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class EventDiff:
    from_revision: str
    to_revision: str
    added: list[Row]
    removed: list[Row]
    changed: list[ChangedEvent]
    kept: list[Row]
    evidence: dict[UUID, list[Row]]
    text_diff: str
    statuses: dict[str, str | None] = field(default_factory=dict)


async def diff_revisions(
    runtime: Runtime, artifact_uid: str, from_revision: str | None, to_revision: str | None
) -> EventDiff:
    """By default from the revision before the latest to the latest."""
    source, target = await _choose(runtime, artifact_uid, from_revision, to_revision)
    before = await list_for_revision(runtime, artifact_uid, source, include_evidence=True)
    after = await list_for_revision(runtime, artifact_uid, target, include_evidence=True)
    pairs, removed, added = match(before, after)
    changed, kept = [], []
    for old, new in pairs:
        fields = differences(old, new, before, after)
        if fields:
            changed.append(ChangedEvent(old, new, fields))
        else:
            kept.append(new)
    return EventDiff(
        from_revision=source,
        to_revision=target,
        added=added,
        removed=removed,
        changed=changed,
        kept=kept,
        evidence={**before.evidence, **after.evidence},
        text_diff=await _text_diff(runtime, artifact_uid, source, target),
        statuses={
            source: before.revision["job_status"],
            target: after.revision["job_status"],
        },
    )


async def _choose(
    runtime: Runtime, uid: str, from_revision: str | None, to_revision: str | None
) -> tuple[str, str]:
    revisions = await artifacts.list_revisions(runtime, uid)
    # By when each was last the latest: a restored revision is newer than the one it replaced.
    order = [row["revision_id"] for row in sorted(revisions, key=lambda row: row["latest_since"])]
    for revision in (from_revision, to_revision):
        if revision is not None and revision not in order:
            raise InvalidInput(
                f"{revision!r} is not a revision of {uid!r}. Its revisions: {', '.join(order)}.",
                details={"parameter": "from_revision or to_revision", "allowed": order},
            )
    target = to_revision or (order[-1] if order[-1] != from_revision else order[0])
    if from_revision is not None:
        return from_revision, target
    earlier = order[: order.index(target)]
    if not earlier:
        raise InvalidInput(
            f"{uid!r} has no revision before {target!r} to compare with.",
            details={"parameter": "from_revision", "allowed": order},
        )
    return earlier[-1], target


def match(
    before: RevisionEvents, after: RevisionEvents
) -> tuple[list[tuple[Row, Row]], list[Row], list[Row]]:
    """Pairs of the same occurrence, best first; what is left was removed or added."""
    scored = []
    for old in before.events:
        for new in after.events:
            score = _likeness(old, new, before, after)
            if score:
                scored.append((score, old, new))
    scored.sort(key=lambda item: -item[0])
    pairs: list[tuple[Row, Row]] = []
    # Apart from each other: two extractions of one revision give the same ids to the same spans.
    told: set[UUID] = set()
    retold: set[UUID] = set()
    for _, old, new in scored:
        if old["event_id"] not in told and new["event_id"] not in retold:
            pairs.append((old, new))
            told.add(old["event_id"])
            retold.add(new["event_id"])
    removed = [row for row in before.events if row["event_id"] not in told]
    added = [row for row in after.events if row["event_id"] not in retold]
    return pairs, removed, added


def _likeness(old: Row, new: Row, before: RevisionEvents, after: RevisionEvents) -> float:
    if old["category"] != new["category"]:
        return 0.0
    if _quotes(old, before) & _quotes(new, after):
        return 101.0
    narrative = fuzz.token_sort_ratio(old["narrative"], new["narrative"])
    if narrative >= _SAME_OCCURRENCE:
        return narrative
    for first in _quotes(old, before):
        for second in _quotes(new, after):
            if fuzz.ratio(first, second, score_cutoff=_SAME_OCCURRENCE_BY_QUOTE):
                return narrative
    return 0.0


def _quotes(event: Row, revision: RevisionEvents) -> set[str]:
    rows = revision.evidence[event["event_id"]]
    return {" ".join(row["quote"].split()) for row in rows}


def differences(
    old: Row, new: Row, before: RevisionEvents, after: RevisionEvents
) -> dict[str, tuple[Any, Any]]:
    fields = {
        name.removesuffix("_json"): (old[name], new[name])
        for name in _COMPARED_FIELDS
        if old[name] != new[name]
    }
    first, second = _quotes(old, before), _quotes(new, after)
    if first != second:
        fields["quotes"] = (sorted(first), sorted(second))
    return fields


async def _text_diff(runtime: Runtime, uid: str, source: str, target: str) -> str:
    texts = []
    for revision in (source, target):
        stored = await artifacts.get_revision(runtime, artifact_uid=uid, revision_id=revision)
        texts.append((stored.content or "").splitlines())
    if max(map(len, texts)) > _DIFFABLE_LINES:
        return f"(not shown: a text has more than {_DIFFABLE_LINES:,} lines)"
    lines = list(
        difflib.unified_diff(texts[0], texts[1], source, target, lineterm="", n=_CONTEXT_LINES)
    )
    if len(lines) > _DIFF_LINES:
        left = len(lines) - _DIFF_LINES
        lines = [*lines[:_DIFF_LINES], f"… {left} more lines"]
    return "\n".join(lines)
