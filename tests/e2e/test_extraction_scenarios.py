"""From ingest to proved events, through the real daemon and a scripted provider."""

import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from memory_core.processing.stages import CHUNK_EXTRACTIONS, STAGES
from tests.e2e.pipeline import Json, Pipeline, asks_about, document
from tests.e2e.stacks import eventually, scripted_stack
from tests.scripted_provider import AuthError, Held, InvalidJson, RateLimit

MATES = 5


@pytest.fixture(scope="module")
def _pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    with scripted_stack(tmp_path_factory.mktemp("extraction"), OPENAI_TIMEOUT="300") as (
        stack,
        provider,
    ):
        yield Pipeline(stack, provider)


@pytest.fixture
def pipeline(_pipeline: Pipeline) -> Pipeline:
    _pipeline.provider.reset()
    return _pipeline


# --- the five scenarios of the specification, through the tools alone ---------------------------


def test_a_small_document_becomes_events(pipeline: Pipeline) -> None:
    text = "Decision: We will use Postgres for event storage starting Monday."
    answer = Held()
    pipeline.provider.enqueue(answer)
    ingested = pipeline.call(
        "artifact_ingest", artifact_type="note", source_system="test", content=text
    )
    assert ingested["is_chunked"] is False
    assert ingested["job_status"] == "PENDING"
    job = pipeline.call("job_status", artifact_uid=ingested["artifact_uid"])
    assert job["status"] in ("PENDING", "PROCESSING")

    answer.gate.set()
    job = pipeline.wait_for_job(ingested["job_id"], "DONE")

    assert job["attempts"] == 1
    searched = pipeline.call("event_search", query="Postgres", category="Decision")
    [event] = [
        event for event in searched["events"] if event["artifact_uid"] == ingested["artifact_uid"]
    ]
    assert event["category"] == "Decision"
    assert "Postgres" in event["narrative"]
    [evidence] = event["evidence"]
    assert text[evidence["start_char"] : evidence["end_char"]] == evidence["quote"] == text
    assert evidence["chunk_id"] is None
    assert len(pipeline.provider.chats) == 1


def test_a_long_document_is_read_in_chunks(pipeline: Pipeline) -> None:
    text = document(seed=2, count=160)
    ingested = pipeline.call(
        "artifact_ingest", artifact_type="doc", source_system="test", content=text, title="Chunked"
    )
    assert ingested["is_chunked"] is True
    assert ingested["num_chunks"] >= 3

    pipeline.wait_for_job(ingested["job_id"], "DONE")

    listed = pipeline.call(
        "event_list_for_revision", artifact_uid=ingested["artifact_uid"], include_evidence=True
    )
    # Each telling sentence once, although neighbouring chunks overlap.
    assert listed["total"] == len(listed["events"]) == len(range(0, 160, 3))
    categories = Counter(event["category"] for event in listed["events"])
    assert categories["Decision"] >= 3
    assert categories["Commitment"] >= 2
    evidence = [item for event in listed["events"] for item in event["evidence"]]
    assert all(text[item["start_char"] : item["end_char"]] == item["quote"] for item in evidence)
    assert len({item["quote"] for item in evidence}) == len(evidence)
    chunk_ids = {item["chunk_id"] for item in evidence}
    assert chunk_ids == set(ingested["stored_ids"][1:])
    assert all("::chunk::" in chunk_id for chunk_id in chunk_ids)
    assert sum(pipeline.calls_by_chunk("Chunked").values()) == ingested["num_chunks"]


def test_the_same_content_again_changes_nothing(pipeline: Pipeline) -> None:
    def ingest() -> Json:
        return pipeline.call(
            "artifact_ingest",
            artifact_type="note",
            source_system="test",
            source_id="test_doc_1",
            content="Decision: Use Postgres.",
        )

    first, second = ingest(), ingest()
    done = pipeline.wait_for_job(first["job_id"], "DONE")
    third = ingest()

    assert first["revision_id"] == second["revision_id"] == third["revision_id"]
    assert second["status"] == third["status"] == "unchanged"
    assert second["job_id"] is third["job_id"] is None
    job = pipeline.call("job_status", artifact_uid=first["artifact_uid"])
    assert (job["job_id"], job["attempts"]) == (first["job_id"], 1)
    assert job["updated_at"] == done["updated_at"], "no run touched the job"
    listed = pipeline.call("event_list_for_revision", artifact_uid=first["artifact_uid"])
    assert listed["total"] == len(pipeline.provider.chats) == 1


