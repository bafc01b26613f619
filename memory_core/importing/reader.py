"""Reading one file: its bytes, its format, and the documents in it."""

import hashlib
import os
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from memory_core.artifacts.document import ArtifactType, Document
from memory_core.importing import formats, safe_files, source_ids
from memory_core.importing.file_cache import FileCache, KnownItem
from memory_core.importing.file_walk import FoundFile, SkippedPath
from memory_core.importing.formats import Format, mail, mbox, structured
from memory_core.importing.item import Item, Unusable
from memory_core.importing.limits import LIMITS
from memory_core.kernel import ids
from memory_core.kernel.errors import InvalidInput

# Slack's files depend on users.json next to them, so their items are not cached.
_NOT_REMEMBERED = {Format.JSON}


@dataclass(slots=True)
class ParsedFile:
    """The content of a file. `documents` is None if the cache has the file, so that it was not
    parsed. `digest` and `stamp` are the cache entry for next time."""

    file: FoundFile
    items: list[KnownItem] = field(default_factory=list)
    documents: list[Document] | None = None
    problems: list[SkippedPath] = field(default_factory=list)
    digest: str = ""
    stamp: str = ""
    # To be read message by message.
    is_mailbox: bool = False


class Reader:
    def __init__(
        self,
        caches: Mapping[str, FileCache],
        override: ArtifactType | None = None,
        within: Path | None = None,
        *,
        reread: bool = False,
    ) -> None:
        """`within`: nothing above this folder is read, even if the root begins higher up. `reread`:
        also read files whose state has not changed."""
        self._caches = caches
        self._override = override
        self._within = within
        self._reread = reread
        self._users: dict[tuple[str, str], Mapping[str, str]] = {}

    def read(self, file: FoundFile, *, afresh: bool = False) -> ParsedFile:
        """Never raises for a file's content. `afresh`: parse the file even if it is in the
        cache."""
        try:
            return self._read(file, afresh)
        except Unusable as problem:
            return ParsedFile(file, problems=[SkippedPath(file.path, str(problem), problem.kind)])
        except (InvalidInput, RecursionError, MemoryError) as error:
            reason = str(error) or f"cannot be read ({type(error).__name__})"
            return ParsedFile(file, problems=[SkippedPath(file.path, reason, "failed")])
        except Exception as error:
            reason = f"cannot be read: {type(error).__name__}: {error}"[:300]
            return ParsedFile(file, problems=[SkippedPath(file.path, reason, "failed")])

    def messages(self, mailbox: FoundFile) -> Generator[ParsedFile, None, None]:
        """The messages of a mailbox one by one, and at the end its cache entry. If the mailbox
        changes meanwhile, the messages read so far are kept, but one may have been cut or moved:
        then a problem marks the whole file as doubtful."""
        begun = time.time_ns()
        try:
            with (
                safe_files.opened(str(mailbox.root.path), mailbox.relative) as descriptor,
                os.fdopen(os.dup(descriptor), "rb") as file,
            ):
                before = os.fstat(descriptor)
                for number, data in enumerate(mbox.messages(file), start=1):
                    if number > LIMITS.mailbox_messages:
                        raise Unusable("a mailbox of more messages than are read: split it")
                    yield self.message_of(mailbox, number, data)
                if not safe_files.same(before, os.fstat(descriptor)):
                    raise Unusable(safe_files.CHANGES)
                yield ParsedFile(mailbox, stamp=safe_files.lasting_stamp(before, begun))
        except Unusable as problem:
            yield ParsedFile(
                mailbox, problems=[SkippedPath(mailbox.path, str(problem), problem.kind)]
            )
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            yield ParsedFile(mailbox, problems=[SkippedPath(mailbox.path, reason, "failed")])

    def message_of(self, file: FoundFile, number: int, data: bytes | None) -> ParsedFile:
        name = f"{file.path}#{number}"
        try:
            if data is None:
                raise Unusable(f"larger than {LIMITS.message_bytes / 1e6:.0f} MB")
            item = mail.parse(data)
            if item.global_id is None:
                digest = hashlib.sha256(data).hexdigest()[:16]
                item = replace(item, key=f"{file.relative}/{digest}")
            return self._parsed(file, [item])
        except Unusable as problem:
            return ParsedFile(file, problems=[SkippedPath(name, str(problem), problem.kind)])
        except Exception as error:
            reason = f"cannot be read: {type(error).__name__}: {error}"[:300]
            return ParsedFile(file, problems=[SkippedPath(name, reason, "failed")])

    def _read(self, file: FoundFile, afresh: bool) -> ParsedFile:
        if not afresh and not self._reread:
            cached = self._caches[file.root.name].recall_unread(file.relative, file.stamp)
            if cached is not None:
                return ParsedFile(file, cached)
        form = Format.TEXT

        def limit(head: bytes) -> int:
            nonlocal form
            form = formats.recognise(head, file.name, maildir=file.maildir)
            if form is Format.MBOX:
                raise _Mailbox
            return formats.limit(form)

        try:
            data, stamp = safe_files.read(str(file.root.path), file.relative, limit)
        except _Mailbox:
            return ParsedFile(file, is_mailbox=True)
        digest = hashlib.sha256(data).hexdigest()
        if form not in _NOT_REMEMBERED and not afresh:
            cached = self._caches[file.root.name].recall(file.relative, digest)
            if cached is not None:
                return ParsedFile(file, cached, digest=digest, stamp=stamp)
        parsed = self._parsed(file, self.items(file, form, data))
        if form not in _NOT_REMEMBERED and not parsed.problems:
            parsed.digest, parsed.stamp = digest, stamp
        return parsed

    def items(self, file: FoundFile, form: Format, data: bytes) -> list[Item]:
        """The items of these bytes, as the content of that file."""
        name = file.name
        if file.maildir:  # the flags after the colon change whenever a message is read
            name = name.with_name(name.name.partition(":")[0])
        made = formats.parse(form, data, name, lambda: self._names(file), file.root.name)
        return [replace(item, key=item.key or str(name)) for item in made]

    def document(self, file: FoundFile, item: Item, **origin: str) -> Document:
        return source_ids.document(item, file.root.name, file.relative, self._override, **origin)

    def _parsed(self, file: FoundFile, items: list[Item]) -> ParsedFile:
        documents, problems = [], []
        for item in items:
            try:
                documents.append(self.document(file, item))
            except InvalidInput as error:
                problems.append(SkippedPath(file.path, error.message, "failed"))
        identified = [identify(document) for document in documents]
        return ParsedFile(file, identified, documents, problems)

    def _names(self, file: FoundFile) -> Mapping[str, str]:
        """The names in users.json, in the file's folder or one above it, never above the root."""
        for folder in PurePosixPath(file.relative).parents:
            if self._within and not (file.root.path / folder).is_relative_to(self._within):
                break
            key = (file.root.name, str(folder))
            if key not in self._users:
                self._users[key] = self._load_names(file, folder)
            if self._users[key]:
                return self._users[key]
        return {}

    def _load_names(self, file: FoundFile, folder: PurePosixPath) -> Mapping[str, str]:
        relative = str(folder / "users.json")
        try:
            read = safe_files.read(str(file.root.path), relative, lambda _: LIMITS.text_bytes)
            return structured.read_users(read.data)
        except (Unusable, ValueError, RecursionError):
            return {}


class _Mailbox(Exception):
    """Raised from within `safe_files.read`: this file must not be read whole."""


def identify(document: Document) -> KnownItem:
    assert document.source_id is not None
    uid = ids.artifact_uid(document.source_system, document.source_id)
    return KnownItem(uid, ids.sha256(document.content), document.source_id)
