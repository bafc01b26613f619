"""Reading one file: its bytes, what they are, and the documents they hold."""

import hashlib
import os
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from memory_core.artifacts.document import ArtifactType, Document
from memory_core.importing import files, formats, identity
from memory_core.importing.file_cache import KnownItem, Memo
from memory_core.importing.file_walk import FoundFile, Passed
from memory_core.importing.formats import Format, mail, mbox, structured
from memory_core.importing.item import Item, Unusable
from memory_core.importing.limits import LIMITS
from memory_core.kernel import ids
from memory_core.kernel.errors import InvalidInput

# Slack's files depend on users.json beside them.
_NOT_REMEMBERED = {Format.JSON}


@dataclass(slots=True)
class Parsed:
    """What a file holds. `documents` is None when the file is known, so that it was not parsed.
    `digest` and `stamp` are what it is to be known by next time."""

    found: FoundFile
    items: list[KnownItem] = field(default_factory=list)
    documents: list[Document] | None = None
    problems: list[Passed] = field(default_factory=list)
    digest: str = ""
    stamp: str = ""
    # A mailbox: to be read message by message.
    is_mailbox: bool = False


class Reader:
    def __init__(
        self,
        memos: Mapping[str, Memo],
        override: ArtifactType | None = None,
        within: Path | None = None,
        *,
        reread: bool = False,
    ) -> None:
        """`within`: nothing above this folder is read, also where a root begins higher up.
        `reread`: also read what looks as it did when it was read before."""
        self._memos = memos
        self._override = override
        self._within = within
        self._reread = reread
        self._users: dict[tuple[str, str], Mapping[str, str]] = {}

    def read(self, found: FoundFile, *, afresh: bool = False) -> Parsed:
        """Never raises for what is in a file. `afresh`: also parse what is known."""
        try:
            return self._read(found, afresh)
        except Unusable as problem:
            return Parsed(found, problems=[Passed(found.path, str(problem), problem.kind)])
        except (InvalidInput, RecursionError, MemoryError) as error:
            reason = str(error) or f"cannot be read ({type(error).__name__})"
            return Parsed(found, problems=[Passed(found.path, reason, "failed")])
        except Exception as error:
            reason = f"cannot be read: {type(error).__name__}: {error}"[:300]
            return Parsed(found, problems=[Passed(found.path, reason, "failed")])

    def messages(self, found: FoundFile) -> Generator[Parsed, None, None]:
        """A mailbox in parts, one message each, and at the end what it is to be known by. What was
        read of one that changes meanwhile is kept, but it may have been cut or moved: the problem
        makes the whole file doubtful."""
        begun = time.time_ns()
        try:
            with (
                files.opened(str(found.root.path), found.relative) as descriptor,
                os.fdopen(os.dup(descriptor), "rb") as file,
            ):
                before = os.fstat(descriptor)
                for number, data in enumerate(mbox.messages(file), start=1):
                    if number > LIMITS.mailbox_messages:
                        raise Unusable("a mailbox of more messages than are read: split it")
                    yield self.message_of(found, number, data)
                if not files.same(before, os.fstat(descriptor)):
                    raise Unusable(files.CHANGES)
                yield Parsed(found, stamp=files.lasting_stamp(before, begun))
        except Unusable as problem:
            yield Parsed(found, problems=[Passed(found.path, str(problem), problem.kind)])
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            yield Parsed(found, problems=[Passed(found.path, reason, "failed")])

    def message_of(self, found: FoundFile, number: int, data: bytes | None) -> Parsed:
        name = f"{found.path}#{number}"
        try:
            if data is None:
                raise Unusable(f"larger than {LIMITS.message_bytes / 1e6:.0f} MB")
            item = mail.parse(data)
            if item.global_id is None:
                digest = hashlib.sha256(data).hexdigest()[:16]
                item = replace(item, key=f"{found.relative}/{digest}")
            return self._parsed(found, [item])
        except Unusable as problem:
            return Parsed(found, problems=[Passed(name, str(problem), problem.kind)])
        except Exception as error:
            reason = f"cannot be read: {type(error).__name__}: {error}"[:300]
            return Parsed(found, problems=[Passed(name, reason, "failed")])

    def _read(self, found: FoundFile, afresh: bool) -> Parsed:
        if not afresh and not self._reread:
            known = self._memos[found.root.name].recall_unread(found.relative, found.stamp)
            if known is not None:
                return Parsed(found, known)
        form = Format.TEXT

        def limit(head: bytes) -> int:
            nonlocal form
            form = formats.recognise(head, found.name, maildir=found.maildir)
            if form is Format.MBOX:
                raise _Mailbox
            return formats.limit(form)

        try:
            data, stamp = files.read(str(found.root.path), found.relative, limit)
        except _Mailbox:
            return Parsed(found, is_mailbox=True)
        digest = hashlib.sha256(data).hexdigest()
        if form not in _NOT_REMEMBERED and not afresh:
            known = self._memos[found.root.name].recall(found.relative, digest)
            if known is not None:
                return Parsed(found, known, digest=digest, stamp=stamp)
        parsed = self._parsed(found, self.items(found, form, data))
        if form not in _NOT_REMEMBERED and not parsed.problems:
            parsed.digest, parsed.stamp = digest, stamp
        return parsed

    def items(self, found: FoundFile, form: Format, data: bytes) -> list[Item]:
        """What these bytes hold, were they the content of that file."""
        name = found.name
        if found.maildir:  # flags after the colon change whenever a message is read
            name = name.with_name(name.name.partition(":")[0])
        made = formats.parse(form, data, name, lambda: self._names(found), found.root.name)
        return [replace(item, key=item.key or str(name)) for item in made]

    def document(self, found: FoundFile, item: Item, **origin: str) -> Document:
        return identity.document(item, found.root.name, found.relative, self._override, **origin)

    def _parsed(self, found: FoundFile, items: list[Item]) -> Parsed:
        documents, problems = [], []
        for item in items:
            try:
                documents.append(self.document(found, item))
            except InvalidInput as error:
                problems.append(Passed(found.path, error.message, "failed"))
        known = [identify(document) for document in documents]
        return Parsed(found, known, documents, problems)

    def _names(self, found: FoundFile) -> Mapping[str, str]:
        """users.json in the file's folder or one above it, never above the root."""
        for folder in PurePosixPath(found.relative).parents:
            if self._within and not (found.root.path / folder).is_relative_to(self._within):
                break
            key = (found.root.name, str(folder))
            if key not in self._users:
                self._users[key] = self._load_names(found, folder)
            if self._users[key]:
                return self._users[key]
        return {}

    def _load_names(self, found: FoundFile, folder: PurePosixPath) -> Mapping[str, str]:
        relative = str(folder / "users.json")
        try:
            read = files.read(str(found.root.path), relative, lambda _: LIMITS.text_bytes)
            return structured.read_users(read.data)
        except (Unusable, ValueError, RecursionError):
            return {}


class _Mailbox(Exception):
    """Raised from within `files.read`: this one is not to be read whole."""


def identify(document: Document) -> KnownItem:
    assert document.source_id is not None
    uid = ids.artifact_uid(document.source_system, document.source_id)
    return KnownItem(uid, ids.sha256(document.content), document.source_id)