def test_a_new_revision_has_its_own_events(pipeline: Pipeline) -> None:
    def ingest(content: str) -> Json:
        return pipeline.call(
            "artifact_ingest",
            artifact_type="note",
            source_system="test",
            source_id="test_doc_4",
            content=content,
        )

    first = ingest("Decision: Use MySQL.")
    pipeline.wait_for_job(first["job_id"], "DONE")
    second = ingest("Decision: Actually, use Postgres instead.")
    pipeline.wait_for_job(second["job_id"], "DONE")

    assert second["artifact_uid"] == first["artifact_uid"]
    assert second["revision_id"] != first["revision_id"]
    [old] = pipeline.call(
        "event_list_for_revision",
        artifact_uid=first["artifact_uid"],
        revision_id=first["revision_id"],
    )["events"]
    assert "MySQL" in old["narrative"]
    [new] = pipeline.call("event_list_for_revision", artifact_uid=second["artifact_uid"])["events"]
    assert "Postgres" in new["narrative"]


def test_a_refused_key_fails_at_once_and_a_new_request_recovers(pipeline: Pipeline) -> None:
    pipeline.provider.enqueue(AuthError())
    ingested = pipeline.call(
        "artifact_ingest",
        artifact_type="note",
        source_system="test",
        content="Decision: Test failure handling.",
    )
    uid = ingested["artifact_uid"]

    job = pipeline.wait_for_job(ingested["job_id"], "FAILED")

    assert (job["last_error_code"], job["attempts"]) == ("OPENAI_AUTH_ERROR", 1)
    assert "sk-test" not in job["last_error_message"]
    assert pipeline.call("event_list_for_revision", artifact_uid=uid)["total"] == 0

    again = pipeline.call("event_reextract", artifact_uid=uid, force=True)
    job = pipeline.wait_for_job(again["job_id"], "DONE")

    assert (again["job_id"], job["attempts"]) == (ingested["job_id"], 1)
    assert job["last_error_code"] is None
    [event] = pipeline.call("event_list_for_revision", artifact_uid=uid)["events"]
    assert event["category"] == "Decision"


# --- what an edit and an outage cost -------------------------------------------------------------


def test_an_edit_is_paid_for_alone(pipeline: Pipeline) -> None:
    first_text = document(seed=4, count=240)
    sentence = "Decision: the edited passage says Postgres instead."
    head, rest = first_text.split("\n\n", 1)
    second_text = f"{head} {sentence}\n\n{rest}"
    details = {"artifact_type": "doc", "source_id": "revised", "title": "Revised"}
    first = pipeline.ingest(first_text, **details)
    pipeline.wait_done(first)
    before = pipeline.events(first)
    paid_for = pipeline.calls_by_chunk("Revised")

    second = pipeline.ingest(second_text, **details)
    pipeline.wait_done(second)

    assert pipeline.events(first) == before, "the old revision keeps its events"
    assert sentence in {event["narrative"] for event in pipeline.events(second)}
    assert len(pipeline.events(second)) == len(before) + 1
    paid_then = pipeline.calls_by_chunk("Revised") - paid_for
    assert set(paid_then).isdisjoint(paid_for), "an unchanged chunk was paid for again"
    assert 1 <= sum(paid_then.values()) < sum(paid_for.values())


