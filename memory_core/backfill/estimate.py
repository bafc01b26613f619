"""Estimating what it costs to extract revisions again, before it is paid for.

The number of chunk calls is exact: the questions are built as the extractor builds them, and a
question that is cached, or that another revision asks as well, costs nothing. Tokens are our own
count, scaled by the provider's bills for past calls; answers are assumed to be as long as past
ones. Merge questions depend on the answers, so last time's figures are used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from memory_core.backfill.rows import (
    CachedNumber,
    CallRates,
    MergeCalls,
    OutdatedRevision,
    PricedChunk,
)
from memory_core.extraction import prompts
from memory_core.extraction.answer_cache import AnswerKey, context_hash
from memory_core.extraction.model import DocumentContext
from memory_core.kernel.database import Session
from memory_core.kernel.settings import Settings
from memory_core.queue.versions import Versions
from memory_core.text.tokens import count_tokens

_PAGE = 500
# Used where no answer was ever billed: the length of an average answer about a chunk.
_ANSWER_TOKENS = 400.0


@dataclass(slots=True)
class Cost:
    """The cost of one revision, or the sum over many."""

    chunks: int = 0
    distinct_chunks: int = 0  # without chunks of revisions that were priced before
    cached_chunks: int = 0  # among the distinct chunks
    merge_calls: int = 0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0

    @property
    def chunk_calls(self) -> int:
        return self.distinct_chunks - self.cached_chunks

    @property
    def calls(self) -> int:
        return self.chunk_calls + self.merge_calls

    @property
    def tokens(self) -> int:
        return round(self.prompt_tokens + self.completion_tokens)

    def add(self, other: "Cost") -> None:
        self.chunks += other.chunks
        self.distinct_chunks += other.distinct_chunks
        self.cached_chunks += other.cached_chunks
        self.merge_calls += other.merge_calls
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens


@dataclass(frozen=True, slots=True)
class TokenRates:
    scale: float  # billed tokens per token of our count
    answer_tokens: float
    past_calls: int  # number of calls that the rates are based on; 0: a guess


class Estimator:
    """Prices revisions in the given order. A question counts for the first revision that asks
    it."""

    def __init__(self, session: Session, settings: Settings, versions: Versions) -> None:
        self._session = session
        self._settings = settings
        self._versions = versions
        self._asked: set[bytes] = set()
        self._contexts: dict[DocumentContext, tuple[str, int]] = {}

    async def price(self, revisions: Sequence[OutdatedRevision]) -> list[Cost]:
        costs: list[Cost] = []
        rates = await self.rates(revisions)
        for start in range(0, len(revisions), _PAGE):
            costs += await self._price_page(revisions[start : start + _PAGE], rates)
        return costs

    async def rates(self, revisions: Sequence[OutdatedRevision]) -> TokenRates:
        """Rates from past calls about these revisions if there are any, or else from recent
        calls."""
        model, jobs = self._versions.model, [row.job_id for row in revisions]
        own = await self._session.row(CallRates, "call_rates_of_jobs", model=model, job_ids=jobs)
        recent = await self._session.row(CallRates, "recent_call_rates", model=model)
        measured = [row for row in (own, recent) if row is not None]
        called = next((row for row in measured if row.calls), None)
        counted = next((row for row in measured if row.counted_tokens), None)
        if called is None:
            return TokenRates(1.0, _ANSWER_TOKENS, 0)
        return TokenRates(
            scale=counted.billed_tokens / counted.counted_tokens if counted else 1.0,
            answer_tokens=called.completion_tokens / called.calls,
            past_calls=called.calls,
        )

    async def _price_page(self, page: Sequence[OutdatedRevision], rates: TokenRates) -> list[Cost]:
        costs = [Cost() for _ in page]
        if self._versions.extractor != "openai":
            for cost, row in zip(costs, page, strict=True):
                cost.chunks = cost.distinct_chunks = cost.cached_chunks = row.chunk_count
            return costs
        await self._price_chunks(page, costs, rates)
        await self._price_merges(page, costs, rates)
        return costs

    async def _price_chunks(
        self, page: Sequence[OutdatedRevision], costs: list[Cost], rates: TokenRates
    ) -> None:
        rows = await self._session.rows(
            PricedChunk,
            "chunks_to_price",
            uids=[row.artifact_uid for row in page],
            revisions=[row.revision_id for row in page],
        )
        questions: dict[AnswerKey, tuple[int, int]] = {}
        for row in rows:
            position = row.position - 1
            costs[position].chunks += 1
            hashed, context_tokens = self._measured(row.context)
            key = AnswerKey(row.content_hash, hashed, self._versions.extract, self._versions.model)
            if (mark := _short_hash(key)) not in self._asked:
                self._asked.add(mark)
                questions[key] = (position, context_tokens + row.token_count)
        cached = await self._cached_keys(list(questions))
        instructions = count_tokens(self._prompt("extract").text)
        for key, (position, tokens) in questions.items():
            cost = costs[position]
            cost.distinct_chunks += 1
            if key in cached:
                cost.cached_chunks += 1
            else:
                cost.prompt_tokens += rates.scale * (instructions + tokens)
                cost.completion_tokens += rates.answer_tokens

    async def _cached_keys(self, keys: list[AnswerKey]) -> set[AnswerKey]:
        rows = await self._session.rows(
            CachedNumber,
            "known_answers",
            chunk_hashes=[key.chunk_hash for key in keys],
            context_hashes=[key.context_hash for key in keys],
            prompt_versions=[key.prompt_version for key in keys],
            models=[key.model for key in keys],
        )
        return {keys[row.number - 1] for row in rows}

    async def _price_merges(
        self, page: Sequence[OutdatedRevision], costs: list[Cost], rates: TokenRates
    ) -> None:
        rows = await self._session.rows(
            MergeCalls, "merge_calls_of_jobs", job_ids=[row.job_id for row in page]
        )
        last = {row.job_id: row for row in rows}
        for cost, row in zip(costs, page, strict=True):
            merges = last.get(row.job_id)
            if merges is None or not self._asks_to_merge(row, cost):
                continue
            longer = rates.scale * self._growth("merge", row.merge_version)
            cost.merge_calls += merges.calls
            cost.prompt_tokens += max(merges.prompt_tokens + merges.calls * longer, 0)
            cost.completion_tokens += merges.completion_tokens

    def _asks_to_merge(self, row: OutdatedRevision, cost: Cost) -> bool:
        """A new merge prompt asks every question again. Otherwise only new answers about chunks
        lead to new questions."""
        return row.merge_version != self._versions.merge or cost.chunk_calls > 0

    def _growth(self, name: str, version: str) -> int:
        """How many tokens the instructions have grown by; 0 if unknown."""
        prompt_texts = prompts.versions(name, self._settings.prompts_dir).values()
        before = next((prompt for prompt in prompt_texts if prompt.version == version), None)
        if before is None:
            return 0
        return count_tokens(self._prompt(name).text) - count_tokens(before.text)

    def _prompt(self, name: str) -> prompts.Prompt:
        return prompts.load(name, self._settings.prompts_dir)

    def _measured(self, context: DocumentContext) -> tuple[str, int]:
        """Its hash and tokens."""
        from memory_core.extraction.openai import describe

        if context not in self._contexts:
            self._contexts[context] = context_hash(context), count_tokens(describe(context))
        return self._contexts[context]


def _short_hash(key: AnswerKey) -> bytes:
    """A short hash: a plan remembers one for each of millions of chunks."""
    return blake2b(f"{key.chunk_hash}{key.context_hash}".encode(), digest_size=16).digest()
