"""A generation of the index: collections in Chroma for all tenants, made with one embedding model.

One generation serves searches. A rebuild, or another model, fills a new one while the old one
serves. Rows in Postgres say which is which.
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
        """The default tenant's collections keep the names from before there were tenants."""
        own = f"{name}-{self.generation}-{self.token}"
        return own if tenant_id == DEFAULT_TENANT else f"{own}-{tenant_id.hex}"

    def names_of(self, tenant_id: UUID) -> list[str]:
        return [self.name_in_chroma(name, tenant_id) for name in CollectionName]

    def has_named(self, collection: str) -> bool:
        """Whether a collection belongs to this generation, of any tenant."""
        return collection.split("-")[1:3] == [str(self.generation), self.token]

    @property
    def label(self) -> dict[str, str | int]:
        """The metadata that marks its collections as ours."""
        return {"provider": self.provider, "model": self.model, "dimension": self.dimension}

    def fits(self, embedder: Embedder) -> bool:
        return self.label == label_of(embedder)


def belongs_to(tenant_id: UUID) -> Callable[[str], bool]:
    """Whether a collection belongs to this tenant, in any generation. Not for the default tenant,
    whose collections do not contain its id."""
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
    """The generations that are kept up to date, the serving one first."""
    return await session.rows(Generation, "live_generations")


async def begin(session: Session, embedder: Embedder) -> Generation:
    """Request a new generation; the worker fills it. The first one serves from the start. An
    unfinished generation for the same model is continued."""
    await session.run("lock_index")
    for generation in await live(session):
        if generation.state == "filling" and generation.fits(embedder):
            return generation
    await session.run("abandon_filling")
    return await first(session, embedder)


async def first(session: Session, embedder: Embedder) -> Generation:
    return await session.only(Generation, "begin_generation", **label_of(embedder))
