"""The embedded default: WordLlama, whose weights come in its wheel. No key, no network."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memory_core.embedding import Vector

_DIMENSION = 256
# So few characters are embedded in less time than a thread takes to begin.
_AT_ONCE_CHARS = 1_000


class LocalEmbedder:
    provider = "local"
    model = "wordllama-l2-supercat-256"
    dimension = _DIMENSION

    def __init__(self) -> None:
        self._model: Any = None
        self._loading = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if self._model is not None and sum(map(len, texts)) <= _AT_ONCE_CHARS:
            return self._embed(list(texts))
        return await asyncio.to_thread(self._embed, list(texts))

    async def close(self) -> None:
        self._model = None

    def _embed(self, texts: list[str]) -> list[Vector]:
        if not texts:
            return []
        vectors: list[Vector] = self._loaded().embed(texts, norm=True).tolist()
        return vectors

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                root = logging.getLogger()
                handlers, level = list(root.handlers), root.level
                import wordllama

                # Importing it configures the root logger; that is ours to do.
                root.handlers[:], root.level = handlers, level
                self._model = wordllama.WordLlama.load(
                    cache_dir=Path(wordllama.__file__).parent,
                    dim=_DIMENSION,
                    disable_download=True,
                )
        return self._model
