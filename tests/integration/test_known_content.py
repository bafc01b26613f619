"""Content that is stored already comes in again: lost texts are healed, labels follow, and no two
sources meet in one artifact."""

import asyncio
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from memory_core.artifacts.document import ArtifactType, Document, Sensitivity
from memory_core.artifacts.ingest import IngestResult, ingest, ingest_many
from memory_core.index.generation import CollectionName
from memory_core.kernel import ids
from memory_core.runtime import Runtime
from memory_core.upkeep.integrity import CHECKS
from tests.integration.test_ingest import LONG
from tests.integration.test_ingest import ingest as ingest_note
from tests.pipeline_client import SMALL_CHUNKS, Pipeline
from tests.tool_client import Json, ToolClient

DECISION = "Decision: we launch in May. Alice Moreau will draft the plan by Friday."


@pytest.fixture
def pipeline(runtime: Runtime) -> Pipeline:
    return Pipeline(runtime)


async def stored(tools: ToolClient, uid: str) -> Json:
    return await tools("artifact_get", artifact_uid=uid)


async def findings(runtime: Runtime) -> dict[str, list[str]]:
    by_check = {check.name: (await check.examine(runtime)).offenders for check in CHECKS}
    return {name: offenders for name, offenders in by_check.items() if offenders}


# --- a text that was lost ----------------------------------------------------------------------


@pytest.mark.parametrize("content", [DECISION, LONG], ids=["one piece", "in chunks"])
@pytest.mark.parametrize("lost", ["revision_text", "revision_chunk"])
async def test_the_same_content_heals_a_revision_whose_text_was_lost(
    tools: ToolClient, pipeline: Pipeline, lost: str, content: str
) -> None:
    first = await ingest_note(tools, content)
    await pipeline.extract("run-1")
    events = await pipeline.events()
    await pipeline.rows(f"DELETE FROM {lost}")

    healed = await ingest_note(tools, content)

    assert healed == {**first, "status": "restored", "job_status": "PENDING"}
    assert (await stored(tools, first["artifact_uid"]))["content"] == content
    assert [outcome.failure for outcome in await pipeline.extract("run-2")] == [None]
    assert [event["narrative"] for event in await pipeline.events()] == [
        event["narrative"] for event in events
    ]
    assert await findings(pipeline.runtime) == {}
    again = await ingest_note(tools, content)
    assert again["status"] == "unchanged"


async def test_a_job_that_failed_for_want_of_its_text_is_done_after_the_text_is_back(
    tools: ToolClient, pipeline: Pipeline
) -> None:
    first = await ingest_note(tools, DECISION)
    await pipeline.rows("DELETE FROM revision_text")
    await pipeline.extract("run-1")
    failed = await tools("job_status", artifact_uid=first["artifact_uid"])
    assert failed["last_error_code"] == "ARTIFACT_NOT_FOUND"

    await ingest_note(tools, DECISION)
    await pipeline.extract("run-2")

    job = await tools("job_status", artifact_uid=first["artifact_uid"])
    assert (job["status"], job["last_error_code"]) == ("DONE", None)


async def test_a_lost_text_of_an_older_revision_comes_back_with_it(
    tools: ToolClient, pipeline: Pipeline
) -> None:
    first = await ingest_note(tools, LONG)
    await ingest_note(tools, "Something else entirely.")
    await pipeline.rows("DELETE FROM revision_text WHERE revision_id = %s", first["revision_id"])

    restored = await ingest_note(tools, LONG)

    assert restored == {**first, "status": "restored", "job_status": "PENDING"}
    assert (await stored(tools, first["artifact_uid"]))["content"] == LONG
    await pipeline.extract()
    assert await findings(pipeline.runtime) == {}


async def test_a_healed_document_is_cut_by_the_settings_of_today(
    pipeline: Pipeline, runtime: Runtime
) -> None:
    text = " ".join(f"Decision: plan {number} is accepted." for number in range(40))
    whole = await pipeline.remember(text)
    await pipeline.rows("DELETE FROM revision_text")

    healed = await Pipeline(runtime, **SMALL_CHUNKS).remember(text)

    assert (whole.is_chunked, healed.is_chunked) == (False, True)
    assert await runtime.vectors.count(CollectionName.CHUNKS) == healed.num_chunks
    await pipeline.extract()
    assert await findings(runtime) == {}


