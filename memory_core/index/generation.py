"""A generation of the index: a set of collections in Chroma, made with one embedding model.

One serves searches. A rebuild, or another model, fills a new one while the old one serves; a row
in Postgres says which is which.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memory_core.embedding import Embedder
from memory_core.kernel.database import Row, Session


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
    made_at: datetime | None
    filled_after: str
    filled_at: datetime | None
    created_at: datetime

    @classmethod
    def of(cls, row: Row) -> "Generation":
        return cls(**row)

    def name_in_chroma(self, name: CollectionName) -> str:
        return f"{name.value}-{self.generation}-{self.token}"

    @property
    def label(self) -> dict[str, str | int]:
        """What marks its collections as ours."""
        return {"provider": self.provider, "model": self.model, "dimension": self.dimension}

    def fits(self, embedder: Embedder) -> bool:
        return self.label == label_of(embedder)


def label_of(embedder: Embedder) -> dict[str, str | int]:
    return {
        "provider": embedder.provider,
        "model": embedder.model,
        "dimension": embedder.dimension,
    }


async def serving(session: Session) -> Generation | None:
    row = await session.one("serving_generation")
    return None if row is None else Generation.of(row)


async def live(session: Session) -> list[Generation]:
    """Those that are kept up to date, the one that serves first."""
    return [Generation.of(row) for row in await session.all("live_generations")]


async def begin(session: Session, embedder: Embedder) -> Generation:
    """Ask for a new generation; the worker fills it. The first one serves from the beginning. One
    that is being filled for the same model goes on."""
    await session.run("lock_index")
    for known in await live(session):
        if known.state == "filling" and known.fits(embedder):
            return known
    await session.run("abandon_filling")
    row = await session.one("begin_generation", **label_of(embedder))
    assert row is not None
    return Generation.of(row)
