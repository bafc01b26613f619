"""Labels: the metadata of a revision. They may change while the content stays.

A label that a document leaves out, or leaves empty, keeps the stored value. So a second ingest can
replace a label but not remove it.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from memory_core.artifacts.document import (
    ArtifactType,
    Document,
    RetentionPolicy,
    Sensitivity,
    VisibilityScope,
)

# The extractor reads these. When one changes, the events may change as well.
READ_BY_EXTRACTION = frozenset({"artifact_type", "title", "author", "participants", "source_ts"})


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a stored revision."""

    artifact_type: str
    source_ts: datetime | None
    source_url: str | None
    title: str | None
    author: str | None
    participants: list[str]
    sensitivity: str
    visibility_scope: str
    visible_to: list[str]
    retention_policy: str
    expires_at: datetime | None


def labels_of(document: Document) -> Labels:
    """The labels of a new document, with defaults."""
    return Labels(
        artifact_type=document.artifact_type.value,
        source_ts=document.ts,
        source_url=document.source_url,
        title=document.title,
        author=document.author,
        participants=list(document.participants),
        sensitivity=(document.sensitivity or Sensitivity.NORMAL).value,
        visibility_scope=(document.visibility_scope or VisibilityScope.ME).value,
        visible_to=list(document.visible_to),
        retention_policy=(document.retention_policy or RetentionPolicy.FOREVER).value,
        expires_at=document.expires_at,
    )


def merged(stored: Labels, document: Document) -> Document:
    """The document, with labels that it leaves out filled from the stored revision."""
    return replace(
        document,
        ts=document.ts or stored.source_ts,
        source_url=document.source_url or stored.source_url,
        title=document.title or stored.title,
        author=document.author or stored.author,
        participants=document.participants or tuple(stored.participants),
        sensitivity=document.sensitivity or Sensitivity(stored.sensitivity),
        visibility_scope=document.visibility_scope or VisibilityScope(stored.visibility_scope),
        visible_to=document.visible_to or tuple(stored.visible_to),
        retention_policy=document.retention_policy or RetentionPolicy(stored.retention_policy),
        expires_at=document.expires_at or stored.expires_at,
    )


def unlabelled(stored: Labels, document: Document) -> Document:
    """The document with all labels of the stored revision; its own are ignored."""
    return merged(
        stored,
        Document(
            artifact_type=ArtifactType(stored.artifact_type),
            source_system=document.source_system,
            content=document.content,
            source_id=document.source_id,
        ),
    )


def changed(stored: Labels, document: Document) -> set[str]:
    """The names of the labels in which a merged document differs from the stored revision."""
    new = labels_of(document)
    return {name for name in Labels.__match_args__ if getattr(new, name) != getattr(stored, name)}
