"""What the page of an asset shows of a revision.

Dagster stores metadata for every document, so each fact is given once. `stored_events`, where
people look, has the document, its events and their cost. The other stages show only what they add.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import dagster as dg

from memory_assets.call_tree import call_tree
from memory_assets.specs import version_tags
from memory_core.kernel import ids
from memory_core.kernel.prices import Price
from memory_core.processing.extraction import Extraction
from memory_core.processing.stages import (
    CANONICAL_EVENTS,
    CHUNK_EXTRACTIONS,
    CHUNK_TEXT,
    EVENT_INDEX,
    STORED_EVENTS,
)
from memory_core.text.printable import in_markdown

_PREVIEW_ROWS = 10
_REJECTION_ROWS = 5
_LONGEST_CELL = 160


def materialisation(
    stage: str,
    extraction: Extraction,
    versions: Mapping[str, str],
    prices: Mapping[str, Price],
) -> dg.AssetMaterialization:
    shown = _OF_STAGE[stage](extraction)
    if stage in _SPENDS:
        shown |= _spending(extraction, _SPENDS[stage], prices)
    return dg.AssetMaterialization(
        asset_key=stage,
        partition=extraction.job.partition_key,
        metadata=shown,
        tags=version_tags(stage, versions, lambda made: _data_version(made, extraction)),
    )


def _document(extraction: Extraction) -> dict[str, Any]:
    revision = extraction.revision
    shown: dict[str, Any] = {
        "title": revision.title or "(untitled)",
        "source": revision.source_system,
    }
    if url := revision.source_url:
        # Only a web address becomes a link: the value came with the document.
        is_page = url.lower().startswith(("http://", "https://"))
        shown["source_url"] = dg.MetadataValue.url(url) if is_page else url
    return shown | {"artifact_uid": revision.artifact_uid, "revision": revision.revision_id}


def _chunks(extraction: Extraction) -> dict[str, Any]:
    return {"chunks": len(extraction.chunks)}


def _extractions(extraction: Extraction) -> dict[str, Any]:
    shown: dict[str, Any] = _where_any(
        rejected_events=len(extraction.rejections),
        refusals=len(extraction.refusals),
        cache_hits=extraction.cache_hits,
    )
    if extraction.rejections:
        shown["rejections"] = dg.MetadataValue.md(_rejections(extraction))
    return shown


def _canonical(extraction: Extraction) -> dict[str, Any]:
    return _where_any(
        merged_away=len(extraction.chunk_events) - len(extraction.events),
        not_asked_whether_the_same=extraction.ledger.unasked_merges,
    )


def _stored(extraction: Extraction) -> dict[str, Any]:
    by_category = Counter(event.category.value for event in extraction.events)
    again = extraction.job.attempts if extraction.job.attempts > 1 else 0
    return {
        **_document(extraction),
        "events": len(extraction.events),
        **_where_any(
            categories=", ".join(f"{count} {name}" for name, count in by_category.most_common())
        ),
        "preview": dg.MetadataValue.md(_preview(extraction)),
        **_where_any(rejected=len(extraction.rejections), attempt=again),
        "seconds": round(sum(extraction.seconds.values()), 3),
        # `mcp-memory trace` shows the request, every attempt and every call of it.
        **_where_any(trace_id=extraction.job.trace_id or ""),
    }


def _indexed(extraction: Extraction) -> dict[str, Any]:
    """How long the index took to have the events, or that it did not within INDEX_WAIT_MS."""
    shown: dict[str, Any] = {"lag_seconds": extraction.seconds.get(EVENT_INDEX, 0.0)}
    return shown if extraction.indexed else {"indexed": False, **shown}


def _where_any(**shown: int | str) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if value}


def _spending(
    extraction: Extraction, kinds: frozenset[str], prices: Mapping[str, Price]
) -> dict[str, Any]:
    """Calls, tokens and (where a price is set) the cost of this attempt alone."""
    # The list of calls grows while stages run, so it may already have calls of later stages.
    calls = [call for call in extraction.calls if call.kind in kinds]
    if not calls:
        return {}
    shown: dict[str, Any] = {
        "calls": len(calls),
        "prompt_tokens": sum(call.prompt_tokens for call in calls),
        "completion_tokens": sum(call.completion_tokens for call in calls),
    }
    if prices and all(call.model in prices for call in calls):
        costs = (
            prices[call.model].of(call.prompt_tokens, call.completion_tokens) for call in calls
        )
        shown["cost"] = round(sum(costs, 0.0), 6)
    if kinds == _ALL_CALLS:
        shown["calls_by_chunk"] = dg.MetadataValue.md(call_tree(calls, prices))
    return shown


_OF_STAGE = {
    CHUNK_TEXT: _chunks,
    CHUNK_EXTRACTIONS: _extractions,
    CANONICAL_EVENTS: _canonical,
    STORED_EVENTS: _stored,
    EVENT_INDEX: _indexed,
}
_ALL_CALLS = frozenset({"extract", "merge"})
# `stored_events` shows the sum of all calls. `canonical_events` shows the share of the merge
# questions.
_SPENDS = {
    CANONICAL_EVENTS: frozenset({"merge"}),
    STORED_EVENTS: _ALL_CALLS,
}


def _preview(extraction: Extraction) -> str:
    if not extraction.events:
        return "No events."
    lines = ["| category | event | quote |", "|---|---|---|"]
    for event in extraction.events[:_PREVIEW_ROWS]:
        narrative, quote = event.narrative, event.evidence[0].quote
        # A narrative that contains the quote is enough: the quote is not repeated.
        shown = "" if quote in narrative else f"“{_cell(quote)}”"
        # "by Friday" alone does not say which day was understood.
        due = f", due {event.due.time.date().isoformat()}" if event.due else ""
        lines.append(f"| {event.category.value}{due} | {_cell(narrative)} | {shown} |")
    more = len(extraction.events) - _PREVIEW_ROWS
    return "\n".join(lines) + (f"\n\n… and {more} more." if more > 0 else "")


def _rejections(extraction: Extraction) -> str:
    by_reason = Counter(item.reason for item in extraction.rejections)
    lines = ["| reason | events |", "|---|---|"]
    lines += [f"| {_cell(reason)} | {count} |" for reason, count in by_reason.most_common()]
    lines += ["", "| chunk | reason | detail |", "|---|---|---|"]
    for item in extraction.rejections[:_REJECTION_ROWS]:
        lines.append(f"| {item.chunk_index} | {_cell(item.reason)} | {_cell(item.detail)} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    flat = " ".join(text.split())
    if len(flat) > _LONGEST_CELL:
        flat = flat[: _LONGEST_CELL - 1] + "…"
    return in_markdown(flat)


def _data_version(stage: str, extraction: Extraction) -> str:
    if stage == CHUNK_TEXT:
        return extraction.job.revision_id
    content: object = extraction.events
    if stage == CHUNK_EXTRACTIONS:
        content = extraction.chunk_events
    return ids.sha256(f"{stage}:{extraction.job.revision_id}:{content!r}")[:16]
