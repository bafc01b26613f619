"""Embeddings from any OpenAI-compatible server, in concurrent batches, with retries."""

import asyncio
from collections.abc import Sequence

from memory_core.embedding import Vector
from memory_core.kernel import trace
from memory_core.kernel.errors import ErrorCode, ProviderFault
from memory_core.kernel.provider import build_client, with_retries
from memory_core.kernel.settings import Settings
from memory_core.telemetry.usage import spent

_CONCURRENT_BATCHES = 4


class OpenAIEmbedder:
    provider = "openai"
    is_cheap = False

    def __init__(self, settings: Settings) -> None:
        self.model = settings.openai_embed_model
        self.dimension = settings.openai_embed_dims
        self._batch_size = settings.openai_batch_size
        self._retries = settings.openai_max_retries
        self._price = settings.prices.get(self.model)
        self._client = build_client(settings)
        self._slots = asyncio.Semaphore(_CONCURRENT_BATCHES)

    def related(self, word: str) -> list[tuple[str, float]]:
        return []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        batches = [
            texts[start : start + self._batch_size]
            for start in range(0, len(texts), self._batch_size)
        ]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._embed_batch(batch)) for batch in batches]
        except* ProviderFault as faults:
            # The fault of one batch says enough, and callers expect it without a group around it.
            fault = faults.exceptions[0]
        else:
            return [vector for task in tasks for vector in task.result()]
        raise fault

    async def close(self) -> None:
        await self._client.close()

    async def _embed_batch(self, texts: Sequence[str]) -> list[Vector]:
        async with self._slots:
            vectors = await with_retries(lambda: self._ask(texts), retries=self._retries)
        self._refuse_wrong_shape(vectors, expected=len(texts))
        return vectors

    async def _ask(self, texts: Sequence[str]) -> list[Vector]:
        try:
            answer = await self._client.embeddings.create(
                model=self.model,
                input=list(texts),
                dimensions=self.dimension,
                encoding_format="float",
                extra_headers=trace.headers(),
            )
            self._count(answer.usage)
            return [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
        except (ValueError, TypeError, AttributeError) as error:  # not JSON, or of another shape
            raise ProviderFault(
                "The embedding server's answer cannot be read. Is OPENAI_BASE_URL right?",
                code=ErrorCode.OPENAI_ERROR,
            ) from error

    def _count(self, usage: object) -> None:
        tokens = getattr(usage, "total_tokens", None)  # not every server counts
        if type(tokens) is int and tokens > 0:
            spent(tokens, self._price.of(tokens, 0) if self._price else 0.0)

    def _refuse_wrong_shape(self, vectors: list[Vector], *, expected: int) -> None:
        dimensions = {len(vector) for vector in vectors}
        if len(vectors) != expected or dimensions - {self.dimension}:
            raise ProviderFault(
                f"The embedding server returned {len(vectors)} vectors of dimension "
                f"{sorted(dimensions)} for {expected} texts; expected dimension {self.dimension}. "
                "Set OPENAI_EMBED_DIMS to what the model gives.",
                code=ErrorCode.OPENAI_ERROR,
            )