async def test_the_doctor_names_a_revision_without_text_and_what_helps(
    pipeline: Pipeline,
) -> None:
    lost = await pipeline.remember("Nothing of note.", "quiet")
    await pipeline.extract()
    await pipeline.rows("DELETE FROM revision_text")

    [check] = [check for check in CHECKS if check.name == "every_revision_has_its_text"]
    finding = await check.examine(pipeline.runtime)
    [remedy] = (await check.repair(pipeline.runtime)).beyond

    assert finding.offenders == [f"{lost.artifact_uid} {lost.revision_id}"]
    assert "notes quiet" in remedy
    assert "ingest the same content" in remedy


# --- labels ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "value", "read_as"),
    [
        ("sensitivity", "sensitive", "sensitivity"),
        ("visibility_scope", "team", "visibility_scope"),
        ("retention_policy", "1y", "retention_policy"),
        ("source_url", "https://example.org/kickoff", "source_url"),
    ],
)
async def test_a_label_that_extraction_does_not_read_changes_without_a_job(
    tools: ToolClient, pipeline: Pipeline, label: str, value: str, read_as: str
) -> None:
    first = await ingest_note(tools, DECISION)
    await pipeline.extract()

    again = await ingest_note(tools, DECISION, **{label: value})

    assert again == {**first, "status": "relabelled", "job_id": None, "job_status": "N/A"}
    assert (await stored(tools, first["artifact_uid"]))[read_as] == value
    assert [job["status"] for job in await pipeline.jobs()] == ["DONE"]


@pytest.mark.parametrize(
    ("label", "value", "read_as", "read"),
    [
        ("title", "The launch", "title", "The launch"),
        ("author", "Bob Roth", "author", "Bob Roth"),
        ("participants", ["Bob Roth", "Alice Moreau"], "participants", None),
        ("ts", "2026-03-02T10:00:00Z", "source_ts", "2026-03-02T10:00:00Z"),
        ("artifact_type", "email", "artifact_type", "email"),
    ],
)
async def test_a_label_that_extraction_reads_changes_and_the_events_are_extracted_again(
    tools: ToolClient, pipeline: Pipeline, label: str, value: Any, read_as: str, read: Any
) -> None:
    first = await ingest_note(tools, DECISION)
    await pipeline.extract("run-1")

    again = await ingest_note(tools, DECISION, **{label: value})

    assert again == {**first, "status": "relabelled", "job_status": "PENDING"}
    assert (await stored(tools, first["artifact_uid"]))[read_as] == (read or value)
    assert [outcome.failure for outcome in await pipeline.extract("run-2")] == [None]
    assert await findings(pipeline.runtime) == {}


async def test_what_is_left_out_or_empty_stays_as_it_is(tools: ToolClient) -> None:
    labels = {
        "title": "The launch",
        "author": "Bob Roth",
        "participants": ["Alice Moreau"],
        "ts": "2026-03-02T10:00:00Z",
        "source_url": "https://example.org/kickoff",
        "sensitivity": "highly_sensitive",
        "visibility_scope": "org",
        "retention_policy": "until_resolved",
    }
    first = await ingest_note(tools, DECISION, **labels)
    before = await stored(tools, first["artifact_uid"])

    silent = await tools(
        "artifact_ingest",
        artifact_type="note",
        source_system="notes",
        source_id="kickoff",
        content=DECISION,
    )
    empty = await ingest_note(tools, DECISION, title="", author=" ", participants=[])

    assert (silent["status"], empty["status"]) == ("unchanged", "unchanged")
    assert await stored(tools, first["artifact_uid"]) == before


async def test_a_default_that_is_given_replaces_what_is_stored(tools: ToolClient) -> None:
    first = await ingest_note(tools, DECISION, sensitivity="sensitive")

    again = await ingest_note(tools, DECISION, sensitivity="normal")

    assert again["status"] == "relabelled"
    assert (await stored(tools, first["artifact_uid"]))["sensitivity"] == "normal"


