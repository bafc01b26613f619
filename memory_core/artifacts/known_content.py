"""Content that is already stored and arrives again.

An older revision becomes the latest again, a lost text is stored again, changed labels replace the
stored ones; or nothing changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from memory_core.artifacts import labels
from memory_core.artifacts.columns import (
    chunk_columns,
    key_columns,
    label_columns,
    size_columns,
    text_columns,
)
from memory_core.artifacts.revision import RevisionDraft
from memory_core.kernel.database import Session
from memory_core.queue import requests
from memory_core.queue.requests import RequestedJob

KnownStatus = Literal["restored", "relabelled", "unchanged"]


@dataclass(frozen=True, slots=True)
class KnownRevision(labels.Labels):
    """The stored revision whose content arrives again."""

    artifact_uid: str
    revision_id: str
    artifact_id: str
    is_latest: bool
    is_chunked: bool
    chunk_count: int
    job_id: UUID | None
    job_status: str | None
    has_text: bool
    chunk_ids: list[str]


@dataclass(frozen=True, slots=True)
class WantedRevision(KnownRevision):
    """A stored row for a requested revision. If it is not stored, all columns but the last two are
    empty."""

    uid: str
    has_latest: bool  # whether its artifact has any revision

    @property
    def is_stored(self) -> bool:
        return bool(self.revision_id)


@dataclass(frozen=True, slots=True)
class KnownContent:
    draft: RevisionDraft  # with the labels that will be stored
    row: KnownRevision
    changed: set[str]  # names of the changed labels

    @classmethod
    def of(cls, draft: RevisionDraft, row: KnownRevision, *, relabel: bool) -> "KnownContent":
        """Without `relabel` the document's labels are ignored and the stored ones stay."""
        describe = labels.merged if relabel else labels.unlabelled
        document = describe(row, draft.revision.document)
        revision = replace(draft.revision, document=document)
        return cls(RevisionDraft(revision, draft.pieces), row, labels.changed(row, document))

    @property
    def is_whole(self) -> bool:
        """Whether its text and all its chunks are stored."""
        expected = max(self.row.chunk_count, 1)
        return self.row.has_text and len(self.row.chunk_ids) == expected

    @property
    def status(self) -> KnownStatus:
        if not (self.row.is_latest and self.is_whole):
            return "restored"
        return "relabelled" if self.changed else "unchanged"

    @property
    def needs_extraction(self) -> bool:
        return not self.is_whole or bool(self.changed & labels.READ_BY_EXTRACTION)


async def store_known(
    session: Session, contents: Sequence[KnownContent], job_columns: dict[str, Any]
) -> dict[str, RequestedJob]:
    """Bring the stored revisions up to date. Returns the jobs that this requested, by artifact.
    `job_columns`: the columns of those jobs."""
    await _restore_texts(session, [one for one in contents if not one.is_whole])
    await _restore(session, [one.row for one in contents if not one.row.is_latest])
    await _relabel(session, [one for one in contents if one.changed])
    again = [one for one in contents if one.needs_extraction]
    if not again:
        return {}
    jobs = await requests.start_over(
        session, key_columns(one.draft.key for one in again), job_columns
    )
    return {job.artifact_uid: job for job in jobs}


async def _restore(session: Session, rows: list[KnownRevision]) -> None:
    if not rows:
        return
    uids = [row.artifact_uid for row in rows]
    await session.run("supersede_revisions", uids=uids)
    await session.run("restore_revisions", uids=uids, revisions=[row.revision_id for row in rows])


async def _restore_texts(session: Session, broken: list[KnownContent]) -> None:
    """Store the text and its chunks again. The chunks follow today's settings, which may have
    changed."""
    if not broken:
        return
    drafts = [one.draft for one in broken]
    keys = key_columns(draft.key for draft in drafts)
    await session.run("delete_chunks_of_revisions", **keys)
    await session.run("resize_revisions", **keys, **size_columns(drafts))
    await session.run("restore_revision_texts", **text_columns(drafts))
    await session.run("insert_chunks", **chunk_columns(drafts))


async def _relabel(session: Session, contents: list[KnownContent]) -> None:
    if contents:
        documents = [one.draft.revision.document for one in contents]
        keys = key_columns(one.draft.key for one in contents)
        await session.run("relabel_revisions", **keys, **label_columns(documents))
