"""What a process needs to work with the memory: stores and embedder, opened on first use."""

import asyncio
import contextlib
from typing import Literal

from memory_core.database import Database
from memory_core.embedding import Embedder, build_embedder
from memory_core.index.store import VectorStore
from memory_core.log.change import Position
from memory_core.log.host import Host
from memory_core.log.waiting import wait_until
from memory_core.settings import Settings
from memory_core.stack.connection import Membership


class Runtime:
    """Opened lazily, so that a server can greet its client before anything is touched.

    When the settings name no Postgres or Chroma, it joins the stack of the data dir (starting
    the services if none runs), and joins again should that stack have ended meanwhile.

    `worker`: whether this process hosts the worker where no other does. With "when needed" it
    starts with the first change that this process makes, so that others pay nothing for it.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        worker: Literal["never", "when needed", "always"] = "never",
    ) -> None:
        self.settings = settings
        self._worker = worker
        self._host: Host | None = None
        self._membership = Membership(settings)
        self._opening = asyncio.Lock()
        self._database: Database | None = None
        self._vectors: VectorStore | None = None
        self._embedder: Embedder | None = None

    @property
    def database(self) -> Database:
        assert self._database is not None, "Runtime.open() comes first"
        return self._database

    @property
    def vectors(self) -> VectorStore:
        assert self._vectors is not None, "Runtime.open() comes first"
        return self._vectors

    @property
    def embedder(self) -> Embedder:
        assert self._embedder is not None, "Runtime.open() comes first"
        return self._embedder

    async def open(self) -> None:
        """Cheap when open already."""
        async with self._opening:
            if self._database is not None and not self._membership.lost:
                return
            await self._close_stores()
            self.settings = await asyncio.to_thread(self._membership.join)
            if self._embedder is None:
                self._embedder = await asyncio.to_thread(build_embedder, self.settings)
            assert self.settings.chroma_host is not None
            self._database = Database(self.settings.dsn)
            self._vectors = VectorStore(
                self.settings.chroma_host, self.settings.chroma_port, self._embedder, self._database
            )
            await self._database.open()
            if self._worker != "never":
                self._host = self._make_host(self._database)
                if self._worker == "always":
                    self._host.start()

    def _make_host(self, database: Database) -> Host:
        from memory_core.projections import duties, projections

        host = Host(database, lambda: projections(self), lambda: duties(self))
        database.on_append.append(host.start)
        return host

    async def indexed(self, position: Position | None) -> bool:
        """Whether the index has passed a change, waiting for it for INDEX_WAIT_MS at most."""
        if position is None:
            return True
        wait = self.settings.index_wait_ms / 1000
        return await wait_until(self.database, "index", position, wait)

    async def close(self, *, catch_up: bool = True) -> None:
        """`catch_up`: let a worker that this process hosts come to the end of the log first."""
        if self._host is not None and catch_up:
            await self._host.finish()
        await self._close_stores()
        if self._embedder is not None:
            await self._embedder.close()
            self._embedder = None
        await asyncio.to_thread(self._membership.leave)

    async def _close_stores(self) -> None:
        if self._host is not None:
            await self._host.stop()
            self._host = None
        if self._database is not None:
            with contextlib.suppress(Exception):
                await self._database.close()
        if self._vectors is not None:
            await self._vectors.close()
        self._database = self._vectors = None
