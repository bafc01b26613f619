"""What must hold in the stores: each offender is named, and repaired where that can be done."""

import importlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from memory_assets.checks import result
from memory_core.embedding.local import LocalEmbedder
from memory_core.index.generation import CollectionName
from memory_core.index.writer import settle_now
from memory_core.kernel.errors import ErrorCode, ProviderFault
from memory_core.runtime import Runtime
from memory_core.upkeep.integrity import (
    CHECKS,
    OFFENDERS_SHOWN,
    SAMPLE,
    CheckResult,
    IntegrityCheck,
)
from tests.indexing import assert_exact, counts, ids, plant, remove
from tests.pipeline_client import SMALL_CHUNKS, Pipeline

# By the name of its module: the package has a command of that name.
doctor = importlib.import_module("mcp_server.cli.doctor")
LONG = " ".join(
    f"Decision: plan {number} of the whole programme is accepted." for number in range(40)
)
Plant = Callable[[Pipeline], Awaitable[str]]


def the(name: str) -> IntegrityCheck:
    [check] = [check for check in CHECKS if check.name == name]
    return check


@pytest.fixture
async def pipeline(runtime: Runtime) -> Pipeline:
    """Three documents: two revisions of one, and one in several chunks."""
    pipeline = Pipeline(runtime, **SMALL_CHUNKS)
    await pipeline.remember("Decision: the zebra plan is accepted.", "first")
    await pipeline.remember("Decision: the okapi plan is accepted.", "first")
    await pipeline.remember("Bob Roth will test the beta by Friday.", "second")
    await pipeline.remember(LONG, "third")
    await pipeline.extract()
    return pipeline


