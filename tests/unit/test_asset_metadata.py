"""What a person sees of a revision on the page of an asset."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest

from memory_assets.metadata import materialisation
from memory_core.extraction.ledger import Ledger, ModelCall
from memory_core.extraction.model import (
    CanonicalEvent,
    Category,
    ChunkEvent,
    Due,
    Evidence,
    RejectedEvent,
    Subject,
    SubjectType,
)
from memory_core.kernel.prices import Price
from memory_core.processing.extraction import ExtractedRevision, Extraction
from memory_core.processing.stages import (
    CANONICAL_EVENTS,
    CHUNK_EXTRACTIONS,
    CHUNK_TEXT,
    STAGES,
    STORED_EVENTS,
)
from memory_core.queue.answers import Answers
from memory_core.queue.jobs import Job
from memory_core.text.chunk import Chunk

PRICES = {"m": Price(prompt=2.0, completion=10.0)}
VERSIONS = {stage: f"version of {stage}" for stage in STAGES}
SUBJECT = Subject(SubjectType.PROJECT, "Lantern")
HOSTILE = (
    "| broken | table |\n\n# Heading\n![x](http://evil.example/x.png) [click](javascript:alert(1)) "
    "<script>alert(1)</script> `code` *bold* __bold__ \\| \\\\"
)


def extraction(narrative: str = "Alice launched it.", **changes: Any) -> Extraction:
    job = Job(
        job_id=uuid4(),
        artifact_uid="uid_1",
        revision_id="rev_1",
        partition_key="minutes:uid_1:rev_1",
        attempts=2,
        max_attempts=5,
        generation=1,
        origin="ingest",
        answers=Answers.KNOWN,
        run_id="run",
    )
    revision = ExtractedRevision(
        artifact_uid="uid_1",
        revision_id="rev_1",
        title="Minutes",
        source_system="notes",
        source_url="https://notes.example/1",
        is_chunked=True,
        content="",
    )
    calls = [
        ModelCall("extract", "m", "ok", 12.0, prompt_tokens=100, completion_tokens=10),
        ModelCall("extract", "m", "OPENAI_TIMEOUT", 30.0),
        ModelCall("merge", "m", "ok", 9.0, prompt_tokens=50, completion_tokens=5),
    ]
    return Extraction(
        **{
            "job": job,
            "revision": revision,
            "chunks": [(Chunk(0, 0, 18, "Alice launched it.", 4), "a"), (_second(), "b")],
            "chunk_events": [_found("c0e0", narrative), _found("c1e0", narrative)],
            "rejections": [RejectedEvent("not_found", "no such words: 'moon'", 1)],
            "refusals": ["no"],
            "cache_hits": 1,
            "ledger": Ledger(job.job_id, job.generation, changes.pop("calls", calls)),
            "extract_version": "1-abc",
            "model": "m",
            "events": [_event(narrative)],
            "seconds": {CHUNK_EXTRACTIONS: 1.5, CANONICAL_EVENTS: 0.25},
            **changes,
        }
    )


def _second() -> Chunk:
    return Chunk(1, 15, 36, "it. Bob will test it.", 6)


def _evidence(quote: str = "Alice launched it.") -> Evidence:
    return Evidence(0, len(quote), quote, "exact", None)


def _found(id_: str, narrative: str) -> ChunkEvent:
    return ChunkEvent(id_, 0, Category.EXECUTION, SUBJECT, narrative, 0.9, _evidence())


def _event(narrative: str, category: Category = Category.EXECUTION) -> CanonicalEvent:
    quote = _evidence(narrative[:60] or "x")
    return CanonicalEvent(category, SUBJECT, narrative, 0.9, (quote,), ("c0e0", "c1e0"))


def materialised(stage: str, made: Extraction) -> dg.AssetMaterialization:
    return materialisation(stage, made, VERSIONS, {})


def shown(stage: str, made: Extraction, prices: dict[str, Price] | None = None) -> dict[str, Any]:
    event = materialisation(stage, made, VERSIONS, prices or {})
    return {name: value.value for name, value in event.metadata.items()}


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_shown_for_its_partition(stage: str) -> None:
    event = materialised(stage, extraction())

    assert event.asset_key == dg.AssetKey(stage)
    assert event.partition == "minutes:uid_1:rev_1"


def test_the_document_is_named_where_people_look_and_nowhere_else() -> None:
    document = {
        "title": "Minutes",
        "source": "notes",
        "source_url": "https://notes.example/1",
        "revision": "rev_1",
        "artifact_uid": "uid_1",
    }

    assert shown(STORED_EVENTS, extraction()).items() >= document.items()
    for stage in set(STAGES) - {STORED_EVENTS}:
        assert shown(stage, extraction()).keys().isdisjoint(document)


def test_what_the_events_took_is_told_once() -> None:
    names = [name for stage in STAGES for name in shown(stage, extraction())]

    assert {name for name in names if names.count(name) > 1} == {
        # Of merging alone, where that happens.
        "calls",
        "prompt_tokens",
        "completion_tokens",
    }


def test_a_document_needs_neither_title_nor_url() -> None:
    revision = replace(extraction().revision, title=None, source_url=None)
    metadata = shown(STORED_EVENTS, extraction(revision=revision))

    assert metadata["title"] == "(untitled)"
    assert "source_url" not in metadata


def test_chunk_text_counts_chunks() -> None:
    assert shown(CHUNK_TEXT, extraction()) == {"chunks": 2}


def test_chunk_extractions_tell_what_was_not_taken_over() -> None:
    assert (
        shown(CHUNK_EXTRACTIONS, extraction()).items()
        >= {"rejected_events": 1, "refusals": 1, "cache_hits": 1}.items()
    )
    nothing = extraction(rejections=[], refusals=[], cache_hits=0)
    assert shown(CHUNK_EXTRACTIONS, nothing) == {}


def test_rejections_are_shown_with_chunk_and_reason() -> None:
    metadata = shown(CHUNK_EXTRACTIONS, extraction())

    assert metadata["rejections"].splitlines() == [
        "| reason | events |",
        "|---|---|",
        r"| not\_found | 1 |",
        "",
        "| chunk | reason | detail |",
        "|---|---|---|",
        r"| 1 | not\_found | no such words: 'moon' |",
    ]


def test_without_rejections_there_is_no_table_of_them() -> None:
    assert "rejections" not in shown(CHUNK_EXTRACTIONS, extraction(rejections=[]))


def test_canonical_events_count_what_was_merged() -> None:
    metadata = shown(CANONICAL_EVENTS, extraction())

    assert metadata["merged_away"] == 1
    assert (metadata["calls"], metadata["prompt_tokens"]) == (1, 50)
    assert shown(CANONICAL_EVENTS, extraction(chunk_events=[], events=[], calls=[])) == {}


def test_canonical_events_say_how_many_no_model_was_asked_about() -> None:
    one = extraction()
    one.ledger.unasked_merges = 30

    assert shown(CANONICAL_EVENTS, one)["not_asked_whether_the_same"] == 30


def test_stored_events_are_counted_by_category() -> None:
    events = [_event("One."), _event("Two."), _event("Three.", Category.DECISION)]
    metadata = shown(STORED_EVENTS, extraction(events=events))

    assert metadata["events"] == 3
    assert metadata["categories"] == "2 Execution, 1 Decision"


def test_stored_events_are_shown_in_a_preview_with_quotes_that_say_more() -> None:
    event = CanonicalEvent(
        Category.DECISION, SUBJECT, "They go with it.", 0.9, (_evidence("We take it."),), ("c0e0",)
    )
    metadata = shown(STORED_EVENTS, extraction(events=[_event("One."), event]))

    assert metadata["preview"].splitlines() == [
        "| category | event | quote |",
        "|---|---|---|",
        "| Execution | One. |  |",
        "| Decision | They go with it. | “We take it.” |",
    ]


def test_the_preview_says_when_a_promise_is_due() -> None:
    promise = replace(
        _event("Ann will write by Friday.", Category.COMMITMENT),
        due=Due(datetime(2026, 11, 20, tzinfo=UTC)),
    )

    preview = shown(STORED_EVENTS, extraction(events=[promise]))["preview"]

    assert (
        preview.splitlines()[-1] == "| Commitment, due 2026-11-20 | Ann will write by Friday. |  |"
    )


def test_a_long_event_is_cut_in_the_preview() -> None:
    rows = shown(STORED_EVENTS, extraction(events=[_event("word " * 500)] * 10))["preview"]

    assert len(rows) < 10 * 400


def test_stored_events_sum_up_what_they_took() -> None:
    metadata = shown(STORED_EVENTS, extraction())

    assert metadata.items() >= {"calls": 3, "rejected": 1, "attempt": 2, "seconds": 1.75}.items()
    assert (metadata["prompt_tokens"], metadata["completion_tokens"]) == (150, 15)


def test_without_calls_none_are_told() -> None:
    assert "calls" not in shown(STORED_EVENTS, extraction(calls=[]))


def test_a_cost_is_shown_only_where_every_price_is_known() -> None:
    other = ModelCall("extract", "unpriced", "ok", 1.0, prompt_tokens=1)

    assert "cost" not in shown(STORED_EVENTS, extraction())
    assert "cost" not in shown(STORED_EVENTS, extraction(calls=[]), PRICES)
    assert "cost" not in shown(STORED_EVENTS, extraction(calls=[other]), PRICES)
    assert shown(STORED_EVENTS, extraction(), PRICES)["cost"] == pytest.approx(0.00045)
    assert shown(CANONICAL_EVENTS, extraction(), PRICES)["cost"] == pytest.approx(0.00015)


def test_what_is_no_address_of_a_page_is_no_link() -> None:
    for url in ("javascript:alert(1)", "data:text/html,x", "file:///etc/passwd"):
        made = extraction(revision=replace(extraction().revision, source_url=url))
        value = materialised(STORED_EVENTS, made).metadata["source_url"]
        assert isinstance(value, dg.TextMetadataValue)


def test_a_long_preview_says_how_many_more_there_are() -> None:
    preview = shown(STORED_EVENTS, extraction(events=[_event("One.")] * 30))["preview"]

    assert preview.count("Execution") == 10
    assert preview.endswith("… and 20 more.")


def test_no_events_are_no_table() -> None:
    assert shown(STORED_EVENTS, extraction(events=[]))["preview"] == "No events."


def test_text_of_documents_never_becomes_markdown() -> None:
    made = extraction(HOSTILE, rejections=[RejectedEvent("not_found", HOSTILE, 0)])
    tables = [
        shown(STORED_EVENTS, made)["preview"],
        shown(CHUNK_EXTRACTIONS, made)["rejections"],
    ]

    for table in tables:
        rows = table.splitlines()
        assert len(rows) in (3, 7), "a cell is one line"
        without_escapes = re.sub(r"\\[\\`*_\[\]<>|#!]", "", rows[-1])
        assert without_escapes.count("|") == 4, "no cell ends before its end"
        assert not re.search(r"[`*_\[\]<>#!\\]", without_escapes)


@pytest.mark.parametrize("stage", STAGES)
def test_version_tags_let_dagster_see_what_is_stale(stage: str) -> None:
    tags = materialised(stage, extraction()).tags or {}

    assert tags["dagster/code_version"] == VERSIONS[stage]
    assert tags["dagster/data_version"]
    position = STAGES.index(stage)
    if position:
        upstream = STAGES[position - 1]
        before = materialised(upstream, extraction()).tags or {}
        version = tags[f"dagster/input_data_version/{upstream}"]
        assert version == before["dagster/data_version"]
        assert tags[f"dagster/input_event_pointer/{upstream}"] == "NULL"


def test_a_data_version_follows_the_content_alone() -> None:
    def version(stage: str, made: Extraction) -> str:
        return (materialised(stage, made).tags or {})["dagster/data_version"]

    for stage in STAGES:
        assert version(stage, extraction()) == version(stage, extraction())
    assert version(CHUNK_TEXT, extraction()) == version(CHUNK_TEXT, extraction("Other."))
    for stage in STAGES[1:]:
        assert version(stage, extraction()) != version(stage, extraction("Other."))
