"""A file's git history as revisions, in order, each with its commit's time and author.

Stored revisions are recognised by their content, so an import that runs again adds only new ones.
"""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from memory_core.artifacts.document import ArtifactType, Document
from memory_core.artifacts.ingest import ingest_many
from memory_core.importing import formats
from memory_core.importing.batch_store import OF_ONE_DOCUMENT
from memory_core.importing.file_cache import FileCache, KnownItem
from memory_core.importing.file_walk import FoundFile, is_own, is_passed_over
from memory_core.importing.formats import Format
from memory_core.importing.git import Blobs, GitCommit, Repository, Stopped
from memory_core.importing.import_run import Advance, Options
from memory_core.importing.item import Skip, Unusable
from memory_core.importing.reader import Reader, identify
from memory_core.importing.report import ImportReport, Outcome, ReportEntry
from memory_core.importing.roots import ImportPlace, Registry
from memory_core.importing.safe_files import HEAD_BYTES
from memory_core.kernel.errors import InvalidInput, MemoryFault
from memory_core.runtime import Runtime

_BATCH = 128
_BATCH_CHARS = 4_000_000
# Messages have their own dates and authors, which are better than those of a commit.
_DATED = {ArtifactType.EMAIL, ArtifactType.CHAT}


@dataclass(frozen=True, slots=True)
class Version:
    """The content of a file from one commit on, under its name in HEAD."""

    file: FoundFile
    blob: str
    commit: GitCommit


def versions(
    place: ImportPlace,
    registry: Registry,
    *,
    without: Path | None = None,
    stopped: Stopped = lambda: False,
) -> list[Version]:
    """Versions of the files in HEAD, oldest first. A renamed file includes its past, and so does a
    file that was deleted for a while.

    `without`: our own data dir, in case it is inside.
    """
    base = place.root.path / place.relative
    repository = Repository(base)
    if not base.is_relative_to(repository.top):
        raise InvalidInput(f"The repository of {base} keeps its files elsewhere: {repository.top}.")
    below = base.relative_to(repository.top).as_posix()
    files = {
        path: _file(repository.top / path, place, registry)
        for path in repository.files(below)
        if _wanted(path, below) and not is_own(repository.top / path, without)
    }
    names = {path: path for path in files}
    history: list[Version] = []
    for commit, changes in repository.log(below, follow=place.is_file, stopped=stopped):
        # Look up all names of this commit first: two files may have swapped theirs.
        current = {change.path: names.get(change.path) for change in changes}
        for change in changes:
            if change.kind == "R":
                names.pop(change.path, None)
        for change in changes:
            name = current[change.path]
            if name is None or change.kind == "D":
                continue
            if change.before is not None:
                names[change.before] = name
            history.append(Version(files[name], change.blob, commit))
    return history[::-1]


def _file(path: Path, place: ImportPlace, registry: Registry) -> FoundFile:
    """The file in the deepest root that contains it, as a walk gives it."""
    inner = registry.root_above(path.parent)
    root = inner if inner and inner.path.is_relative_to(place.root.path) else place.root
    return FoundFile(root, path.relative_to(root.path).as_posix(), 0)


def _wanted(path: str, below: str) -> bool:
    """Whether a walk through the folder would include it."""
    inner = path if below == "." else path.removeprefix(below)
    return not any(is_passed_over(part) for part in inner.split("/"))


@dataclass(frozen=True, slots=True)
class _Hashed:
    """A stored revision."""

    artifact_uid: str
    source_id: str
    content_hash: str
    is_latest: bool


