"""Row types of the backfill queries."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_core.extraction.model import ReadLabels


@dataclass(frozen=True, slots=True)
class Backfill:
    backfill_id: UUID
    status: str
    filter: dict[str, Any]
    other_models: bool
    extractor: str
    model: str
    extract_version: str
    merge_version: str
    requested_by: str
    estimate: dict[str, Any]
    reason: str | None
    last_tick_at: datetime | None
    last_tick: str | None
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """How many requested revisions of a backfill are in which state."""

    done: int
    failed: int
    working: int
    waiting: int
    overtaken: int
    used_tokens: int
    calls: int

    @property
    def in_queue(self) -> int:
        return self.waiting + self.working


@dataclass(frozen=True, slots=True)
class Endings:
    ended: int
    failed: int


@dataclass(frozen=True, slots=True)
class Wants:
    running: bool
    withdrawing: bool


@dataclass(frozen=True, slots=True)
class OutdatedRevision:
    artifact_uid: str
    revision_id: str
    is_latest: bool
    chunk_count: int
    job_id: UUID
    extractor: str
    model: str
    extract_version: str
    merge_version: str


@dataclass(frozen=True, slots=True)
class VersionCount:
    extractor: str
    model: str
    extract_version: str
    merge_version: str
    revisions: int


@dataclass(frozen=True, slots=True)
class PricedChunk(ReadLabels):
    position: int  # the number of its revision, from 1
    content_hash: str
    token_count: int


@dataclass(frozen=True, slots=True)
class CallRates:
    calls: int
    completion_tokens: int
    billed_tokens: int
    counted_tokens: int


@dataclass(frozen=True, slots=True)
class MergeCalls:
    job_id: UUID
    calls: int
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class CachedNumber:
    number: int  # its number in the request, from 1


@dataclass(frozen=True, slots=True)
class TrialHead:
    trial_id: UUID
    filter: dict[str, Any]
    sample: int
    seed: int
    extractor: str
    model: str
    extract_version: str
    merge_version: str
    requested_by: str
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class TrialRevision:
    artifact_uid: str
    revision_id: str
    position: int
    extract_version: str
    merge_version: str
    comparison: dict[str, list[dict[str, Any]]]
    rejected_before: int
    rejected: int
    calls: int
    cache_hits: int
    prompt_tokens: int
    completion_tokens: int
    error: str | None
    title: str | None
    partition_key: str | None
    source_system: str
