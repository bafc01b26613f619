"""Events as Postgres gives them, for tests that need no database."""

from uuid import uuid4

from memory_core.search.event import Event, StoredEvidence


def stored_event(narrative: str, *, category: str = "Decision") -> Event:
    return Event(
        event_id=uuid4(),
        artifact_uid="uid_1",
        revision_id="rev_1",
        category=category,
        event_time=None,
        due_time=None,
        due_quote=None,
        due_start_char=None,
        due_end_char=None,
        narrative=narrative,
        subject_json={},
        actors_json=[],
        confidence=0.9,
        title=None,
    )


def stored_evidence(event: Event, quote: str) -> StoredEvidence:
    return StoredEvidence(event.event_id, quote, 0, len(quote), None, "exact")
