"""Ingest: documents become revisions, their chunks become searchable, jobs become pending.

All of it is one transaction in Postgres. The index follows the change that this transaction appends
to the log. One document is a batch of one.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from psycopg.errors import InsufficientPrivilege

from memory_core.artifacts import known_content, result
from memory_core.artifacts.columns import (
    chunk_columns,
    key_columns,
    revision_columns,
    text_columns,
)
from memory_core.artifacts.document import Document
from memory_core.artifacts.idempotency import IngestRequest, KeyedRequest
from memory_core.artifacts.known_content import KnownContent, WantedRevision
from memory_core.artifacts.result import IngestResult
from memory_core.artifacts.revision import Revision, RevisionDraft, cut
from memory_core.artifacts.sources import artifact_uids
from memory_core.kernel import ids, principal
from memory_core.kernel.database import Session
from memory_core.kernel.principal import LOCAL
from memory_core.log.change import ChangeType, of_artifact
from memory_core.log.log_writer import append
from memory_core.queue import requests
from memory_core.runtime import Runtime

# Called with the work done, the work in all, and a description of the current step.
Progress = Callable[[float, float, str], Awaitable[None]]
_SHORT_CHARS = 5_000
_CHANGES = {
    "created": ChangeType.ARTIFACT_CREATED,
    "revised": ChangeType.ARTIFACT_REVISED,
    "restored": ChangeType.ARTIFACT_RESTORED,
    "relabelled": ChangeType.ARTIFACT_RELABELLED,
}


async def _silent(_done: float, _total: float, _what: str) -> None:
    return None


async def ingest(
    runtime: Runtime,
    document: Document,
    progress: Progress = _silent,
    *,
    priority: int = 0,
    idempotency_key: str | None = None,
) -> IngestResult:
    """Ingest one document. A request that repeats an earlier key gets the earlier answer and stores
    nothing."""
    keyed = None
    if idempotency_key:
        keyed = KeyedRequest.of(ids.own_key(idempotency_key), document, priority)
    [stored] = await ingest_many(
        runtime, [document], progress, request=IngestRequest(priority=priority, keyed=keyed)
    )
    return stored


_DEFAULT_REQUEST = IngestRequest()


class OtherUsersExist(Exception):
    """Other users exist, and their documents may have the ids that were assumed to be free."""


async def ingest_many(
    runtime: Runtime,
    documents: Sequence[Document],
    progress: Progress = _silent,
    *,
    relabel: bool = True,
    request: IngestRequest = _DEFAULT_REQUEST,
) -> list[IngestResult]:
    """The results, in the order of the documents. Documents of different artifacts share one
    transaction.

    Documents of the same artifact become its revisions in the given order, in consecutive
    transactions. A failed transaction stores nothing; what earlier transactions stored is kept.

    `relabel`: whether known content takes the labels (title, date, sensitivity …) of its document.
    Imports do not relabel: copies of one document have different labels, and each import would undo
    the one before.
    """
    # Usually this machine has one user. Then no ids of other users need to be looked up.
    alone = principal.current().marks == LOCAL.marks
    try:
        return await _ingest_many(runtime, documents, progress, relabel, request, alone=alone)
    except (OtherUsersExist, InsufficientPrivilege):
        # Postgres refused the id: it belongs to a document that the principal does not see. Another
        # user stored it first, perhaps a moment ago.
        return await _ingest_many(runtime, documents, progress, relabel, request, alone=False)


async def _ingest_many(
    runtime: Runtime,
    documents: Sequence[Document],
    progress: Progress,
    relabel: bool,
    request: IngestRequest,
    *,
    alone: bool,
) -> list[IngestResult]:
    # Chunking a short text takes less time than asking Postgres whether it is known.
    is_short = sum(len(document.content) for document in documents) < _SHORT_CHARS
    async with runtime.database.session() as session:
        if alone and not is_short:
            alone = not await session.value(bool, "has_other_users")
        uids = await artifact_uids(session, documents, alone=alone)
        drafts = [
            RevisionDraft(Revision.of(document, uid))
            for document, uid in zip(documents, uids, strict=True)
        ]
        stored_rows = {} if is_short else (await _stored_revisions(session, drafts))[0]
    times = Counter(draft.uid for draft in drafts)
    results: dict[int, IngestResult] = {}
    fresh: dict[tuple[str, str], RevisionDraft] = {}
    for index, draft in enumerate(drafts):
        row = stored_rows.get(draft.key)
        if row is None:
            fresh.setdefault(draft.key, draft)
            continue
        stored = KnownContent.of(draft, row, relabel=relabel)
        # With several revisions of one artifact, an earlier one decides what "unchanged" means.
        if stored.status == "unchanged" and times[draft.uid] == 1 and not request.keyed:
            results[index] = result.of_known(stored)
        elif not stored.is_whole:
            fresh.setdefault(draft.key, draft)
    await _prepare(runtime, list(fresh.values()), progress)
    left = {index: draft for index, draft in enumerate(drafts) if index not in results}
    for wave in _waves(left):
        done = await _store(runtime, list(wave.values()), request, relabel=relabel, alone=alone)
        results.update({index: done[draft.uid] for index, draft in wave.items()})
    return [results[index] for index in range(len(drafts))]


def _waves(drafts: dict[int, RevisionDraft]) -> list[dict[int, RevisionDraft]]:
    """Waves that contain each artifact at most once, by position in the request."""
    waves: list[dict[int, RevisionDraft]] = []
    seen: Counter[str] = Counter()
    for index, draft in drafts.items():
        if seen[draft.uid] == len(waves):
            waves.append({})
        waves[seen[draft.uid]][index] = draft
        seen[draft.uid] += 1
    return waves


async def _prepare(runtime: Runtime, drafts: list[RevisionDraft], progress: Progress) -> None:
    await progress(0, len(drafts), "cutting into chunks")
    for draft in drafts:
        draft.pieces = await cut(draft.revision, runtime.settings)
    chunks = sum(len(draft.pieces) for draft in drafts)
    await progress(chunks, chunks, "storing")


async def _stored_revisions(
    session: Session, drafts: list[RevisionDraft]
) -> tuple[dict[tuple[str, str], WantedRevision], set[str]]:
    """The revisions among these that are stored, and the artifacts that have any revision."""
    rows = await session.rows(
        WantedRevision, "find_revisions", **key_columns(draft.key for draft in drafts)
    )
    stored = {(row.uid, row.revision_id): row for row in rows if row.is_stored}
    return stored, {row.uid for row in rows if row.has_latest}


async def _store(
    runtime: Runtime,
    drafts: list[RevisionDraft],
    request: IngestRequest,
    *,
    relabel: bool,
    alone: bool,
) -> dict[str, IngestResult]:
    """The one transaction, for drafts of different artifacts. Writers of one artifact run one after
    the other."""
    uids = [draft.uid for draft in drafts]
    async with runtime.database.transaction() as session:
        if request.keyed and (first := await request.keyed.first_answer(session)):
            return {uids[0]: first}
        is_shared = await session.value(bool, "lock_to_ingest", uids=uids)
        if alone and is_shared:
            raise OtherUsersExist
        rows, superseded = await _stored_revisions(session, drafts)
        stored = [draft for draft in drafts if draft.key in rows]
        known_contents = [
            KnownContent.of(draft, rows[draft.key], relabel=relabel) for draft in stored
        ]
        new = [draft for draft in drafts if draft.key not in rows]
        written = [*new, *(one.draft for one in known_contents if not one.is_whole)]
        # Deleted or lost since the first look: chunk these drafts and store them in full.
        await _prepare(runtime, [draft for draft in written if not draft.pieces], _silent)
        columns = request.columns(runtime.settings)
        jobs = await known_content.store_known(session, known_contents, columns)
        results = {
            one.draft.uid: result.of_known(one, jobs.get(one.draft.uid)) for one in known_contents
        }
        results |= await _insert(session, new, columns, superseded=superseded)
        results |= await _append(session, results)
        if request.keyed:
            await request.keyed.keep(session, results[uids[0]])
    return results


async def _append(session: Session, results: dict[str, IngestResult]) -> dict[str, IngestResult]:
    """Append a change to the log for each changed result; returns the results with their
    positions."""
    changed = [one for one in results.values() if one.status in _CHANGES]
    changes = [
        of_artifact(_CHANGES[one.status], one.artifact_uid, revision_id=one.revision_id)
        for one in changed
    ]
    positions = zip(changed, await append(session, changes), strict=True)
    return {one.artifact_uid: replace(one, position=position) for one, position in positions}


async def _insert(
    session: Session,
    drafts: list[RevisionDraft],
    job_columns: dict[str, Any],
    *,
    superseded: set[str],
) -> dict[str, IngestResult]:
    """`superseded`: the artifacts that already have a revision."""
    if not drafts:
        return {}
    if old := [draft.uid for draft in drafts if draft.uid in superseded]:
        await session.run("supersede_revisions", uids=old)
    await session.run("insert_revisions", **revision_columns(drafts))
    await session.run("insert_revision_texts", **text_columns(drafts))
    await session.run("insert_chunks", **chunk_columns(drafts))
    job_ids = [uuid4() for _ in drafts]
    await requests.insert(session, job_ids, key_columns(draft.key for draft in drafts), job_columns)
    return {
        draft.uid: result.of_new(draft, str(job_id), revised=draft.uid in superseded)
        for draft, job_id in zip(drafts, job_ids, strict=True)
    }
