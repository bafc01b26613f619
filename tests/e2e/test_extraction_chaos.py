"""Zero partial writes: runs are killed, stores stopped and leases revoked at every stage.

After each blow every job ends DONE, its events are those of a document that met no trouble, and
what the provider had answered is not asked again.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import psutil
import pytest

from memory_core.extraction.answer_cache import context_hash
from memory_core.extraction.model import DocumentContext
from memory_core.queue import jobs
from stack import ports
from tests.e2e.pipeline import Json, Pipeline, asks_about, document
from tests.e2e.stacks import eventually, scripted_stack
from tests.patience import PATIENCE
from tests.scripted_provider import (
    Body,
    Held,
    extract_telling_sentences,
    last_user_message,
)

# About 150 sentences make three chunks.
SENTENCES = 150
# A run that could not even say that it failed is followed when its lease has run out.
AFTER_THE_LEASE = PATIENCE + jobs.LEASE_SECONDS


@pytest.fixture(scope="module")
def _pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    # Chroma on a port: whether it has unread requests is read from the kernel's list of those.
    chosen = {"OPENAI_TIMEOUT": "120", "CHROMA_PORT": str(ports.free_port())}
    with scripted_stack(tmp_path_factory.mktemp("chaos"), **chosen) as (stack, provider):
        yield Pipeline(stack, provider)


@pytest.fixture
def pipeline(_pipeline: Pipeline) -> Iterator[Pipeline]:
    _pipeline.provider.reset()
    yield _pipeline
    _pipeline.wait_idle()


@pytest.fixture(scope="module")
def text() -> str:
    return document(seed=7, count=SENTENCES)


@pytest.fixture(scope="module")
def untroubled(_pipeline: Pipeline, text: str) -> Json:
    """The same text, extracted before anything went wrong."""
    ingested = _pipeline.ingest(text, title="Untroubled")
    _pipeline.wait_done(ingested)
    return ingested


class Patient:
    """A document of three chunks whose last call hangs: two are paid for, one is not answered."""

    def __init__(self, pipeline: Pipeline, text: str, title: str) -> None:
        self.pipeline, self.text, self.title = pipeline, text, title
        last_sentence = text.strip().split("\n")[-1]
        self.hang = Held(only=asks_about(title, last_sentence))
        pipeline.provider.enqueue(self.hang)
        self.ingested = pipeline.ingest(text, title=title)

    def wait_until_in_the_calls(self) -> None:
        """All asked, and all but the hanging one answered and kept."""
        chunks = self.ingested["num_chunks"]
        eventually(lambda: self.calls().total() == chunks, what="all chunks asked about")
        eventually(lambda: self.answers_kept() == chunks - 1, what="the answers being kept")

    def calls(self) -> Counter[str]:
        return self.pipeline.calls_by_chunk(self.title)

    def paid_twice(self) -> int:
        """Calls beyond one per chunk."""
        return self.calls().total() - len(self.calls())

    def answers_kept(self) -> int:
        rows = self.pipeline.sql(
            "SELECT 1 FROM extraction_cache WHERE context_hash = %s",
            context_hash(DocumentContext("note", title=self.title)),
        )
        return len(rows)


def assert_as_if_nothing_had_happened(pipeline: Pipeline, ingested: Json, untroubled: Json) -> None:
    assert pipeline.story(ingested) == pipeline.story(untroubled)
    eventually(lambda: pipeline.is_green(ingested), what="a green partition")


def kill_with_runs(pipeline: Pipeline, code_server: psutil.Process) -> None:
    """The runs and, before it could tell of their end, the server that started them."""
    code_server.suspend()
    pipeline.kill_runs()
    code_server.kill()


# --- the run dies ------------------------------------------------------------------------------


def test_killed_before_the_claim(pipeline: Pipeline, text: str, untroubled: Json) -> None:
    with pipeline.parked_before_the_claim(text, title="Before the claim") as ingested:
        pipeline.kill_runs()
    pipeline.age_request(ingested)

    [job] = pipeline.settle(ingested)

    assert job["attempts"] == 1, "an attempt that did not begin does not count"
    assert_as_if_nothing_had_happened(pipeline, ingested, untroubled)
    assert set(pipeline.calls_by_chunk("Before the claim").values()) == {1}


def test_killed_during_the_calls(pipeline: Pipeline, text: str, untroubled: Json) -> None:
    patient = Patient(pipeline, text, "During the calls")
    patient.wait_until_in_the_calls()
    pipeline.kill_runs()

    [job] = pipeline.settle(patient.ingested)

    assert job["attempts"] == 2
    assert_as_if_nothing_had_happened(pipeline, patient.ingested, untroubled)
    assert patient.paid_twice() == 1, "only the call that was never answered is made again"


def test_killed_before_the_commit(pipeline: Pipeline) -> None:
    text = document(seed=8, count=SENTENCES)
    with pipeline.locked("semantic_event"):
        ingested = pipeline.ingest(text, title="Before the commit")
        eventually(lambda: pipeline.waits_for("semantic_event"), what="a run about to store")
        pipeline.kill_runs()
        assert pipeline.events(ingested) == []

    [job] = pipeline.settle(ingested)

    assert job["attempts"] == 2
    asked = Counter(last_user_message(call.body) for call in pipeline.provider.chats)
    assert len(asked) == ingested["num_chunks"] + 1, "about each chunk, and about duplicates"
    assert set(asked.values()) == {1}
    untroubled = pipeline.ingest(text, title="Without a blow")
    pipeline.wait_done(untroubled)
    assert_as_if_nothing_had_happened(pipeline, ingested, untroubled)


def test_killed_after_the_commit(pipeline: Pipeline, text: str, untroubled: Json) -> None:
    ingested = pipeline.ingest(text, title="After the commit")
    pipeline.wait_done(ingested)
    with ExitStack() as after_the_commit:
        with pipeline.locked("semantic_event"):
            pipeline.request_again(ingested)
            eventually(lambda: pipeline.waits_for("semantic_event"), what="a run about to store")
            # It commits, and then cannot see whether the index has its events.
            after_the_commit.enter_context(
                pipeline.locked("log.projection_checkpoints", "ACCESS EXCLUSIVE")
            )
        [job] = pipeline.wait_done(ingested)
        pipeline.kill_runs()

    assert pipeline.wait_finished(job["locked_by"]) == "FAILURE"
    assert_as_if_nothing_had_happened(pipeline, ingested, untroubled)
    [after] = pipeline.wait_done(ingested)
    assert (after["generation"], after["attempts"]) == (2, 1)
    assert after["locked_by"] == job["locked_by"], "not done twice"
    assert set(pipeline.calls_by_chunk("After the commit").values()) == {1}


def test_killed_together_with_the_code_server(
    pipeline: Pipeline, text: str, untroubled: Json
) -> None:
    patient = Patient(pipeline, text, "With the code server")
    patient.wait_until_in_the_calls()
    dead_run = pipeline.job(patient.ingested)["locked_by"]
    code_server = psutil.Process(pipeline.stack.pid_of("dagster-code"))
    kill_with_runs(pipeline, code_server)
    # No process is left to say that the run died. Its lease runs out.
    pipeline.sql(
        "UPDATE event_jobs SET locked_at = locked_at - interval '1 hour' WHERE job_id = %s",
        patient.ingested["job_id"],
    )

    [job] = pipeline.settle(patient.ingested)

    assert (job["attempts"], job["locked_by"] != dead_run) == (2, True)
    assert pipeline.wait_finished(dead_run) == "FAILURE"
    assert_as_if_nothing_had_happened(pipeline, patient.ingested, untroubled)
    assert patient.paid_twice() == 1


def test_killed_before_the_claim_together_with_the_code_server(
    pipeline: Pipeline, text: str, untroubled: Json
) -> None:
    with pipeline.parked_before_the_claim(text, title="Without a lease") as ingested:
        [dead_run] = [run["runId"] for run in pipeline.runs_of(ingested)]
        eventually(lambda: pipeline.run_status(dead_run) == "STARTED", what="the run's start")
        code_server = psutil.Process(pipeline.stack.pid_of("dagster-code"))
        kill_with_runs(pipeline, code_server)
    # No lease to expire: the run is found by its silence.
    pipeline.sql(
        "UPDATE dagster.runs SET start_time = start_time - 3600 WHERE run_id = %s", dead_run
    )
    pipeline.age_request(ingested)

    [job] = pipeline.settle(ingested)

    assert job["attempts"] == 1
    assert pipeline.wait_finished(dead_run) == "FAILURE"
    assert_as_if_nothing_had_happened(pipeline, ingested, untroubled)
    assert set(pipeline.calls_by_chunk("Without a lease").values()) == {1}


# --- the stores go -----------------------------------------------------------------------------


def test_postgres_dies_during_the_calls(pipeline: Pipeline, text: str, untroubled: Json) -> None:
    patient = Patient(pipeline, text, "No Postgres for the answer")
    patient.wait_until_in_the_calls()
    os.kill(pipeline.stack.pid_of("postgres"), signal.SIGKILL)
    patient.hang.gate.set()

    pipeline.settle(patient.ingested, within=AFTER_THE_LEASE)

    assert_as_if_nothing_had_happened(pipeline, patient.ingested, untroubled)
    assert patient.paid_twice() == 0, "the answer that came without Postgres was kept"


def test_postgres_dies_before_the_commit(pipeline: Pipeline, text: str, untroubled: Json) -> None:
    with pipeline.locked("semantic_event"):
        ingested = pipeline.ingest(text, title="No Postgres to commit")
        eventually(lambda: pipeline.waits_for("semantic_event"), what="a run about to store")
        os.kill(pipeline.stack.pid_of("postgres"), signal.SIGKILL)

    pipeline.settle(ingested, within=AFTER_THE_LEASE)

    assert_as_if_nothing_had_happened(pipeline, ingested, untroubled)
    assert set(pipeline.calls_by_chunk("No Postgres to commit").values()) == {1}


def test_extraction_goes_on_without_chroma(pipeline: Pipeline, text: str, untroubled: Json) -> None:
    patient = Patient(pipeline, text, "No Chroma")
    patient.wait_until_in_the_calls()
    chroma = psutil.Process(pipeline.stack.pid_of("chroma"))
    supervisor = psutil.Process(pipeline.stack.process.pid)
    # It stays away until the document is done.
    supervisor.suspend()
    try:
        chroma.kill()
        patient.hang.gate.set()
        [job] = pipeline.settle(patient.ingested)
    finally:
        supervisor.resume()

    assert (job["status"], job["attempts"]) == ("DONE", 1)
    assert_as_if_nothing_had_happened(pipeline, patient.ingested, untroubled)
    assert patient.paid_twice() == 0


# --- the lease goes ----------------------------------------------------------------------------


def test_a_run_that_lost_its_lease_writes_nothing(pipeline: Pipeline, text: str) -> None:
    patient = Patient(pipeline, text, "Revoked")
    patient.wait_until_in_the_calls()
    loser = pipeline.job(patient.ingested)["locked_by"]

    def say_it_anew(chunk: str, body: Body) -> Json:
        answer = extract_telling_sentences(chunk, body)
        for event in answer["events"]:
            event["narrative"] = f"Reported: {event['narrative']}"
        return answer

    pipeline.provider.on_extract = say_it_anew
    pipeline.request_again(patient.ingested, bypass_cache=True)
    [job] = pipeline.wait_done(patient.ingested)
    assert (job["generation"], job["attempts"], job["locked_by"] != loser) == (2, 1, True)
    events = pipeline.events(patient.ingested)
    pipeline.provider.on_extract = extract_telling_sentences
    patient.hang.gate.set()

    pipeline.wait_finished(loser)

    assert pipeline.events(patient.ingested) == events
    assert all(event["narrative"].startswith("Reported: ") for event in events)
    assert pipeline.job(patient.ingested) == job
    extraction = pipeline.extraction(patient.ingested)
    assert (extraction["generation"], extraction["run_id"]) == (2, job["locked_by"])
