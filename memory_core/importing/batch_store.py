"""Storing imported documents in batches, where a failing document fails alone."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.ingest import ingest_many
from memory_core.artifacts.result import IngestResult
from memory_core.importing import safe_files, source_ids
from memory_core.importing.file_cache import KnownItem
from memory_core.importing.file_presence import FilePresence
from memory_core.importing.file_walk import FoundFile
from memory_core.importing.report import ImportReport, ReportEntry
from memory_core.importing.roots import Registry
from memory_core.kernel.errors import ErrorCode, MemoryFault
from memory_core.runtime import Runtime

log = logging.getLogger(__name__)

# The first batch is small and each next one twice as large, so that the first documents are stored
# soon.
_FIRST_BATCH = 8
_BATCH = 256
_BATCH_CHARS = 4_000_000
_AT_ONCE = 2
# Errors of a single document. Every other fault of ours stops the import: it would fail again.
OF_ONE_DOCUMENT = {ErrorCode.VALIDATION_ERROR, ErrorCode.OPENAI_ERROR}


@dataclass(frozen=True, slots=True)
class LatestRevision:
    """The latest revision of an artifact."""

    artifact_uid: str
    content_hash: str
    artifact_type: str
    source_system: str
    source_id: str
    source_url: str | None
    addresses: list[str]

    @property
    def is_mail(self) -> bool:
        return self.source_system == "email"

    @property
    def names(self) -> list[str]:
        """The paths where imports saw it, the first one first."""
        urls = (self.source_url, *self.addresses)
        ours = (url for url in urls if url and url.startswith(source_ids.SCHEME))
        return [source_ids.path_of(url) for url in ours]


@dataclass(frozen=True, slots=True)
class _Queued:
    path: str
    document: Document
    weight: int


class Storing:
    def __init__(
        self,
        runtime: Runtime,
        report: ImportReport,
        *,
        dry_run: bool = False,
        artifact_type: ArtifactType | None = None,
    ) -> None:
        """`artifact_type`: the type that the user asked for."""
        self._runtime, self._report, self._dry_run = runtime, report, dry_run
        self._type = artifact_type
        self._batch: list[_Queued] = []
        self._batch_size = _FIRST_BATCH
        self._chars = 0
        # Called with the weight of documents when they are stored, or known to be stored already.
        self.advance: Callable[[int], None] = lambda _: None
        self._under_way: set[asyncio.Task[None]] = set()
        # The artifacts that were seen; and by artifact, the file that counts in this import.
        self.seen: set[str] = set()
        self._counts: dict[str, str] = {}
        self._disk = FilePresence(Registry(runtime.settings.data_dir).paths)
        self._met_elsewhere: list[tuple[str, str]] = []

    async def latest(self, uids: list[str]) -> dict[str, LatestRevision]:
        """The stored latest revisions."""
        if not uids:
            return {}
        async with self._runtime.database.session() as session:
            stored = await session.rows(LatestRevision, "latest_hashes", uids=uids)
        return {one.artifact_uid: one for one in stored}

    async def keep(
        self,
        file: FoundFile,
        item: KnownItem,
        document: Document | None,
        latest: dict[str, LatestRevision],
        weight: int = 0,
    ) -> None:
        """Put a document into the next batch, unless it is already stored."""
        if not await self._queue(file, item, document, latest, weight):
            self.advance(weight)

    async def _queue(
        self,
        file: FoundFile,
        item: KnownItem,
        document: Document | None,
        latest: dict[str, LatestRevision],
        weight: int,
    ) -> bool:
        stored = latest.get(item.uid)
        self.seen.add(item.uid)
        self._note_address(file, item, stored)
        source_id = item.source_id or (stored.source_id if stored is not None else None)
        entry = ReportEntry(file.path, source_id, item.uid)
        other = self._counts.get(item.uid) or self._first_place(file, stored)
        if other is not None:
            reason = f"the same document as in {other}"
            self._report.add("skipped", replace(entry, reason=reason))
            return False
        self._counts[item.uid] = file.path
        if stored is not None and stored.content_hash == item.content_hash:
            kept = self._kept_type(stored)
            self._report.unchanged.append(replace(entry, reason=kept) if kept else entry)
        elif document is None:  # its file changed between two reads: the next import handles it
            self._report.failed.append(replace(entry, reason=safe_files.CHANGES))
        elif self._dry_run:
            self._report.add("created" if stored is None else "revised", entry)
        else:
            await self._add(_Queued(file.path, document, weight))
            return True
        return False

    def _kept_type(self, stored: LatestRevision) -> str | None:
        if self._type is None or stored.artifact_type == self._type:
            return None
        return f"stays {stored.artifact_type}: --type is for what is new or has changed"

    def _note_address(
        self, file: FoundFile, item: KnownItem, stored: LatestRevision | None
    ) -> None:
        if stored is None and item.uid not in self._counts:
            return  # its source_url already says so
        name = source_ids.name_of(file.root.name, file.relative)
        if stored is None or name not in stored.names:
            address = source_ids.address(file.root.name, file.relative)
            self._met_elsewhere.append((item.uid, address))

    def _first_place(self, file: FoundFile, stored: LatestRevision | None) -> str | None:
        """Where an earlier import saw a message, if the file still exists. Copies differ in what
        mailing lists add, and each import would undo the one before."""
        if stored is None or not stored.is_mail or not stored.names:
            return None
        first = stored.names[0]
        if first == source_ids.name_of(file.root.name, file.relative):
            return None
        return first if self._disk.at(first) else None

    async def finish(self, *, drop: bool = False) -> None:
        """Store the rest, unless `drop`, and wait for batches in flight."""
        if not drop:
            await self._flush()
        while self._under_way:
            await self._wait(asyncio.ALL_COMPLETED)
        await self._store_addresses()

    def cancel(self) -> None:
        for task in self._under_way:
            task.cancel()

    async def _add(self, queued: "_Queued") -> None:
        self._batch.append(queued)
        self._chars += len(queued.document.content)
        if len(self._batch) >= self._batch_size or self._chars >= _BATCH_CHARS:
            self._batch_size = min(2 * self._batch_size, _BATCH)
            await self._flush()

    async def _flush(self) -> None:
        batch, self._batch, self._chars = self._batch, [], 0
        if not batch or self._report.stopped is not None:
            return
        while len(self._under_way) >= _AT_ONCE:
            await self._wait(asyncio.FIRST_COMPLETED)
        self._under_way.add(asyncio.create_task(self._store(batch)))

    async def _wait(self, when: str) -> None:
        done, self._under_way = await asyncio.wait(self._under_way, return_when=when)
        for task in done:
            task.result()

    async def _store(self, batch: list["_Queued"]) -> None:
        try:
            documents = [queued.document for queued in batch]
            results = await ingest_many(self._runtime, documents, relabel=False)
        except Exception as error:
            if isinstance(error, MemoryFault) and error.code not in OF_ONE_DOCUMENT:
                self._report.stopped = self._report.stopped or error.message
            elif len(batch) == 1:
                self._fail(batch[0], error)
            else:  # find the faulty one
                middle = len(batch) // 2
                await self._store(batch[:middle])
                if self._report.stopped is None:
                    await self._store(batch[middle:])
            return
        for queued, result in zip(batch, results, strict=True):
            self._record(queued.path, queued.document, result)
            self.advance(queued.weight)

    async def _store_addresses(self) -> None:
        met, self._met_elsewhere = self._met_elsewhere, []
        if not met or self._dry_run or self._report.stopped is not None:
            return
        async with self._runtime.database.transaction() as session:
            await session.run(
                "note_addresses",
                uids=[uid for uid, _ in met],
                addresses=[address for _, address in met],
            )

    def _fail(self, queued: "_Queued", error: Exception) -> None:
        path, document = queued.path, queued.document
        self.advance(queued.weight)
        if not isinstance(error, MemoryFault):
            log.error("%s could not be stored", path, exc_info=error)
        reason = error.message if isinstance(error, MemoryFault) else type(error).__name__
        entry = ReportEntry(path, document.source_id, reason=f"could not be stored: {reason}")
        self._report.failed.append(entry)

    def _record(self, path: str, document: Document, result: IngestResult) -> None:
        entry = ReportEntry(path, document.source_id, result.artifact_uid)
        if result.status == "restored" or result.status == "relabelled":
            self._report.add("revised", replace(entry, reason="as it was before"))
        else:
            self._report.add(result.status, entry)
