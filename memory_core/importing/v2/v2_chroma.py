"""Version 2's Chroma: a server, or a directory of which our own server reads a copy.

Neither is ever written to. A directory is copied because Chroma changes what it opens.
"""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from memory_core.index.chroma import ChromaClient, ChromaFault, Collection
from memory_core.index.store import is_labelled
from memory_core.kernel.errors import ChromaUnavailable, InvalidInput
from memory_core.kernel.file_locks import FileLock

COLLECTIONS = ("memory", "history", "artifacts", "artifact_chunks")
_PAGE = 500
_LABELS: tuple[Literal["metadatas"], ...] = ("metadatas",)
_WHOLE: tuple[Literal["metadatas", "documents"], ...] = ("metadatas", "documents")
_SPARE_BYTES = 100_000_000

# Starts a Chroma server on a directory and yields its address; the server ends with the context.
Serve = Callable[[Path], AbstractAsyncContextManager[str]]


@dataclass(frozen=True, slots=True)
class Record:
    id: str
    text: str
    metadata: dict[str, Any]


class Source:
    def __init__(self, collections: dict[str, Collection]) -> None:
        self._collections = collections

    async def count(self, name: str) -> int:
        return int(await self._collections[name].call("count")) if name in self._collections else 0

    async def records(self, name: str, *, texts: bool = True) -> AsyncIterator[Record]:
        """All records of a collection, in pages; nothing if the collection does not exist."""
        offset = 0
        while name in self._collections:
            page = await self._page(self._collections[name], texts, limit=_PAGE, offset=offset)
            for record in page:
                yield record
            offset += len(page)
            if len(page) < _PAGE:
                return

    async def fetch(self, name: str, ids: Sequence[str]) -> list[Record]:
        records: list[Record] = []
        for start in range(0, len(ids), _PAGE):
            batch = ids[start : start + _PAGE]
            records += await self._page(self._collections[name], True, ids=batch)
        return records

    async def _page(self, collection: Collection, texts: bool, **which: Any) -> list[Record]:
        try:
            page = await collection.call("get", **which, include=_WHOLE if texts else _LABELS)
        except ChromaFault as error:
            raise ChromaUnavailable(
                f"Version 2's Chroma stopped answering: {error}. What was read is imported; run "
                "the command again to continue."
            ) from error
        documents = page["documents"] if texts else [""] * len(page["ids"])
        rows = zip(page["ids"], documents, page["metadatas"], strict=True)
        return [Record(id_, text or "", metadata or {}) for id_, text, metadata in rows]


@asynccontextmanager
async def opened(place: str, data_dir: Path, serve: Serve) -> AsyncIterator[Source]:
    """`place`: a directory, or the address of a server."""
    if place.startswith(("http://", "https://")):
        async with _connected(place) as source:
            yield source
        return
    directory = Path(place).expanduser()
    _refuse_no_chroma(directory, data_dir)
    with _copied(directory, data_dir) as copy:
        async with serve(copy) as address, _connected(address) as source:
            yield source


@asynccontextmanager
async def _connected(address: str) -> AsyncIterator[Source]:
    client = ChromaClient(address, 0)
    try:
        collections = await client.existing()
    except ChromaFault as error:
        raise ChromaUnavailable(
            f"{address} does not answer as a Chroma server of today does ({error}). Nothing was "
            "imported. If it is an old one, stop it and give its directory instead."
        ) from error
    wanted = {name: one for name, one in collections.items() if name in COLLECTIONS}
    if ours := sorted(name for name, one in wanted.items() if is_labelled(one.metadata)):
        raise InvalidInput(
            f"{', '.join(ours)} there belong to this version, not to version 2: nothing was "
            "imported. Postgres has all of their content."
        )
    if not wanted:
        raise InvalidInput(
            f"There is no collection of version 2 ({', '.join(COLLECTIONS)}) in it: nothing was "
            "imported."
        )
    try:
        yield Source(wanted)
    finally:
        await client.close()


def _refuse_no_chroma(directory: Path, data_dir: Path) -> None:
    if not (directory / "chroma.sqlite3").is_file():
        raise InvalidInput(
            f"{directory} is no directory of Chroma: it has no chroma.sqlite3. Give the directory "
            "that version 2's Chroma kept its data in, or the address of its server (http://…)."
        )
    own = data_dir / "chroma"
    if own.exists() and own.samefile(directory):
        raise InvalidInput(
            f"{directory} is where this version keeps its own index. Stop the stack, move that "
            "directory elsewhere, and import it from there: a new index is made by itself."
        )


@contextmanager
def _copied(directory: Path, data_dir: Path) -> Iterator[Path]:
    """A copy inside the data dir, so that the rest of a killed import is found and removed."""
    folder = data_dir / "import-v2"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FileLock(folder / "lock") as lock:
        if not lock.try_acquire():
            raise InvalidInput("Another import of version 2 is running: wait until it has ended.")
        copy = folder / "chroma"
        shutil.rmtree(copy, ignore_errors=True)
        size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
        if shutil.disk_usage(folder).free < size + _SPARE_BYTES:
            raise InvalidInput(
                f"{directory} is read from a copy of {size / 1e6:,.0f} MB in {folder}, for which "
                "there is no room. Nothing was imported. Make room, or start version 2's Chroma "
                "server and give its address."
            )
        try:
            shutil.copytree(directory, copy)
            yield copy
        finally:
            shutil.rmtree(copy, ignore_errors=True)
