"""Event ids: the same occurrence of the same revision always gets the same id, however often it is
extracted."""

from uuid import UUID, uuid5

from memory_core.extraction.model import CanonicalEvent

_NAMESPACE = UUID("6f0c7a52-8d0e-4f43-9b1d-3f3f2f1f6a11")


def event_id(artifact_uid: str, revision_id: str, event: CanonicalEvent) -> UUID:
    first = event.evidence[0]
    parts: tuple[object, ...] = (
        artifact_uid,
        revision_id,
        event.category,
        first.start_char,
        first.end_char,
    )
    if event.twin:
        parts += (event.twin,)
    return uuid5(_NAMESPACE, "\x1f".join(map(str, parts)))