async def test_searches_follow_new_labels_at_once(tools: ToolClient, pipeline: Pipeline) -> None:
    await ingest_note(tools, LONG, title="Zebra minutes", ts="2026-01-01T00:00:00Z")
    await ingest_note(
        tools, LONG, title="Okapi minutes", ts="2026-06-01T00:00:00Z", artifact_type="transcript"
    )

    async def found(**query: Any) -> int:
        return len((await tools("artifact_search", **query))["results"])

    assert await found(query="okapi", artifact_type="transcript") == 1
    [hit] = (await tools("artifact_search", query='"okapi minutes"'))["results"]
    assert (hit["title"], hit["artifact_type"]) == ("Okapi minutes", "transcript")
    assert await found(query="committee proposal", artifact_type="note") == 0
    assert await found(query="committee proposal", time_from="2026-05-01T00:00:00Z") == 1
    assert await found(query="committee proposal", time_to="2026-05-01T00:00:00Z") == 0
    words = (
        "SELECT words @@ to_tsquery('english', %s) AS found FROM revision_chunk "
        "WHERE chunk_index = 0"
    )
    assert await pipeline.rows(words, "zebra") == [{"found": False}]
    assert await pipeline.rows(words, "okapi & committee") == [{"found": True}]


async def test_events_are_found_under_their_documents_new_type_before_they_are_made_again(
    tools: ToolClient, pipeline: Pipeline
) -> None:
    await ingest_note(tools, DECISION)
    await pipeline.extract()
    await ingest_note(tools, DECISION, artifact_type="email")

    async def found(artifact_type: str) -> list[str]:
        answer = await tools("event_search", query="launch", artifact_type=artifact_type)
        return [event["narrative"] for event in answer["events"]]

    assert await found("note") == []
    assert len(await found("email")) >= 1


async def test_a_restored_revision_takes_the_labels_it_comes_with(tools: ToolClient) -> None:
    first = await ingest_note(tools, DECISION, title="Old title")
    await ingest_note(tools, "Something else entirely.")

    restored = await ingest_note(tools, DECISION, title="New title", sensitivity="sensitive")

    assert restored == {**first, "status": "restored", "job_status": "PENDING"}
    now = await stored(tools, first["artifact_uid"])
    assert (now["title"], now["sensitivity"]) == ("New title", "sensitive")


async def test_a_run_that_read_the_old_labels_does_not_store_its_events(
    tools: ToolClient, pipeline: Pipeline
) -> None:
    await ingest_note(tools, DECISION, title="Old title")
    [job] = await pipeline.rows(
        "UPDATE event_jobs SET status = 'PROCESSING', locked_by = 'run-1', locked_at = now(), "
        "attempts = 1 RETURNING generation"
    )

    await ingest_note(tools, DECISION, title="New title")

    [now] = await pipeline.jobs()
    assert (now["status"], now["locked_by"], now["attempts"]) == ("PENDING", None, 0)
    assert now["generation"] == job["generation"] + 1


async def test_of_a_batch_the_last_labels_of_a_document_count(runtime: Runtime) -> None:
    def note(title: str) -> Document:
        return Document(
            ArtifactType.NOTE, "notes", DECISION, source_id="kickoff", title=title,
            sensitivity=Sensitivity.NORMAL,
        )  # fmt: skip

    results = await ingest_many(runtime, [note("One"), note("Two"), note("Two")])

    assert [result.status for result in results] == ["created", "relabelled", "unchanged"]


