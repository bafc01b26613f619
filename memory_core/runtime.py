"""What a process needs to work with the memory: stores and embedder, opened on first use."""

import asyncio
import contextlib

from memory_core.database import Database
from memory_core.embedding import Embedder, build_embedder
from memory_core.settings import Settings
from memory_core.stack.connection import Membership
from memory_core.vectors import VectorStore


class Runtime:
    """Opened lazily, so that a server can greet its client before anything is touched.

    When the settings name no Postgres or Chroma, it joins the stack of the data dir (starting
    the services if none runs), and joins again should that stack have ended meanwhile.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
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
            self._vectors = VectorStore(
                self.settings.chroma_host, self.settings.chroma_port, self._embedder
            )
            self._database = Database(self.settings.dsn)
            await self._database.open()

    async def warm_up(self) -> None:
        """Load now what the first use would load: for a process that holds leases from then on."""
        await asyncio.gather(self.vectors.heartbeat(), self.embedder.embed(["warm"]))

    async def close(self) -> None:
        await self._close_stores()
        if self._embedder is not None:
            await self._embedder.close()
            self._embedder = None
        await asyncio.to_thread(self._membership.leave)

    async def _close_stores(self) -> None:
        if self._database is not None:
            with contextlib.suppress(Exception):
                await self._database.close()
        if self._vectors is not None:
            await self._vectors.close()
        self._database = self._vectors = None
