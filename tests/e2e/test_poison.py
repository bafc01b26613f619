"""Documents that kill or hang their run: they are given up in time, and others do not suffer."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import psutil
import pytest

from memory_core.queue import jobs
from tests.e2e.pipeline import Json, Pipeline, asks_about, document
from tests.e2e.stacks import eventually, scripted_stack
from tests.patience import PATIENCE
from tests.scripted_provider import Body, Fault, Held, ScriptedProvider

ATTEMPTS = 3
# A heartbeat, and half a minute without any progress.
STUCK_MINUTES = 0.5


@dataclass(frozen=True)
class Poison(Fault):
    """What a document does that exhausts the memory: the process that asks about it is killed."""

    pipeline: Pipeline | None = None

    async def respond(self, provider: ScriptedProvider, body: Body) -> None:
        assert self.pipeline is not None
        for process in self.pipeline.run_processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    chosen = {
        "OPENAI_TIMEOUT": "300",
        "EVENT_MAX_ATTEMPTS": str(ATTEMPTS),
        "STUCK_RUN_MINUTES": str(STUCK_MINUTES),
    }
    with scripted_stack(tmp_path_factory.mktemp("poison"), **chosen) as (stack, provider):
        yield Pipeline(stack, provider)


def history(pipeline: Pipeline, ingested: Json) -> list[Json]:
    steps: list[Json] = pipeline.call("job_status", job_id=ingested["job_id"])["history"]
    return steps


def test_a_document_that_kills_its_process_each_time_is_given_up(pipeline: Pipeline) -> None:
    pipeline.provider.reset()
    poison = Poison(only=asks_about("Poison"), pipeline=pipeline)
    pipeline.provider.enqueue(*[poison] * 100)
    ingested = pipeline.ingest(document(seed=1, count=150), title="Poison")
    assert ingested["num_chunks"] > 1

    job = pipeline.wait_for(ingested, "FAILED", within=2 * PATIENCE)

    assert (job["attempts"], job["last_error_code"]) == (ATTEMPTS, "MAX_ATTEMPTS_EXCEEDED")
    calls = pipeline.calls_by_chunk("Poison")
    assert 0 < max(calls.values()) <= ATTEMPTS
    steps = [(step["prev_status"], step["next_status"]) for step in history(pipeline, ingested)]
    tried = [("PENDING", "PROCESSING"), ("PROCESSING", "PENDING")] * ATTEMPTS
    assert steps == [(None, "PENDING"), *tried, ("PENDING", "FAILED")]
    assert pipeline.events(ingested) == []

    other = pipeline.ingest("Decision: the others go on.", title="Other")
    pipeline.wait_done(other)
    assert pipeline.calls_by_chunk("Poison") == calls, "it never spends again"


@pytest.mark.slow
def test_a_run_that_hangs_although_its_heart_beats_is_named_and_ended(pipeline: Pipeline) -> None:
    pipeline.provider.reset()
    held = Held(only=asks_about("Hangs"))
    pipeline.provider.enqueue(held)
    ingested = pipeline.ingest("Decision: this one takes for ever.", title="Hangs")
    run_id = pipeline.wait_for(ingested, "PROCESSING")["locked_by"]

    def was_ended() -> Json | None:
        ended = [
            step for step in history(pipeline, ingested)
            if step["detail"].get("error") == jobs.RUN_STUCK
        ]  # fmt: skip
        return ended[0] if ended else None

    step: Json = eventually(was_ended, within=2 * PATIENCE, what="the stuck run being ended")
    assert (step["prev_status"], step["next_status"]) == ("PROCESSING", "PENDING")
    assert run_id in step["detail"]["message"]
    assert pipeline.wait_finished(run_id) == "FAILURE"
    [job] = pipeline.settle(ingested)
    assert (job["attempts"], job["locked_by"] == run_id) == (2, False)
    assert len(pipeline.events(ingested)) == 1
    held.gate.set()
    pipeline.wait_idle()