async def test_labels_given_at_the_same_time_leave_one_of_them_and_one_revision(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    await ingest_note(tools, DECISION, title="Title")
    await asyncio.gather(*(ingest_note(tools, DECISION, title=f"Title {n}") for n in range(6)))

    rows = sql.execute("SELECT title, is_latest FROM artifact_revision").fetchall()
    assert len(rows) == 1
    assert rows[0][0].startswith("Title ")


# --- sources -----------------------------------------------------------------------------------


def of(system: str, id_: str, content: str = DECISION) -> Document:
    return Document(ArtifactType.NOTE, system, content, source_id=id_)


async def test_sources_that_are_the_same_when_joined_are_two_artifacts(runtime: Runtime) -> None:
    one = await ingest(runtime, of("a:b", "c", "One."))
    two = await ingest(runtime, of("a", "b:c", "Two."))
    again = await ingest(runtime, of("a:b", "c", "One, revised."))

    assert two.artifact_uid == ids.joined_uid("a", "b:c"), "the usual id where nothing is in doubt"
    assert one.artifact_uid != two.artifact_uid
    assert (again.artifact_uid, again.status) == (one.artifact_uid, "revised")


async def test_an_artifact_from_before_keeps_its_id_and_the_other_source_gets_one_of_its_own(
    runtime: Runtime, sql: psycopg.Connection
) -> None:
    old = ids.joined_uid("a:b", "c")
    planted = await ingest(runtime, of("a:b", "c", "One."))
    sql.execute("SET session_replication_role = replica")
    for table in ("artifact_revision", "artifact_source", "revision_text", "revision_chunk",
                  "event_jobs", "chunk_entry"):  # fmt: skip
        sql.execute(
            f"UPDATE {table} SET artifact_uid = %s WHERE artifact_uid = %s".encode(),
            (old, planted.artifact_uid),
        )
    sql.execute("SET session_replication_role = origin")

    revised = await ingest(runtime, of("a:b", "c", "One, revised."))
    other = await ingest(runtime, of("a", "b:c", "Two."))

    assert (revised.artifact_uid, revised.status) == (old, "revised")
    assert (other.artifact_uid, other.status) == (ids.separated_uid("a", "b:c"), "created")


NAMES = st.text(alphabet="ab:", min_size=1, max_size=4).filter(lambda name: name.strip() != "")


@given(sources=st.lists(st.tuples(NAMES, NAMES), min_size=2, max_size=6, unique=True))
@hypothesis_settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_two_sources_ever_meet_in_one_artifact(
    runtime: Runtime, sql: psycopg.Connection, sources: list[tuple[str, str]]
) -> None:
    async def store() -> list[IngestResult]:
        return await ingest_many(
            runtime, [of(system, id_, f"About {system} {id_}.") for system, id_ in sources]
        )

    first, again = await store(), await store()

    uids = [result.artifact_uid for result in first]
    assert len(set(uids)) == len(sources)
    assert [result.artifact_uid for result in again] == uids
    assert {result.status for result in again} == {"unchanged"}
    mixed = sql.execute(
        "SELECT artifact_uid FROM artifact_revision GROUP BY artifact_uid "
        "HAVING count(DISTINCT (source_system, source_id)) > 1"
    ).fetchall()
    assert mixed == []


async def test_the_schema_refuses_a_second_source_in_an_artifact(
    runtime: Runtime, sql: psycopg.Connection
) -> None:
    stored_ = await ingest(runtime, of("notes", "kickoff"))
    copy = (
        "INSERT INTO artifact_revision (artifact_uid, revision_id, artifact_id, artifact_type, "
        "source_system, source_id, content_hash, token_count, is_chunked, chunk_count, is_latest) "
        "SELECT artifact_uid, 'rev_other', 'art_other', artifact_type, 'mail', source_id, "
        "content_hash, token_count, is_chunked, chunk_count, false FROM artifact_revision"
    )
    with pytest.raises(psycopg.errors.UniqueViolation, match=stored_.artifact_uid):
        sql.execute(copy)
    with pytest.raises(psycopg.errors.CheckViolation, match="cannot change"):
        sql.execute("UPDATE artifact_revision SET source_id = 'other'")


async def test_a_deleted_artifact_leaves_its_id_to_no_one(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    stored_ = await ingest_note(tools, DECISION)
    await tools("artifact_delete", artifact_uid=stored_["artifact_uid"])

    assert sql.execute("SELECT * FROM artifact_source").fetchall() == []