def test_a_rate_limit_waits_as_long_as_the_provider_asks_and_recovers(pipeline: Pipeline) -> None:
    pipeline.provider.enqueue(RateLimit(retry_after=400, only=asks_about("Limited")))
    ingested = pipeline.ingest("Decision: be patient with the provider.", title="Limited")
    eventually(lambda: pipeline.job(ingested)["last_error_code"], what="the failed attempt")

    [job] = pipeline.sql(
        "SELECT *, extract(epoch FROM next_run_at - updated_at) AS wait FROM event_jobs "
        "WHERE job_id = %s",
        ingested["job_id"],
    )
    assert (job["status"], job["last_error_code"]) == ("PENDING", "OPENAI_RATE_LIMIT")
    assert job["wait"] >= 400
    assert pipeline.events(ingested) == []

    [job] = pipeline.settle(ingested)
    assert job["attempts"] == 2
    assert len(pipeline.events(ingested)) == 1
    outcomes = pipeline.sql(
        "SELECT outcome FROM model_call WHERE job_id = %s ORDER BY call_id", ingested["job_id"]
    )
    assert [row["outcome"] for row in outcomes] == ["OPENAI_RATE_LIMIT", "ok"]


# --- batches -----------------------------------------------------------------------------------


def test_a_bad_document_neither_fails_nor_delays_its_mates_and_is_retried_alone(
    pipeline: Pipeline,
) -> None:
    slow = Held(then=InvalidJson(), only=asks_about("Bad"))
    pipeline.provider.enqueue(slow, InvalidJson(only=asks_about("Bad")))
    documents = [
        {"content": document(seed=100 + number), "title": f"Mate {number}"}
        for number in range(MATES)
    ]
    documents.insert(2, {"content": document(seed=99), "title": "Bad"})
    with pipeline.queue_closed():
        ingested = pipeline.ingest_all(documents)
    bad, mates = ingested[2], ingested[:2] + ingested[3:]

    # The bad one still waits for its provider when its mates are done.
    done = pipeline.wait_done(*mates)
    held = pipeline.job(bad)
    assert held["status"] == "PROCESSING"
    [run_id] = {job["locked_by"] for job in [*done, held]}

    with pipeline.queue_closed():
        slow.gate.set()
        assert pipeline.wait_finished(run_id) == "FAILURE"
        job = pipeline.job(bad)
        assert (job["status"], job["last_error_code"]) == ("PENDING", "INVALID_JSON_SCHEMA")
        assert all(pipeline.is_green(mate) for mate in mates)
        green, red = pipeline.partitions("stored_events")
        assert pipeline.partition(bad) in red - green
        assert {pipeline.partition(mate) for mate in mates}.isdisjoint(red)

    [job] = pipeline.settle(bad)
    assert job["attempts"] == 2
    assert [job["attempts"] for job in pipeline.wait_done(*mates)] == [1] * MATES
    assert [run["runId"] for run in pipeline.runs_of(bad)] == [job["locked_by"]], "alone"
    eventually(lambda: pipeline.is_green(bad), what="the retried partition turning green")


def test_the_run_checks_the_quotes_it_stored(pipeline: Pipeline) -> None:
    ingested = pipeline.ingest("Decision: check what was stored.", title="Checked")
    [job] = pipeline.wait_done(ingested)
    assert pipeline.wait_finished(job["locked_by"]) == "SUCCESS"

    [result] = [
        result
        for result in pipeline.check_results("quotes_are_the_text_at_their_offsets")
        if result["runId"] == job["locked_by"]
    ]
    assert result["status"] == "SUCCEEDED"
    assert result["evaluation"]["success"] is True


# --- the sensor --------------------------------------------------------------------------------


def test_more_ticks_and_a_new_daemon_request_nothing_twice(pipeline: Pipeline) -> None:
    # No run can claim: the job stays due while the sensor looks at it again and again.
    text = "Decision: tick as often as you like."
    with pipeline.parked_before_the_claim(text, title="Ticked") as ingested:
        daemon = pipeline.stack.pid_of("dagster-daemon")
        last_tick = pipeline.ticks()[-1]
        os.kill(daemon, signal.SIGKILL)
        eventually(
            lambda: len([tick for tick in pipeline.ticks() if tick > last_tick]) >= 2,
            what="two ticks of the new daemon",
        )
    assert pipeline.stack.pid_of("dagster-daemon") != daemon

    assert [job["attempts"] for job in pipeline.wait_done(ingested)] == [1]
    pipeline.wait_idle()
    assert len(pipeline.runs_of(ingested)) == 1
    assert len(pipeline.provider.chats) == 1


