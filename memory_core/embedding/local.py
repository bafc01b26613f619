"""The default embedder: WordLlama, whose weights come in its wheel. It needs no key and no
network."""

import asyncio
import logging
import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from memory_core.embedding import Vector

_DIMENSION = 256
# Embedding so few characters takes less time than starting a thread.
_AT_ONCE_CHARS = 1_000
# Words that are a single token of the model: tokens that begin a word.
_WHOLE_WORD = re.compile("▁([a-z]{3,})")
_RELATED = 12
_REMEMBERED_WORDS = 10_000


class _Words:
    """The vectors of whole words, minus their mean."""

    def __init__(self, model: Any) -> None:
        import numpy

        vocabulary = {
            match[1]: number
            for token, number in model.tokenizer.get_vocab().items()
            if (match := _WHOLE_WORD.fullmatch(token))
        }
        self._words = sorted(vocabulary)
        self._numbers = {word: number for number, word in enumerate(self._words)}
        vectors = model.embedding[[vocabulary[word] for word in self._words]]
        vectors = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
        vectors -= vectors.mean(axis=0)
        self._vectors = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
        # People repeat the same words in their queries.
        self.nearest = lru_cache(maxsize=_REMEMBERED_WORDS)(self._nearest)

    def _nearest(self, word: str) -> list[tuple[str, float]]:
        number = self._numbers.get(word)
        if number is None:
            return []
        cosines = self._vectors @ self._vectors[number]
        cosines[number] = -1.0
        best = cosines.argpartition(-_RELATED)[-_RELATED:]
        nearest = best[cosines[best].argsort()[::-1]]
        return [(self._words[other], float(cosines[other])) for other in nearest]


class LocalEmbedder:
    provider = "local"
    model = "wordllama-l2-supercat-256"
    dimension = _DIMENSION
    is_cheap = True

    def __init__(self) -> None:
        self._model: Any = None
        self._words: _Words | None = None
        self._loading = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if self._model is not None and sum(map(len, texts)) <= _AT_ONCE_CHARS:
            return self._embed(list(texts))
        return await asyncio.to_thread(self._embed, list(texts))

    def related(self, word: str) -> list[tuple[str, float]]:
        """Empty until the first text was embedded, because loading the model takes a while."""
        if self._model is None:
            return []
        if self._words is None:
            self._words = _Words(self._model)
        return self._words.nearest(word)

    def load(self) -> None:
        """Load the model now, for callers that need related words only."""
        self._loaded()

    async def close(self) -> None:
        self._model = self._words = None

    def _embed(self, texts: list[str]) -> list[Vector]:
        if not texts:
            return []
        vectors: list[Vector] = self._loaded().embed(texts, norm=True).tolist()
        return vectors

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                # Importing it configures the root logger, unless that has a handler. Undoing it
                # afterwards would be too late, because other threads log meanwhile.
                taken = logging.NullHandler()
                logging.getLogger().addHandler(taken)
                try:
                    import wordllama
                finally:
                    logging.getLogger().removeHandler(taken)
                self._model = wordllama.WordLlama.load(
                    cache_dir=Path(wordllama.__file__).parent,
                    dim=_DIMENSION,
                    disable_download=True,
                )
        return self._model
