"""Embeddings: one protocol, one module per provider."""

from typing import TYPE_CHECKING, Protocol

from memory_core.kernel.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

Vector = list[float]


class Embedder(Protocol):
    """Turns texts into vectors of one model and one dimension."""

    @property
    def provider(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def dimension(self) -> int: ...

    @property
    def is_cheap(self) -> bool:
        """Whether a search may embed some passages during the call."""
        ...

    def related(self, word: str) -> "Sequence[tuple[str, float]]":
        """Words of similar meaning with their cosines, nearest first; empty if the model cannot
        tell."""
        ...

    async def embed(self, texts: "Sequence[str]") -> list[Vector]:
        """One vector per text, in order. Raises ProviderFault."""
        ...

    async def close(self) -> None: ...


def build_embedder(settings: Settings) -> Embedder:
    # Imported here: each import takes a second that a command without embeddings need not spend.
    if settings.uses_openai_embedder:
        from memory_core.embedding.openai import OpenAIEmbedder

        return OpenAIEmbedder(settings)
    if settings.local_embedder == "minilm":
        from memory_core.embedding.minilm import MiniLmEmbedder

        return MiniLmEmbedder()
    from memory_core.embedding.local import LocalEmbedder

    return LocalEmbedder()
