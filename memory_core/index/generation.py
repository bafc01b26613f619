"""A generation of the index: sets of collections in Chroma, one for each tenant, made with one
embedding model.

One serves searches. A rebuild, or another model, fills a new one while the old one serves; a row
in Postgres says which is which.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from memory_core.embedding import Embedder
from memory_core.kernel.database import Session
from memory_core.kernel.principal import DEFAULT_TENANT


class CollectionName(StrEnum):
    MEMORY = "memory"
    ARTIFACTS = "artifacts"
    CHUNKS = "artifact_chunks"
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class Generation:
    generation: int
    token: str
    state: str
    provider: str
    model: str
    dimension: int
    adopts: bool
    filled_after: str
    filled_at: datetime | None
    created_at: datetime

    def name_in_chroma(self, name: str, tenant_id: UUID = DEFAULT_TENANT) -> str:
        """The default tenant's collections have the names of the time before there were tenants."""
        own = f"{name}-{self.generation}-{self.token}"
        return own if tenant_id == DEFAULT_TENANT else f"{own}-{tenant_id.hex}"

    def names_of(self, tenant_id: UUID) -> list[str]:
        return [self.name_in_chroma(name, tenant_id) for name in CollectionName]

    def has_named(self, collection: str) -> bool:
        """Whether a collection is one of its own, whatever tenant's."""
        return collection.split("-")[1:3] == [str(self.generation), self.token]

    @property
    def label(self) -> dict[str, str | int]:
        """What marks its collections as ours."""
        return {"provider": self.provider, "model": self.model, "dimension": self.dimension}

    def fits(self, embedder: Embedder) -> bool:
        return self.label == label_of(embedder)


def belongs_to(tenant_id: UUID) -> Callable[[str], bool]:
    """Whether a collection is this tenant's, of whatever generation; not for the default tenant,
    whose collections do not name it."""
    return lambda collection: collection.endswith(f"-{tenant_id.hex}")


def label_of(embedder: Embedder) -> dict[str, str | int]:
    return {
        "provider": embedder.provider,
        "model": embedder.model,
        "dimension": embedder.dimension,
    }


async def serving(session: Session) -> Generation | None:
    return await session.row(Generation, "serving_generation")


async def live(session: Session) -> list[Generation]:
    """Those that are kept up to date, the one that serves first."""
    return await session.rows(Generation, "live_generations")


async def begin(session: Session, embedder: Embedder) -> Generation:
    """Ask for a new generation; the worker fills it. The first one serves from the beginning. One
    that is being filled for the same model goes on."""
    await session.run("lock_index")
    for known in await live(session):
        if known.state == "filling" and known.fits(embedder):
            return known
    await session.run("abandon_filling")
    return await first(session, embedder)


async def first(session: Session, embedder: Embedder) -> Generation:
    [begun] = await session.rows(Generation, "begin_generation", **label_of(embedder))
    return begun
