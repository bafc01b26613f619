"""The memory as a Dagster resource: settings come from the environment, stores are opened per
use."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import dagster as dg

from memory_core.kernel.database import Database
from memory_core.kernel.logging_setup import formatter
from memory_core.kernel.settings import Settings, load_settings
from memory_core.runtime import Runtime
from stack.dagster_orchestrator import DagsterOrchestrator

T = TypeVar("T")
_WHY = "Dagster works on the jobs of all tenants"


def log_to_stderr(level: str, log_format: str) -> None:
    """Write log lines of the core to the output of the run, and so to the log of the code
    server."""
    ours = logging.getLogger("memory_core")
    ours.setLevel(level)
    if not ours.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(formatter(log_format))
        ours.addHandler(handler)


class MemoryResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Postgres, Chroma and the embedder, as the environment configures them."""

    @property
    def settings(self) -> Settings:
        return load_settings()

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        log_to_stderr(self.settings.log_level, self.settings.log_format)

    @asynccontextmanager
    async def runtime(self) -> AsyncIterator[Runtime]:
        runtime = Runtime(self.settings, orchestrator=DagsterOrchestrator(), system=_WHY)
        await runtime.open()
        try:
            yield runtime
        finally:
            await runtime.close()

    @asynccontextmanager
    async def database(self, connections: int = 1) -> AsyncIterator[Database]:
        """A small pool, for code that needs only a query or two."""
        database = Database(self.settings.dsn, max_connections=connections, system=_WHY)
        await database.open()
        try:
            yield database
        finally:
            await database.close()

    def ask(self, question: Callable[[Database], Awaitable[T]]) -> T:
        """The answer to one question to Postgres, from code that is not asynchronous itself."""

        async def answer() -> T:
            async with self.database() as database:
                return await question(database)

        return asyncio.run(answer())