class History:
    def __init__(self, runtime: Runtime, options: Options, stop: asyncio.Event) -> None:
        self._runtime, self._options, self._stop = runtime, options, stop
        self.report = ImportReport(dry_run=options.dry_run)
        self._reader = Reader({}, options.artifact_type)
        self._stored: dict[str, set[str]] = {}
        self._latest: dict[str, str] = {}
        self._source_ids: dict[str, str] = {}
        self._begun: set[str] = set()
        self._batch: list[tuple[Version, Document]] = []
        self._last: dict[str, tuple[Version, KnownItem]] = {}
        self._outcomes: dict[str, ReportEntry] = {}
        self._failed: set[str] = set()

    async def run(
        self, place: ImportPlace, listed: list[Version], advance: Advance = lambda _: None
    ) -> ImportReport:
        """`listed`: the result of `versions`."""
        repository = await asyncio.to_thread(Repository, place.root.path / place.relative)
        options = str(self._options.artifact_type or "")
        cache = FileCache(self._runtime.settings.data_dir, f"git:{place.root.name}", options)
        blobs = repository.blobs()
        try:
            for version in listed:
                if self._stop.is_set():
                    break
                await self._version(version, blobs, cache)
                advance(1)
            if not self._stop.is_set():
                await self._return_to_present(blobs)
                await self._flush()
        except MemoryFault as fault:
            self.report.stopped = fault.message
        finally:
            await asyncio.to_thread(blobs.close)
            if not self._options.dry_run:
                cache.save()
        self._summarise()
        self.report.interrupted = self._stop.is_set()
        return self.report

    async def _version(self, version: Version, blobs: Blobs, cache: FileCache) -> None:
        key = f"{version.file.root.name}/{version.file.relative}@{version.blob}"
        stored = cache.recall(key, version.blob)
        documents: list[Document] | None = None
        if stored is None:
            documents = await self._parse(version, blobs)
            if documents is None:
                return
            stored = [identify(document) for document in documents]
            cache.note(key, version.blob, stored)
        await self._load_stored([item.uid for item in stored])
        for number, item in enumerate(stored):
            if item.content_hash == self._previous(item.uid):
                continue  # only its mode or name changed
            self._last[item.uid] = (version, item)
            if item.content_hash in self._stored[item.uid] and item.uid not in self._begun:
                continue  # stored by an earlier import
            self._begun.add(item.uid)
            documents = documents or await self._parse(version, blobs)
            if documents is not None and number < len(documents):
                await self._add(version, documents[number])

    def _previous(self, uid: str) -> str | None:
        return self._last[uid][1].content_hash if uid in self._last else None

    async def _return_to_present(self, blobs: Blobs) -> None:
        """A file whose versions are all stored may have returned to an older one."""
        for uid, (version, item) in self._last.items():
            if uid not in self._begun and self._latest.get(uid) != item.content_hash:
                for document in await self._parse(version, blobs) or []:
                    if identify(document).uid == uid:
                        await self._add(version, document)

    async def _parse(self, version: Version, blobs: Blobs) -> list[Document] | None:
        try:
            return await asyncio.to_thread(self._documents, version, blobs)
        except Unusable as problem:
            self._report_problem(version, problem.kind, str(problem))
        except InvalidInput as error:
            self._report_problem(version, "failed", error.message)
        except Exception as error:
            self._report_problem(
                version, "failed", f"cannot be read: {type(error).__name__}: {error}"
            )
        return None

    def _documents(self, version: Version, blobs: Blobs) -> list[Document]:
        most = formats.limit(Format.PDF)
        data = blobs.read(version.blob, most)
        if data is None:
            raise Skip(f"larger than {most / 1e6:.0f} MB, or missing from the repository")
        form = formats.recognise(data[:HEAD_BYTES], version.file.name)
        if form is Format.MBOX:
            raise Skip("a mailbox: import it without --git")
        commit = version.commit
        made = []
        for item in self._reader.items(version.file, form, data):
            if item.artifact_type not in _DATED:
                item = replace(item, ts=commit.when or item.ts, author=commit.author or item.author)
            made.append(self._reader.document(version.file, item, commit=commit.id))
        return made

    def _report_problem(self, version: Version, kind: str, reason: str) -> None:
        outcome: Outcome = "skipped" if kind == "skipped" else "failed"
        where = f"{version.file.path} in commit {version.commit.id[:10]}"
        self.report.add(outcome, ReportEntry(where, reason=reason[:300]))

    async def _load_stored(self, uids: list[str]) -> None:
        missing = [uid for uid in uids if uid not in self._stored]
        if not missing:
            return
        async with self._runtime.database.session() as session:
            rows = await session.rows(_Hashed, "revision_hashes", uids=missing)
        hashes: defaultdict[str, set[str]] = defaultdict(set)
        for row in rows:
            hashes[row.artifact_uid].add(row.content_hash)
            self._source_ids[row.artifact_uid] = row.source_id
            if row.is_latest:
                self._latest[row.artifact_uid] = row.content_hash
        for uid in missing:
            self._stored[uid] = hashes[uid]

    async def _add(self, version: Version, document: Document) -> None:
        self._batch.append((version, document))
        size = sum(len(kept.content) for _, kept in self._batch)
        if len(self._batch) >= _BATCH or size >= _BATCH_CHARS:
            await self._flush()

    async def _flush(self) -> None:
        batch, self._batch = self._batch, []
        if self._options.dry_run:
            for version, document in batch:
                self._note(version, identify(document), "dry run")
            return
        if batch:
            await self._store(batch)

    async def _store(self, batch: list[tuple[Version, Document]]) -> None:
        """Store in order. A document that cannot be stored fails alone."""
        try:
            documents = [document for _, document in batch]
            results = await ingest_many(self._runtime, documents, relabel=False)
        except Exception as error:
            if isinstance(error, MemoryFault) and error.code not in OF_ONE_DOCUMENT:
                raise
            if len(batch) > 1:
                middle = len(batch) // 2
                await self._store(batch[:middle])
                await self._store(batch[middle:])
                return
            reason = error.message if isinstance(error, MemoryFault) else type(error).__name__
            version, document = batch[0]
            self._report_problem(version, "failed", f"could not be stored: {reason}")
            self._failed.add(identify(document).uid)
            return
        for (version, document), result in zip(batch, results, strict=True):
            self._note(version, identify(document), result.status)

    def _note(self, version: Version, item: KnownItem, status: str) -> None:
        entry = ReportEntry(version.file.path, item.source_id, item.uid, version.commit.id[:10])
        new = not self._stored[item.uid] and item.uid not in self._outcomes
        self._outcomes[item.uid] = entry
        if status != "unchanged":
            self.report.add("created" if new else "revised", entry)

    def _summarise(self) -> None:
        for uid, (version, item) in self._last.items():
            if uid not in self._outcomes and uid not in self._failed:
                source_id = item.source_id or self._source_ids.get(uid)
                entry = ReportEntry(version.file.path, source_id, uid)
                self.report.unchanged.append(entry)