@asynccontextmanager
async def unguarded(pipeline: Pipeline, table: str) -> AsyncIterator[None]:
    """As if a guard of the database had failed."""
    await pipeline.rows(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    yield
    await pipeline.rows(f"ALTER TABLE {table} ENABLE TRIGGER USER")


async def another_quote(pipeline: Pipeline) -> str:
    async with unguarded(pipeline, "event_evidence"):
        [row] = await pipeline.rows(
            "UPDATE event_evidence SET quote = 'invented' WHERE evidence_id = "
            "(SELECT evidence_id FROM event_evidence LIMIT 1) RETURNING event_id"
        )
    return str(row["event_id"])


async def too_long_a_quote(pipeline: Pipeline) -> str:
    async with unguarded(pipeline, "event_evidence"):
        [row] = await pipeline.rows(
            "UPDATE event_evidence v SET start_char = 0, end_char = char_length(t.content), "
            "quote = t.content FROM revision_text t "
            "WHERE (t.artifact_uid, t.revision_id) = (v.artifact_uid, v.revision_id) "
            "AND v.evidence_id = (SELECT v.evidence_id FROM event_evidence v "
            "JOIN revision_text t USING (artifact_uid, revision_id) "
            "ORDER BY char_length(t.content) DESC LIMIT 1) RETURNING v.event_id"
        )
    return str(row["event_id"])


async def no_evidence(pipeline: Pipeline) -> str:
    [event] = await pipeline.rows("SELECT event_id FROM semantic_event LIMIT 1")
    await pipeline.rows("DELETE FROM event_evidence WHERE event_id = %s", event["event_id"])
    return str(event["event_id"])


async def no_latest(pipeline: Pipeline) -> str:
    [row] = await pipeline.rows(
        "UPDATE artifact_revision SET is_latest = false WHERE is_latest AND artifact_uid = "
        "(SELECT artifact_uid FROM artifact_revision WHERE NOT is_latest) RETURNING artifact_uid"
    )
    return str(row["artifact_uid"])


async def a_superseded_event_that_counts(pipeline: Pipeline) -> str:
    [row] = await pipeline.rows(
        "UPDATE semantic_event e SET is_latest = true FROM artifact_revision r "
        "WHERE NOT r.is_latest AND (r.artifact_uid, r.revision_id) = "
        "(e.artifact_uid, e.revision_id) RETURNING e.event_id"
    )
    return str(row["event_id"])


async def an_entry_that_does_not_count(pipeline: Pipeline) -> str:
    [row] = await pipeline.rows(
        "UPDATE event_entry SET is_latest = false WHERE event_id = "
        "(SELECT event_id FROM event_entry WHERE is_latest LIMIT 1) RETURNING event_id"
    )
    return str(row["event_id"])


async def a_chunk_that_is_not_gone_through(pipeline: Pipeline) -> str:
    [row] = await pipeline.rows(
        "WITH one AS (DELETE FROM chunk_entry WHERE ctid = (SELECT ctid FROM chunk_entry LIMIT 1) "
        "RETURNING *) SELECT chunk_id FROM revision_chunk "
        "JOIN one USING (artifact_uid, revision_id, chunk_index)"
    )
    return str(row["chunk_id"])


async def a_superseded_chunk_that_is(pipeline: Pipeline) -> str:
    [row, *_] = await pipeline.rows(
        "WITH added AS (INSERT INTO chunk_entry (artifact_uid, revision_id, chunk_index, "
        "is_chunked, time, artifact_type, source_system) "
        "SELECT artifact_uid, revision_id, chunk_index, is_chunked, now(), artifact_type, "
        "source_system FROM revision_chunk JOIN artifact_revision "
        "USING (artifact_uid, revision_id) WHERE NOT is_latest LIMIT 1 RETURNING *) "
        "SELECT chunk_id FROM revision_chunk "
        "JOIN added USING (artifact_uid, revision_id, chunk_index)"
    )
    return str(row["chunk_id"])


async def as_if_new(pipeline: Pipeline, table: str) -> None:
    """What other tests left of a table can make its indexes look dearer than reading all of it."""
    await pipeline.rows(f"REINDEX TABLE {table}")
    await pipeline.rows(f"VACUUM ANALYZE {table}")


async def an_index_without_a_chunk(pipeline: Pipeline) -> str:
    """As if it had been made before the words were there."""
    await as_if_new(pipeline, "chunk_entry")
    [row] = await pipeline.rows(
        "UPDATE revision_chunk SET words = to_tsvector('english', 'kiln zebra') "
        "WHERE ctid = (SELECT c.ctid FROM revision_chunk c JOIN chunk_entry "
        "USING (artifact_uid, revision_id, chunk_index) LIMIT 1) RETURNING chunk_id"
    )
    return str(row["chunk_id"])


async def an_index_without_an_event(pipeline: Pipeline) -> str:
    await as_if_new(pipeline, "event_entry")
    await pipeline.rows("ALTER TABLE semantic_event DISABLE TRIGGER USER")
    [row] = await pipeline.rows(
        "UPDATE semantic_event SET quotes = 'aardvark aardwolf' "
        "WHERE event_id = (SELECT event_id FROM semantic_event LIMIT 1) RETURNING event_id"
    )
    await pipeline.rows("ALTER TABLE semantic_event ENABLE TRIGGER USER")
    return str(row["event_id"])


async def a_lease_that_ended(pipeline: Pipeline) -> str:
    await pipeline.rows("UPDATE event_jobs SET status = 'PENDING'")
    [row] = await pipeline.rows(
        "UPDATE event_jobs SET status = 'PROCESSING', locked_by = 'gone', "
        "locked_at = now() - interval '95 seconds' WHERE job_id = "
        "(SELECT job_id FROM event_jobs LIMIT 1) RETURNING job_id"
    )
    return str(row["job_id"])


async def no_vector(pipeline: Pipeline, collection: CollectionName, query: str) -> str:
    [row] = await pipeline.rows(f"SELECT {query} LIMIT 1")
    await remove(pipeline.runtime, collection, [str(row["id"])])
    return str(row["id"])


async def no_vector_of_an_event(pipeline: Pipeline) -> str:
    latest = "event_id AS id FROM semantic_event WHERE is_latest"
    return await no_vector(pipeline, CollectionName.EVENTS, latest)


async def no_vector_of_a_document(pipeline: Pipeline) -> str:
    return await no_vector(
        pipeline,
        CollectionName.ARTIFACTS,
        "artifact_id AS id FROM artifact_revision WHERE is_chunked",
    )


async def no_vector_of_a_chunk(pipeline: Pipeline) -> str:
    return await no_vector(
        pipeline,
        CollectionName.CHUNKS,
        "chunk_id AS id FROM revision_chunk JOIN artifact_revision "
        "USING (artifact_uid, revision_id) WHERE is_chunked",
    )


async def vectors_of_nothing(pipeline: Pipeline, count: int = 1) -> list[str]:
    strays = [f"stray-{number}" for number in range(count)]
    for id_ in strays:
        await plant(pipeline.runtime, CollectionName.EVENTS, id_, "nothing")
    return strays


async def a_vector_of_nothing(pipeline: Pipeline) -> str:
    [id_] = await vectors_of_nothing(pipeline)
    return id_


async def another_text_in_the_index(pipeline: Pipeline) -> str:
    [row] = await pipeline.rows("SELECT event_id FROM semantic_event WHERE is_latest LIMIT 1")
    await plant(pipeline.runtime, CollectionName.EVENTS, str(row["event_id"]), "nothing")
    return str(row["event_id"])


async def a_superseded_document_in_the_index(pipeline: Pipeline) -> str:
    [row] = await pipeline.rows("SELECT artifact_id FROM artifact_revision WHERE NOT is_latest")
    await plant(pipeline.runtime, CollectionName.ARTIFACTS, row["artifact_id"], "zebra")
    return str(row["artifact_id"])


CASES: list[tuple[str, Plant]] = [
    ("every_quote_is_exact", another_quote),
    ("every_quote_is_exact", too_long_a_quote),
    ("every_event_has_evidence", no_evidence),
    ("one_latest_revision", no_latest),
    ("events_follow_their_revision", a_superseded_event_that_counts),
    ("events_follow_their_revision", an_entry_that_does_not_count),
    ("events_follow_their_revision", a_chunk_that_is_not_gone_through),
    ("events_follow_their_revision", a_superseded_chunk_that_is),
    ("words_lead_to_texts", an_index_without_a_chunk),
    ("words_lead_to_texts", an_index_without_an_event),
    ("no_abandoned_jobs", a_lease_that_ended),
    ("index_agrees", no_vector_of_an_event),
    ("index_agrees", no_vector_of_a_document),
    ("index_agrees", no_vector_of_a_chunk),
    ("index_agrees", a_vector_of_nothing),
    ("index_agrees", another_text_in_the_index),
    ("index_agrees", a_superseded_document_in_the_index),
]
# Only a person can repair what these find: tests of their own below.
LEFT_TO_PEOPLE = {"every_revision_has_its_text", "projections_keep_up"}


def test_every_check_has_a_case() -> None:
    assert {name for name, _ in CASES} | LEFT_TO_PEOPLE == {check.name for check in CHECKS}


async def examined(pipeline: Pipeline) -> dict[str, CheckResult]:
    return {check.name: await check.examine(pipeline.runtime) for check in CHECKS}


async def doctor_findings(pipeline: Pipeline, *, repair: bool) -> list[tuple[bool, str, str]]:
    """What the doctor says of the stores."""
    findings = await doctor.integrity_findings(pipeline.runtime.settings, repair=repair)
    return [(finding.good, finding.what, finding.remedy) for finding in findings]


async def test_nothing_is_wrong_with_what_was_ingested_and_extracted(pipeline: Pipeline) -> None:
    results = await examined(pipeline)

    assert {name: finding.offenders for name, finding in results.items()} == {
        check.name: [] for check in CHECKS
    }
    index_counts = results["index_agrees"].counts
    for collection in CollectionName:
        name = collection.value
        assert index_counts[f"postgres_{name}"] == index_counts[f"chroma_{name}"]
    assert index_counts["chroma_artifact_chunks"] > 3


@pytest.mark.parametrize(("name", "plant"), CASES, ids=[plant.__name__ for _, plant in CASES])
async def test_an_offender_is_named_repaired_and_gone(
    pipeline: Pipeline, name: str, plant: Plant
) -> None:
    check = the(name)
    offender = await plant(pipeline)

    outcome = await check.examine(pipeline.runtime)
    assert outcome.total == 1
    [line] = outcome.offenders
    assert offender in line
    shown = result(check, outcome)
    assert not shown.passed
    assert offender in shown.metadata["first"].value
    assert shown.metadata["offenders"].value == 1

    done = await check.repair(pipeline.runtime)
    assert done.repaired + done.awaited == 1
    assert done.beyond == []
    if done.awaited:
        await pipeline.extract("run-2")
    assert (await check.examine(pipeline.runtime)).passed
    assert all(finding.passed for finding in (await examined(pipeline)).values())


# --- counts ------------------------------------------------------------------------------------


async def test_all_offenders_are_counted_and_the_first_are_named(pipeline: Pipeline) -> None:
    await pipeline.rows("DELETE FROM event_evidence")
    [events] = await pipeline.rows("SELECT count(*) AS n FROM semantic_event")

    check = the("every_event_has_evidence")
    outcome = await check.examine(pipeline.runtime)

    assert outcome.total == events["n"] > OFFENDERS_SHOWN
    assert len(outcome.offenders) == OFFENDERS_SHOWN
    assert result(check, outcome).metadata["offenders"].value == events["n"]


async def test_strays_do_not_hide_what_is_missing(pipeline: Pipeline) -> None:
    missing = await no_vector_of_an_event(pipeline)
    await vectors_of_nothing(pipeline, 3 * SAMPLE)

    result = await the("index_agrees").examine(pipeline.runtime)

    assert result.total == 3 * SAMPLE + 1
    assert f"events: {missing} is missing" in result.offenders
    assert "events: stray-0 is not in Postgres" in result.offenders


async def test_two_latest_revisions_are_one_too_many(pipeline: Pipeline) -> None:
    index = "uq_artifact_revision_one_latest"
    [made] = await pipeline.rows("SELECT indexdef FROM pg_indexes WHERE indexname = %s", index)
    await pipeline.rows(f"DROP INDEX {index}")
    try:
        [row] = await pipeline.rows(
            "UPDATE artifact_revision SET is_latest = true WHERE NOT is_latest "
            "RETURNING artifact_uid"
        )
        check = the("one_latest_revision")
        assert (await check.examine(pipeline.runtime)).offenders == [row["artifact_uid"]]
        await check.repair(pipeline.runtime)
        latest = await pipeline.rows(
            "SELECT content FROM revision_text JOIN artifact_revision "
            "USING (artifact_uid, revision_id) WHERE is_latest AND artifact_uid = %s",
            row["artifact_uid"],
        )
        assert latest == [{"content": "Decision: the okapi plan is accepted."}]
    finally:
        await pipeline.rows(made["indexdef"])


# --- what cannot be repaired, and what must not be lost ------------------------------------------


async def test_a_broken_quote_without_a_job_is_repaired_as_well(pipeline: Pipeline) -> None:
    await another_quote(pipeline)
    await pipeline.rows("DELETE FROM event_jobs")

    done = await the("every_quote_is_exact").repair(pipeline.runtime)

    assert done.awaited == 1
    [job] = await pipeline.jobs()
    assert (job["status"], job["origin"], job["bypass_cache"]) == ("PENDING", "repair", False)
    await pipeline.extract("run-2")
    assert await pipeline.broken_evidence() == []


async def test_a_repair_does_not_ask_the_model_again(pipeline: Pipeline) -> None:
    """An earlier request that failed may have left its mark."""
    await another_quote(pipeline)
    await pipeline.rows("UPDATE event_jobs SET status = 'PENDING', bypass_cache = true")
    await pipeline.rows("UPDATE event_jobs SET status = 'FAILED'")

    await the("every_quote_is_exact").repair(pipeline.runtime)

    [job] = await pipeline.rows("SELECT * FROM event_jobs WHERE status = 'PENDING'")
    assert job["bypass_cache"] is False


async def test_the_doctor_says_what_is_still_broken_after_a_repair(pipeline: Pipeline) -> None:
    await another_quote(pipeline)

    [(good, what, remedy)] = [
        line for line in await doctor_findings(pipeline, repair=True) if not line[0]
    ]
    assert not good
    assert what.startswith("every_quote_is_exact: ")
    assert "1 revisions are extracted again" in remedy

    await pipeline.extract("run-2")
    assert all(good for good, _, _ in await doctor_findings(pipeline, repair=True))


async def test_a_text_that_is_gone_is_beyond_repair_and_said_to_be(pipeline: Pipeline) -> None:
    [row] = await pipeline.rows(
        "DELETE FROM revision_text WHERE content = 'Bob Roth will test the beta by Friday.' "
        "RETURNING artifact_uid, revision_id"
    )
    broken = [line for line in await doctor_findings(pipeline, repair=True) if not line[0]]

    assert [what.partition(":")[0] for _, what, _ in broken] == [
        "every_revision_has_its_text",
        "every_quote_is_exact",
    ]
    for _, _, remedy in broken:
        assert f"the text of {row['artifact_uid']} {row['revision_id']} (notes second)" in remedy
    assert {job["status"] for job in await pipeline.jobs()} == {"DONE"}, "it could only fail"


async def test_a_dead_letter_is_left_to_a_person(pipeline: Pipeline) -> None:
    await pipeline.rows(
        "INSERT INTO log.dead_letter_queue (event_id, projection_name, event_type, event_data, "
        "error_message) SELECT event_id, 'index', event_type, payload, 'it fails' "
        "FROM log.events LIMIT 1"
    )
    check = the("projections_keep_up")

    assert (await check.examine(pipeline.runtime)).offenders == ["index has 1 dead letters"]
    [advice] = (await check.repair(pipeline.runtime)).beyond
    assert "deadletters list" in advice


async def test_the_doctor_says_what_it_repaired(pipeline: Pipeline) -> None:
    await no_vector_of_an_event(pipeline)
    await no_latest(pipeline)

    without = [what for good, what, _ in await doctor_findings(pipeline, repair=False) if not good]
    assert [what.partition(":")[0] for what in without] == ["one_latest_revision", "index_agrees"]
    repaired = [
        what for good, what, _ in await doctor_findings(pipeline, repair=True) if "repaired" in what
    ]
    assert [what.partition(".")[0] for what in repaired] == [
        "one_latest_revision: repaired 1",
        "index_agrees: repaired 1",
    ]
    assert all(good for good, _, _ in await doctor_findings(pipeline, repair=False))


async def test_a_document_that_is_latest_again_is_indexed_again(pipeline: Pipeline) -> None:
    """The repair is a change like any other: the index follows."""
    uid = await no_latest(pipeline)
    await settle_now(pipeline.runtime, [uid])

    await the("one_latest_revision").repair(pipeline.runtime)

    await assert_exact(pipeline.runtime)
    [row] = await pipeline.rows(
        "SELECT artifact_id FROM artifact_revision JOIN revision_text "
        "USING (artifact_uid, revision_id) WHERE content LIKE '%%okapi%%'"
    )
    assert row["artifact_id"] in await ids(pipeline.runtime, CollectionName.ARTIFACTS)


class Down:
    """An embedder that cannot be reached."""

    provider, model, dimension = LocalEmbedder.provider, LocalEmbedder.model, 256

    async def embed(self, texts: object) -> list[list[float]]:
        raise ProviderFault("the embedder is down", code=ErrorCode.OPENAI_CONNECTION_ERROR)

    async def close(self) -> None:
        return None


async def test_without_an_embedder_nothing_is_lost(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    await no_vector_of_an_event(pipeline)
    before = await counts(pipeline.runtime)

    with monkeypatch.context() as patched:
        patched.setattr(Runtime, "embedder", property(lambda self: Down()))
        bad = {
            what: remedy
            for good, what, remedy in await doctor_findings(pipeline, repair=True)
            if not good
        }

    [(what, remedy)] = bad.items()
    assert what.startswith("index_agrees: ")
    assert remedy == "the embedder is down"
    assert await counts(pipeline.runtime) == before


async def test_a_repair_embeds_what_is_missing_and_nothing_else(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    await no_vector_of_a_chunk(pipeline)
    texts: list[str] = []
    embed = type(pipeline.runtime.embedder).embed

    async def counted(self: Any, wanted: list[str]) -> Any:
        texts.extend(wanted)
        return await embed(self, wanted)

    monkeypatch.setattr(type(pipeline.runtime.embedder), "embed", counted)
    await the("index_agrees").repair(pipeline.runtime)

    assert len(texts) == 1
