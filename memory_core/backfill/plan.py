"""`backfill plan`: what is outdated, and what renewing it would cost."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from memory_core.backfill.estimate import Cost, Estimator, TokenRates
from memory_core.backfill.rows import OutdatedRevision, VersionCount
from memory_core.backfill.scope import Filter, Scope
from memory_core.extraction.current_versions import current
from memory_core.queue.versions import Versions, number
from memory_core.runtime import Runtime


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    versions: Versions
    filter: Filter
    revisions: int
    latest: int
    cost: Cost
    rates: TokenRates
    tokens_per_day: int
    made_with: list[VersionCount]  # versions of all revisions, with counts
    warnings: list[str]

    @property
    def days(self) -> int | None:
        """Days at the daily limit; None if it would never end."""
        if self.cost.tokens == 0:
            return 0
        return ceil(self.cost.tokens / self.tokens_per_day) if self.tokens_per_day else None

    def as_json(self) -> dict[str, Any]:
        return {
            "versions": asdict(self.versions),
            "filter": self.filter.as_json(),
            "revisions": self.revisions,
            "latest": self.latest,
            "superseded": self.revisions - self.latest,
            "chunks": self.cost.chunks,
            "distinct_chunks": self.cost.distinct_chunks,
            "cached_chunks": self.cost.cached_chunks,
            "chunk_calls": self.cost.chunk_calls,
            "merge_calls": self.cost.merge_calls,
            "calls": self.cost.calls,
            "prompt_tokens": round(self.cost.prompt_tokens),
            "completion_tokens": round(self.cost.completion_tokens),
            "tokens": self.cost.tokens,
            "days": self.days,
            "tokens_per_day": self.tokens_per_day,
            "past_calls": self.rates.past_calls,
            "made_with": [asdict(row) for row in self.made_with],
            "warnings": self.warnings,
        }


async def make_plan(
    runtime: Runtime, chosen: Filter | None = None, *, other_models: bool = False
) -> BackfillPlan:
    """Make a plan. It only reads."""
    settings = runtime.settings
    scope = Scope(current(settings), chosen or Filter(), other_models)
    async with runtime.database.transaction() as session:
        rows = await session.rows(OutdatedRevision, "outdated_revisions", **scope.parameters())
        made_with = await session.rows(VersionCount, "version_counts")
        estimator = Estimator(session, settings, scope.versions)
        total = Cost()
        for cost in await estimator.price(rows):
            total.add(cost)
        rates = await estimator.rates(rows)
    return BackfillPlan(
        versions=scope.versions,
        filter=scope.filter,
        revisions=len(rows),
        latest=sum(row.is_latest for row in rows),
        cost=total,
        rates=rates,
        tokens_per_day=settings.backfill_tokens_per_day,
        made_with=made_with,
        warnings=list(_warnings(scope, made_with, rates)),
    )


def _warnings(scope: Scope, made_with: list[VersionCount], rates: TokenRates) -> Iterable[str]:
    ours = scope.versions
    newer = same_number = others = 0
    for row in made_with:
        if row.extractor != ours.extractor or row.model != ours.model:
            others += row.revisions
        if row.extractor != ours.extractor:
            continue
        newer += row.revisions * (
            number(row.extract_version) > ours.extract_number
            or number(row.merge_version) > ours.merge_number
        )
        same_number += row.revisions * (
            _same_number_other_text(row.extract_version, ours.extract)
            or _same_number_other_text(row.merge_version, ours.merge)
        )
    if same_number:
        yield (
            f"{same_number} revisions were made with another text under the number of a prompt of "
            "ours. They do not count as outdated: give the changed prompt the next number."
        )
    if newer:
        yield f"{newer} revisions were made with a newer prompt than ours and are left alone."
    if others and not scope.other_models:
        yield (
            f"{others} revisions were made by another extractor or model. That alone is no "
            "upgrade; --other-models includes them."
        )
    if ours.extractor == "openai" and not rates.past_calls:
        yield (
            f"{ours.model} was never called from here: the length of its answers is a guess. "
            "`mcp-memory backfill trial` makes it a measurement."
        )


def _same_number_other_text(stored: str, ours: str) -> bool:
    return number(stored) == number(ours) and stored != ours
