"""Storing what an import found, in batches, with a document that fails failing alone."""

import asyncio
import logging

from memory_core.artifacts.document import Document
from memory_core.artifacts.ingest import IngestResult, ingest_many
from memory_core.errors import ErrorCode, MemoryFault
from memory_core.importing.memo import Known
from memory_core.importing.report import Entry, Outcome, Report
from memory_core.runtime import Runtime

log = logging.getLogger(__name__)

_BATCH = 256
_BATCH_CHARS = 4_000_000
_AT_ONCE = 2
# About one document. Everything else that is ours to raise stops the import: it would fail again.
_OF_ONE_DOCUMENT = {ErrorCode.VALIDATION_ERROR, ErrorCode.OPENAI_ERROR}


class Storing:
    def __init__(self, runtime: Runtime, report: Report, *, dry_run: bool = False) -> None:
        self._runtime, self._report, self._dry_run = runtime, report, dry_run
        self._batch: list[tuple[str, Document]] = []
        self._chars = 0
        self._under_way: set[asyncio.Task[None]] = set()
        # By artifact: the file it was found in first, which is the one that counts.
        self.seen: dict[str, str] = {}

    async def latest(self, uids: list[str]) -> dict[str, str]:
        """The content hashes of what is stored now."""
        if not uids:
            return {}
        async with self._runtime.database.session() as session:
            rows = await session.all("latest_hashes", uids=uids)
        return {row["artifact_uid"]: row["content_hash"] for row in rows}

    async def keep(
        self, path: str, item: Known, document: Document | None, known: dict[str, str]
    ) -> None:
        """Put it into the next batch, unless it is stored already."""
        if item.uid in self.seen:
            reason = f"the same document as in {self.seen[item.uid]}"
            self._report.add("skipped", Entry(path, item.source_id, item.uid, reason))
            return
        self.seen[item.uid] = path
        stored = known.get(item.uid)
        entry = Entry(path, item.source_id, item.uid)
        if stored == item.content_hash:
            self._report.unchanged.append(entry)
        elif document is None:  # its file changed between two looks: the next import sees it
            reason = "changes while it is read: import it again when its writer has finished"
            self._report.failed.append(Entry(path, item.source_id, item.uid, reason))
        elif self._dry_run:
            self._report.add("created" if stored is None else "revised", entry)
        else:
            await self._add(path, document)

    async def finish(self, *, drop: bool = False) -> None:
        """Store the rest, unless it is to be dropped, and wait for what is under way."""
        if not drop:
            await self._flush()
        while self._under_way:
            await self._wait(asyncio.ALL_COMPLETED)

    def cancel(self) -> None:
        for task in self._under_way:
            task.cancel()

    async def _add(self, path: str, document: Document) -> None:
        self._batch.append((path, document))
        self._chars += len(document.content)
        if len(self._batch) >= _BATCH or self._chars >= _BATCH_CHARS:
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

    async def _store(self, batch: list[tuple[str, Document]]) -> None:
        try:
            results = await ingest_many(self._runtime, [document for _, document in batch])
        except Exception as error:
            if isinstance(error, MemoryFault) and error.code not in _OF_ONE_DOCUMENT:
                self._report.stopped = self._report.stopped or error.message
            elif len(batch) == 1:
                self._fail(batch[0], error)
            else:  # find the one
                middle = len(batch) // 2
                await self._store(batch[:middle])
                if self._report.stopped is None:
                    await self._store(batch[middle:])
            return
        for (path, document), result in zip(batch, results, strict=True):
            self._record(path, document, result)

    def _fail(self, one: tuple[str, Document], error: Exception) -> None:
        path, document = one
        if not isinstance(error, MemoryFault):
            log.error("%s could not be stored", path, exc_info=error)
        reason = error.message if isinstance(error, MemoryFault) else type(error).__name__
        entry = Entry(path, document.source_id, reason=f"could not be stored: {reason}")
        self._report.failed.append(entry)

    def _record(self, path: str, document: Document, result: IngestResult) -> None:
        outcome: Outcome = "revised" if result.status == "restored" else result.status
        reason = "as it was before" if result.status == "restored" else None
        self._report.add(outcome, Entry(path, document.source_id, result.artifact_uid, reason))