def test_a_new_request_for_a_done_revision_runs_again(pipeline: Pipeline) -> None:
    ingested = pipeline.ingest("Decision: do it twice.", title="Twice")
    [first] = pipeline.wait_done(ingested)
    story = pipeline.story(ingested)

    pipeline.request_again(ingested, bypass_cache=True)
    [second] = pipeline.wait_done(ingested)

    assert second["locked_by"] != first["locked_by"]
    assert (second["generation"], second["attempts"]) == (2, 1)
    assert second["bypass_cache"] is False
    assert pipeline.story(ingested) == story
    assert set(pipeline.calls_by_chunk("Twice").values()) == {2}, "a forced request asks again"


# --- by hand -----------------------------------------------------------------------------------


def test_materialising_a_done_revision_by_hand_asks_again(pipeline: Pipeline) -> None:
    ingested = pipeline.ingest(document(seed=8, count=90), title="By hand")
    pipeline.wait_done(ingested)
    story = pipeline.story(ingested)

    run_id = pipeline.launch("__ASSET_JOB", assets=STAGES, partition=pipeline.partition(ingested))

    assert pipeline.wait_finished(run_id) == "SUCCESS"
    extraction = pipeline.extraction(ingested)
    assert (extraction["run_id"], extraction["requested_by"]) == (run_id, "ui")
    assert extraction["cache_hits"] == 0
    assert set(pipeline.calls_by_chunk("By hand").values()) == {2}
    assert pipeline.story(ingested) == story


def test_materialising_later_stages_by_hand_pays_for_no_chunk(pipeline: Pipeline) -> None:
    ingested = pipeline.ingest(document(seed=9, count=150), title="Later stages")
    pipeline.wait_done(ingested)
    story, calls = pipeline.story(ingested), pipeline.calls_by_chunk("Later stages")
    later = STAGES[STAGES.index(CHUNK_EXTRACTIONS) + 1 :]

    run_id = pipeline.launch("__ASSET_JOB", assets=later, partition=pipeline.partition(ingested))

    assert pipeline.wait_finished(run_id) == "SUCCESS"
    extraction = pipeline.extraction(ingested)
    assert extraction["run_id"] == run_id
    assert extraction["cache_hits"] == extraction["chunks"] == ingested["num_chunks"]
    assert pipeline.calls_by_chunk("Later stages") == calls
    assert pipeline.story(ingested) == story


# --- the whole database ------------------------------------------------------------------------


def test_the_integrity_job_finds_a_corrupted_quote(pipeline: Pipeline) -> None:
    ingested = pipeline.ingest("Decision: never trust, always verify.", title="Corrupted")
    pipeline.wait_done(ingested)
    assert _integrity(pipeline) == {
        "every_quote_is_exact": True,
        "every_event_has_evidence": True,
    }

    with pipeline.connect() as connection:
        connection.execute("ALTER TABLE event_evidence DISABLE TRIGGER USER")
        connection.execute(
            "UPDATE event_evidence SET quote = 'invented' WHERE artifact_uid = %s",
            [ingested["artifact_uid"]],
        )
        connection.execute("ALTER TABLE event_evidence ENABLE TRIGGER USER")
    assert _integrity(pipeline)["every_quote_is_exact"] is False

    pipeline.sql("DELETE FROM event_evidence WHERE artifact_uid = %s", ingested["artifact_uid"])
    assert _integrity(pipeline) == {
        "every_quote_is_exact": True,
        "every_event_has_evidence": False,
    }


def _integrity(pipeline: Pipeline) -> dict[str, bool]:
    run_id = pipeline.launch("integrity")
    pipeline.wait_finished(run_id)
    return {
        name: result["evaluation"]["success"]
        for name in ("every_quote_is_exact", "every_event_has_evidence")
        for result in pipeline.check_results(name)
        if result["runId"] == run_id
    }


def test_runs_begin_also_after_the_process_they_are_forked_from_was_killed(
    pipeline: Pipeline,
) -> None:
    pipeline.wait_idle()
    [keeper] = pipeline.run_keepers()
    keeper.kill()

    pipeline.wait_done(pipeline.ingest("Decision: forks grow back.", title="Forks"))

    [other] = pipeline.run_keepers()
    assert other.pid != keeper.pid
