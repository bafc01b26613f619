"""The runtime of a process: Postgres, Chroma and embedder, opened on first use."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Literal, Protocol

from memory_core.embedding import Embedder, build_embedder
from memory_core.index.store import VectorStore
from memory_core.kernel import migrations
from memory_core.kernel.database import Database
from memory_core.kernel.orchestrator import NoOrchestrator, Orchestrator
from memory_core.kernel.settings import Settings
from memory_core.log.change import Position
from memory_core.log.host import Host
from memory_core.log.projection_wait import wait_until
from memory_core.telemetry.audit import Audit


class Services(Protocol):
    """Where Postgres and Chroma come from."""

    def join(self) -> Settings:
        """The settings with the addresses of both, once they are ready. Can be called again after a
        loss."""

    @property
    def lost(self) -> bool:
        """Whether they have ended since the process joined them."""

    def leave(self) -> None: ...


class NamedServices:
    """Servers that the settings name. They already run, and stay running."""

    lost = False

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def join(self) -> Settings:
        migrations.apply(self._settings.dsn)
        return self._settings

    def leave(self) -> None:
        """Does nothing: this process did not start them."""


class Runtime:
    """Opened lazily, so that a server can greet its client before it connects to anything.

    `services`: provides Postgres and Chroma; without it, the settings name both. Services that have
    ended meanwhile are joined again.

    `orchestrator`: the program that runs extractions and keeps records about each document.

    `worker`: whether this process hosts the worker if no other process does. With "when needed" the
    worker starts with the first change that this process makes, so that a reading process does not
    pay for it. `make_host` creates its host.

    `system`: why this process sees the rows of all principals. `unasked`: why it does so outside of
    a request.
    """

    def __init__(
        self,
        settings: Settings,
        services: Services | None = None,
        orchestrator: Orchestrator | None = None,
        *,
        worker: Literal["never", "when needed", "always"] = "never",
        make_host: "Callable[[Runtime], Host] | None" = None,
        system: str | None = None,
        unasked: str | None = None,
    ) -> None:
        self.settings = settings
        self.orchestrator = orchestrator or NoOrchestrator()
        self._system, self._unasked = system, unasked
        assert worker == "never" or make_host is not None, "a worker needs a host"
        self._worker, self._make_host = worker, make_host
        self._host: Host | None = None
        self._services = services or NamedServices(settings)
        self._opening = asyncio.Lock()
        self._database: Database | None = None
        self._vectors: VectorStore | None = None
        self._embedder: Embedder | None = None
        self.audit = Audit(lambda: self._database, keeps=settings.audit_days > 0)

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

    @property
    def pool_stats(self) -> dict[str, int]:
        """Statistics of the pool of Postgres connections; empty while there is no pool."""
        return {} if self._database is None else self._database.pool_stats

    async def open(self) -> None:
        """Open the stores. Cheap if they are already open."""
        async with self._opening:
            if self._database is not None and not self._services.lost:
                return
            await self._close_stores()
            self.settings = await asyncio.to_thread(self._services.join)
            if self._embedder is None:
                self._embedder = await asyncio.to_thread(build_embedder, self.settings)
            assert self.settings.chroma_host is not None
            self._database = Database(self.settings.dsn, system=self._system, unasked=self._unasked)
            self._vectors = VectorStore(
                self.settings.chroma_host, self.settings.chroma_port, self._embedder, self._database
            )
            await self._database.open()
            if self._make_host is not None and self._worker != "never":
                self._host = self._make_host(self)
                self._database.on_append.append(self._host.start)
                if self._worker == "always":
                    self._host.start()

    async def indexed(self, position: Position | None) -> bool:
        """Whether the index has passed a change. Waits at most INDEX_WAIT_MS."""
        if position is None:
            return True
        wait = self.settings.index_wait_ms / 1000
        if not wait:
            return False  # no wait: right after a change the index has never passed it
        return await wait_until(self.database, "index", position, wait)

    async def close(self, *, catch_up: bool = True) -> None:
        """`catch_up`: let a worker in this process reach the end of the log first."""
        if self._host is not None and catch_up:
            await self._host.finish()
        await self.audit.close()
        await self._close_stores()
        if self._embedder is not None:
            await self._embedder.close()
            self._embedder = None
        await asyncio.to_thread(self._services.leave)

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
