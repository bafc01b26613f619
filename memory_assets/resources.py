"""The memory as a Dagster resource: settings from the environment, stores opened per use."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import dagster as dg

from memory_core.database import Database
from memory_core.runtime import Runtime
from memory_core.settings import Settings, load_settings


class MemoryResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Postgres, Chroma and the embedder, as the environment names them."""

    @property
    def settings(self) -> Settings:
        return load_settings()

    @asynccontextmanager
    async def runtime(self) -> AsyncIterator[Runtime]:
        runtime = Runtime(self.settings)
        await runtime.open()
        try:
            yield runtime
        finally:
            await runtime.close()

    @asynccontextmanager
    async def database(self, connections: int = 1) -> AsyncIterator[Database]:
        """For what needs no more than a query or two."""
        database = Database(self.settings.dsn, max_connections=connections)
        await database.open()
        try:
            yield database
        finally:
            await database.close()
