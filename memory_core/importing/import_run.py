"""Running an import: files are read in threads while documents are stored in batches.

Memory is bounded: a few groups of files are read ahead, and two batches are being stored. An import
that is stopped at any moment continues when it is run again: what is stored is then unchanged.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from memory_core.artifacts.document import ArtifactType
from memory_core.importing.batch_store import LatestRevision, Storing
from memory_core.importing.file_cache import FileCache, KnownItem
from memory_core.importing.file_walk import FoundFile, SkippedPath, walk
from memory_core.importing.reader import ParsedFile, Reader
from memory_core.importing.report import ImportReport, ReportEntry
from memory_core.importing.roots import ImportPlace, Registry, Root, settled
from memory_core.runtime import Runtime

_GROUP_FILES = 256
_GROUP_BYTES = 16_000_000
_MESSAGES = 64
# A mailbox with more messages is not cached: they are kept in memory, and in a file.
REMEMBERED_MESSAGES = 50_000
# Parsed in a separate process, so that several are parsed at once.
_SLOW = (".pdf", ".docx")
# The cost of opening and closing a file, in addition to its bytes, for the estimate of the
# remaining time.
FILE_WEIGHT = 4_000

# Called with the part of the total weight that is done, also from reading threads.
Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Options:
    artifact_type: ArtifactType | None = None
    jobs: int = 2
    dry_run: bool = False
    # Nothing above this folder is read.
    within: Path | None = None
    # Also read files whose state has not changed.
    reread: bool = False


@dataclass(slots=True)
class Survey:
    """The files below the places, before any is read."""

    files: list[FoundFile] = field(default_factory=list)
    passed: list[SkippedPath] = field(default_factory=list)
    # The places that were walked in full, each in its own root: only there can `prune` know what is
    # gone.
    scopes: list[ImportPlace] = field(default_factory=list)

    @property
    def weight(self) -> int:
        return sum(file.size + FILE_WEIGHT for file in self.files)


def survey(
    places: list[ImportPlace],
    registry: Registry,
    data_dir: Path,
    stopped: Callable[[], bool] = lambda: False,
) -> Survey:
    """Survey the places. If asked to stop, it returns the files so far."""
    result = Survey()
    seen: set[str] = set()
    for place in (settled(place, registry) for place in places):
        result.scopes.append(place)
        for one in walk(place, registry, without=data_dir):
            if stopped():
                return result
            if isinstance(one, Root):
                result.scopes.append(ImportPlace(one, ".", is_file=False))
            elif one.path not in seen:  # places may overlap
                seen.add(one.path)
                (result.files if isinstance(one, FoundFile) else result.passed).append(one)  # type: ignore[arg-type]
    if exports := [one for one in reversed(result.files) if _is_export(one)]:
        result.files = [*(one for one in result.files if not _is_export(one)), *exports]
    return result


def _is_export(file: FoundFile) -> bool:
    """Whether it is a Telegram export, in a folder named by its day. The newest is read first,
    because the first export of a day counts."""
    return file.relative.rpartition("/")[2] == "result.json"


class Import:
    def __init__(self, runtime: Runtime, options: Options, stop: asyncio.Event) -> None:
        self._runtime, self._options, self._stop = runtime, options, stop
        self.report = ImportReport(dry_run=options.dry_run)
        self._advance: Advance = lambda _: None
        self._caches: dict[str, FileCache] = {}
        self._reader = Reader(
            self._caches, options.artifact_type, options.within, reread=options.reread
        )
        self._storing = Storing(
            runtime, self.report, dry_run=options.dry_run, artifact_type=options.artifact_type
        )
        # For `prune`: files that were read, and those of them that were not fully parsed.
        self.understood: set[tuple[str, str]] = set()
        self.doubtful: set[tuple[str, str]] = set()

    @property
    def seen(self) -> set[str]:
        """The artifacts that the import saw, stored or not."""
        return self._storing.seen

    async def run(self, survey: Survey, advance: Advance = lambda _: None) -> ImportReport:
        self._advance = self._storing.advance = advance
        for passed in survey.passed:
            self.report.add(passed.kind, ReportEntry(passed.path, reason=passed.reason))
        self._open_caches(survey.files)
        try:
            async for group in self._groups(survey.files):
                for parsed in group:
                    if parsed.is_mailbox:
                        await self._mailbox(parsed.file)
                await self._take([one for one in group if not one.is_mailbox])
                if self._stopping:
                    break
            await self._storing.finish(drop=self._stop.is_set())
        finally:
            self._storing.cancel()
            if not self._options.dry_run:
                for cache in self._caches.values():
                    cache.save()
        self.report.interrupted = self._stop.is_set()
        return self.report

    @property
    def _stopping(self) -> bool:
        return self._stop.is_set() or self.report.stopped is not None

    async def _groups(self, files: list[FoundFile]) -> AsyncIterator[list[ParsedFile]]:
        """Groups in the order of the files, read a few ahead."""
        waiting: deque[asyncio.Future[list[ParsedFile]]] = deque()
        groups = _grouped(files)
        loop = asyncio.get_running_loop()
        threads = ThreadPoolExecutor(self._options.jobs, thread_name_prefix="reading")
        try:
            while True:
                for group in islice(groups, self._options.jobs - len(waiting)):
                    waiting.append(loop.run_in_executor(threads, self._read, group))
                if not waiting:
                    return
                yield await waiting.popleft()
        finally:
            for reading in waiting:
                reading.cancel()
            threads.shutdown(wait=False, cancel_futures=True)

    def _read(self, group: list[FoundFile]) -> list[ParsedFile]:
        parsed = []
        for file in group:
            if self._stop.is_set():
                break
            one = self._reader.read(file)
            parsed.append(one)
            if not one.is_mailbox:  # mailboxes are read later, message by message
                self._advance(_weight_of_reading(file))
        return parsed

    async def _take(self, group: list[ParsedFile]) -> None:
        """Compare with what is stored, and store what differs."""
        stored = await self._storing.latest([item.uid for parsed in group for item in parsed.items])
        for parsed in group:
            if self._stopping:
                return
            differs = any(
                item.uid not in stored or stored[item.uid].content_hash != item.content_hash
                for item in parsed.items
            )
            if parsed.documents is None and differs:
                parsed = await asyncio.to_thread(self._reader.read, parsed.file, afresh=True)
                if parsed.is_mailbox:  # it became a mailbox since the first look
                    await self._mailbox(parsed.file)
                    continue
            await self._keep(parsed, stored, _weight_of_storing(parsed.file))

    async def _mailbox(self, file: FoundFile) -> None:
        messages = self._reader.messages(file)
        items: list[KnownItem] = []
        stamp = ""
        share = 0
        while not self._stopping:
            group = await asyncio.to_thread(_next, messages)
            if not group:
                break
            stored = await self._storing.latest([i.uid for one in group for i in one.items])
            for parsed in group:
                await self._keep(parsed, stored)
                stamp = parsed.stamp
                if len(items) <= REMEMBERED_MESSAGES:
                    items += parsed.items
            size = sum(len(d.content) for one in group for d in one.documents or [])
            step = min(size, file.size - share)
            share += step
            self._advance(step)
        await asyncio.to_thread(messages.close)
        is_whole = (file.root.name, file.relative) not in self.doubtful
        if stamp and is_whole and len(items) <= REMEMBERED_MESSAGES:
            # Without a digest: recognising a moved mailbox by its bytes would take long.
            self._caches[file.root.name].note(file.relative, "", items, stamp)
        self._advance(file.size - share + FILE_WEIGHT)

    async def _keep(
        self, parsed: ParsedFile, latest: dict[str, LatestRevision], weight: int = 0
    ) -> None:
        """`weight`: the rest of the file's weight, for its documents."""
        for problem in parsed.problems:
            self.report.add(problem.kind, ReportEntry(problem.path, reason=problem.reason))
        place = (parsed.file.root.name, parsed.file.relative)
        (self.doubtful if parsed.problems else self.understood).add(place)
        share = weight // len(parsed.items) if parsed.items else 0
        self._advance(weight - share * len(parsed.items))
        for number, item in enumerate(parsed.items):
            document = parsed.documents[number] if parsed.documents is not None else None
            await self._storing.keep(parsed.file, item, document, latest, share)
        if parsed.digest and (parsed.documents is not None or parsed.stamp):
            cache = self._caches[parsed.file.root.name]
            cache.note(parsed.file.relative, parsed.digest, parsed.items, parsed.stamp)

    def _open_caches(self, files: list[FoundFile]) -> None:
        options = str(self._options.artifact_type or "")
        for name in {file.root.name for file in files}:
            self._caches[name] = FileCache(self._runtime.settings.data_dir, name, options)


def _weight_of_reading(file: FoundFile) -> int:
    """Half of a file's weight; the other half is for storing its documents."""
    return (file.size + FILE_WEIGHT) // 2


def _weight_of_storing(file: FoundFile) -> int:
    return file.size + FILE_WEIGHT - _weight_of_reading(file)


def _next(messages: Iterator[ParsedFile]) -> list[ParsedFile]:
    group: list[ParsedFile] = []
    size = 0
    for parsed in messages:
        group.append(parsed)
        size += sum(len(document.content) for document in parsed.documents or [])
        if len(group) == _MESSAGES or size > _GROUP_BYTES:
            break
    return group


def _grouped(files: list[FoundFile]) -> Iterator[list[FoundFile]]:
    """A file that may take a minute is a group of its own, so that others need not wait for it."""
    group: list[FoundFile] = []
    size = 0
    for file in files:
        is_slow = file.relative.lower().endswith(_SLOW)
        is_full = len(group) >= _GROUP_FILES or size + file.size > _GROUP_BYTES
        if group and (is_slow or is_full):
            yield group
            group, size = [], 0
        if is_slow:
            yield [file]
            continue
        group.append(file)
        size += file.size
    if group:
        yield group
