"""Two tellings of one revision: which events the new prompt keeps, changes, adds and loses."""

from dataclasses import asdict, dataclass
from typing import Any

from memory_core.events.diff import differences, match
from memory_core.events.identity import event_id
from memory_core.events.reading import RevisionEvents
from memory_core.kernel.database import Row
from memory_core.processing.extraction import Extraction

# An event of the new prompt that only tells a confidence otherwise is kept.
_UNIMPORTANT = frozenset({"confidence"})


@dataclass(frozen=True, slots=True)
class Comparison:
    kept: list[dict[str, Any]]
    changed: list[dict[str, Any]]
    added: list[dict[str, Any]]
    lost: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(before: RevisionEvents, after: RevisionEvents) -> Comparison:
    """The same occurrence is what `event_diff` takes for the same."""
    pairs, lost, added = match(before, after)
    kept, changed = [], []
    for old, new in pairs:
        fields = {
            name: [_plain(value) for value in values]
            for name, values in differences(old, new, before, after).items()
            if name not in _UNIMPORTANT
        }
        if fields:
            changed.append({**_shown(new, after), "fields": fields})
        else:
            kept.append(_shown(new, after))
    return Comparison(
        kept,
        changed,
        [_shown(row, after) for row in added],
        [_shown(row, before) for row in lost],
    )


def retold(extraction: Extraction) -> RevisionEvents:
    """What an extraction gives, in the form of stored events."""
    job = extraction.job
    events: list[Row] = []
    evidence = {}
    for event in extraction.events:
        id_ = event_id(job.artifact_uid, job.revision_id, event)
        events.append(
            {
                "event_id": id_,
                "category": event.category.value,
                "event_time": event.event_time,
                "due_time": event.due.time if event.due else None,
                "narrative": event.narrative,
                "subject_json": asdict(event.subject),
                "actors_json": [asdict(actor) for actor in event.actors],
                "confidence": event.confidence,
            }
        )
        evidence[id_] = [
            {"quote": item.quote, "start_char": item.start_char, "end_char": item.end_char}
            for item in event.evidence
        ]
    return RevisionEvents(extraction.revision, events, evidence)


def stored_form(told: RevisionEvents) -> list[dict[str, Any]]:
    """Events and evidence as JSON."""
    return [
        {
            **{name: _plain(value) for name, value in row.items()},
            "evidence": told.evidence[row["event_id"]],
        }
        for row in told.events
    ]


def _shown(event: Row, told: RevisionEvents) -> dict[str, Any]:
    return {
        "category": event["category"],
        "narrative": event["narrative"],
        "quote": told.evidence[event["event_id"]][0]["quote"],
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | list | dict | None) else str(value)
