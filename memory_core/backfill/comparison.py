"""Comparing two extractions of one revision: events that the new prompt keeps, changes, adds and
loses."""

from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from memory_core.events.diff import differences, match
from memory_core.events.event_ids import event_id
from memory_core.events.stored_events import ProvedEvents
from memory_core.processing.extraction import Extraction
from memory_core.search.event import Event, StoredEvidence

# An event that differs only in its confidence counts as kept.
_UNIMPORTANT = frozenset({"confidence"})
_STORED = (
    *("event_id", "category", "event_time", "due_time", "narrative", "subject_json"),
    *("actors_json", "confidence"),
)


@dataclass(frozen=True, slots=True)
class ExtractionComparison:
    kept: list[dict[str, Any]]
    changed: list[dict[str, Any]]
    added: list[dict[str, Any]]
    lost: list[dict[str, Any]]


def compare(before: ProvedEvents, after: ProvedEvents) -> ExtractionComparison:
    """Matches events by the rules of `event_diff`."""
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
    return ExtractionComparison(
        kept,
        changed,
        [_shown(row, after) for row in added],
        [_shown(row, before) for row in lost],
    )


def in_stored_form(extraction: Extraction) -> ProvedEvents:
    """The result of an extraction, in the form of stored events."""
    job = extraction.job
    events: list[Event] = []
    evidence: dict[UUID, list[StoredEvidence]] = {}
    for event in extraction.events:
        id_ = event_id(job.artifact_uid, job.revision_id, event)
        events.append(
            Event(
                event_id=id_,
                artifact_uid=job.artifact_uid,
                revision_id=job.revision_id,
                category=event.category.value,
                event_time=event.event_time,
                due_time=event.due.time if event.due else None,
                due_quote=None,
                due_start_char=None,
                due_end_char=None,
                narrative=event.narrative,
                subject_json=asdict(event.subject),
                actors_json=[asdict(actor) for actor in event.actors],
                confidence=event.confidence,
                title=None,
            )
        )
        evidence[id_] = [
            StoredEvidence(id_, item.quote, item.start_char, item.end_char, None, item.match_kind)
            for item in event.evidence
        ]
    return ProvedEvents(events, evidence)


def stored_form(proved: ProvedEvents) -> list[dict[str, Any]]:
    """Events and evidence as JSON."""
    return [
        {
            **{name: _plain(getattr(event, name)) for name in _STORED},
            "evidence": [
                {"quote": item.quote, "start_char": item.start_char, "end_char": item.end_char}
                for item in proved.evidence[event.event_id]
            ],
        }
        for event in proved.events
    ]


def _shown(event: Event, proved: ProvedEvents) -> dict[str, Any]:
    return {
        "category": event.category,
        "narrative": event.narrative,
        "quote": proved.evidence[event.event_id][0].quote,
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | list | dict | None) else str(value)
