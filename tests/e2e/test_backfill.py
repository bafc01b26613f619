"""A prompt is raised and two hundred revisions follow: seen in Dagster, behind fresh work, through
a kill, without a call too many."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client

from memory_core.processing.stages import (
    CANONICAL_EVENTS,
    CHUNK_EXTRACTIONS,
    EVENT_INDEX,
    STAGES,
    STORED_EVENTS,
)
from tests.e2e.pipeline import LOCATION, Json, Pipeline, document, title_of
from tests.e2e.stacks import eventually, scripted_stack
from tests.pipeline_client import bump, generations_of, number_of
from tests.provider_protocol import Body
from tests.scripted_provider import Call, Held, last_user_message

REVISIONS = 200
LONG = 10  # documents of several chunks, each in two revisions
PATIENCE = 180.0
SCHEDULE = {**LOCATION, "scheduleName": "prompt_upgrade"}
_STALE = """
query Stale($key: AssetKeyInput!, $partition: String!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode {
      staleStatus(partition: $partition)
      staleCauses(partition: $partition) { key { path } category reason }
    }
  }
}"""
_TICKS = """
query Ticks($schedule: ScheduleSelector!) {
  scheduleOrError(scheduleSelector: $schedule) {
    ... on Schedule {
      scheduleState { status ticks(limit: 20) { timestamp status error { message } } }
    }
  }
}"""
_NEXT_TICK = """
mutation NextTick($schedule: ScheduleSelector!, $now: Float!) {
  scheduleDryRun(selectorData: $schedule, timestamp: $now) {
    ... on DryRunInstigationTick {
      evaluationResult { skipReason runRequests { jobName } error { message } }
    }
  }
}"""
_MATERIALISATIONS = """
query Trials($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode {
      assetMaterializations(limit: 5) {
        runId
        metadataEntries { label ... on MarkdownMetadataEntry { mdStr } }
      }
    }
  }
}"""


class Deployment(Pipeline):
    """A pipeline whose prompts can be raised."""

    folder: Path
    deployed_at: float  # when the code server of the last prompt was ready

    def raise_prompt(self, **numbers: int) -> None:
        """As a deployment does: new files, and a new code server."""
        bump(self.folder, **numbers)
        ready = self.stack.times_ready("dagster-code")
        os.kill(self.stack.pid_of("dagster-code"), signal.SIGKILL)
        eventually(lambda: self.stack.times_ready("dagster-code") > ready, what="a new code server")
        self.deployed_at = time.time()

    def command(self, *arguments: str) -> Any:
        """`mcp-memory backfill … --json` while the stack runs."""
        environment = {
            **os.environ,
            **self.stack.variables,
            "DATA_DIR": str(self.stack.data_dir),
        }
        done = subprocess.run(
            [sys.executable, "-m", "mcp_server.cli", "backfill", *arguments, "--json"],
            env=environment,
            cwd=self.stack.data_dir,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def stale(self, asset: str, partition: str) -> tuple[str, list[Json]]:
        answer = self.stack.graphql(_STALE, key={"path": [asset]}, partition=partition)
        node = answer["assetNodeOrError"]
        return node["staleStatus"], node["staleCauses"]

    def made_with(self) -> dict[str, int]:
        rows = self.sql(
            "SELECT extract_version, merge_version, count(*)::int AS n FROM extraction "
            "GROUP BY 1, 2"
        )
        return {
            generations_of(row["extract_version"], row["merge_version"]): row["n"] for row in rows
        }

    def chunk_calls(self) -> list[Call]:
        return [call for call in self.provider.chats if not _merges(call)]

    def progress(self) -> Counter[str]:
        """Jobs of the backfill by status."""
        rows = self.sql("SELECT status FROM event_jobs WHERE origin = 'backfill'")
        return Counter(row["status"] for row in rows)

    def delete(self, artifact_uid: str) -> None:
        async def send() -> None:
            async with Client(self.stack.mcp_url) as client:
                answer = await client.call_tool("artifact_delete", {"artifact_uid": artifact_uid})
                assert not answer.is_error, answer.content

        asyncio.run(send())

    def next_tick(self) -> Json:
        """What the schedule would do now."""
        answer = self.stack.graphql(_NEXT_TICK, schedule=SCHEDULE, now=time.time())
        result: Json = answer["scheduleDryRun"]["evaluationResult"]
        assert result["error"] is None, result["error"]
        return result

    def finish(self) -> None:
        """The last step, whether it is ours or one of the schedule at the same time."""
        assert self.wait_finished(self.launch("prompt_upgrade")) == "SUCCESS"
        last = "SELECT status FROM backfill ORDER BY created_at DESC LIMIT 1"
        eventually(lambda: self.sql(last) == [{"status": "DONE"}], what="the backfill's end")


def _merges(call: Call) -> bool:
    return call.body["response_format"]["json_schema"]["name"] == "event_merge"


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("prompts")
    with scripted_stack(
        tmp_path_factory.mktemp("backfill"),
        OPENAI_TIMEOUT="300",
        PROMPTS_DIR=str(folder),
        BACKFILL_TOKENS_PER_DAY="100000000",
    ) as (stack, provider):
        made = Deployment(stack, provider)
        made.folder = folder
        yield made


@pytest.fixture(scope="module")
def corpus(deployment: Deployment) -> list[Json]:
    """Two hundred revisions, extracted with the shipped prompts."""
    first, then = [], []
    for number in range(LONG):
        named = {"title": f"Long {number}", "source_id": f"long-{number}"}
        text = document(seed=number, count=70)
        first.append({"content": text, **named})
        then.append({"content": f"{text}\n{document(seed=1000 + number, count=3)}", **named})
    for number in range(REVISIONS - 2 * LONG):
        named = {"title": f"Short {number}", "source_id": f"short-{number}"}
        then.append({"content": document(seed=100 + number, count=4), **named})
    with deployment.queue_closed():
        ingested = [
            *deployment.ingest_all(first, at_once=8),
            *deployment.ingest_all(then, at_once=8),
        ]
    deployment.wait_done(*ingested, within=PATIENCE)
    deployment.wait_idle()
    return ingested


def test_a_new_merge_prompt_makes_partitions_stale_and_a_backfill_fresh_without_chunk_calls(
    deployment: Deployment, corpus: list[Json]
) -> None:
    partition = deployment.partition(corpus[LONG])
    assert [deployment.stale(stage, partition)[0] for stage in STAGES] == ["FRESH"] * 5

    deployment.raise_prompt(merge=2)
    eventually(
        lambda: deployment.stale(CANONICAL_EVENTS, partition)[0] == "STALE", what="stale partitions"
    )
    assert deployment.stale(CHUNK_EXTRACTIONS, partition) == ("FRESH", [])
    for stage in (CANONICAL_EVENTS, STORED_EVENTS, EVENT_INDEX):
        status, causes = deployment.stale(stage, partition)
        assert status == "STALE"
        reasons = [(cause["category"], cause["reason"]) for cause in causes]
        assert ("CODE", "has a new code version") in reasons

    deployment.provider.reset()
    started = deployment.command("start")
    assert (started["plan"]["revisions"], started["plan"]["chunk_calls"]) == (REVISIONS, 0)
    eventually(
        lambda: deployment.made_with() == {"1/2": REVISIONS}, within=PATIENCE, what="all renewed"
    )

    assert deployment.chunk_calls() == []
    assert len(deployment.provider.chats) == started["plan"]["merge_calls"]
    deployment.finish()
    assert deployment.progress() == {"DONE": REVISIONS}
    for ingested in (corpus[LONG], corpus[-1]):
        key = deployment.partition(ingested)
        eventually(
            lambda key=key: (
                [deployment.stale(stage, key) for stage in STAGES] == [("FRESH", [])] * 5
            ),
            what="fresh partitions",
        )


def test_a_new_extraction_prompt_is_tried_then_asks_once_about_each_chunk_whatever_is_killed(
    deployment: Deployment, corpus: list[Json]
) -> None:
    partition = deployment.partition(corpus[-1])
    _raise_the_extraction_prompt(deployment, partition)
    plan = deployment.command("plan")
    tried = _try_the_prompt(deployment, plan)
    waiting, held = _start_and_hold_the_first_run(deployment, corpus)
    _fresh_work_goes_first(deployment)
    _kill_the_second_run_before_it_stores(deployment, waiting, held)

    eventually(
        lambda: deployment.made_with() == {"2/2": REVISIONS + 1},
        within=PATIENCE,
        what="all renewed",
    )
    _each_question_was_asked_once(deployment, plan)
    deployment.finish()
    assert deployment.progress() == {"DONE": REVISIONS}
    eventually(
        lambda: [deployment.stale(stage, partition) for stage in STAGES] == [("FRESH", [])] * 5,
        what="fresh partitions",
    )
    _the_schedule_has_nothing_more_to_do(deployment)

    # What a page tells of a document goes when the document does.
    deployment.delete(tried)
    assert not any(tried in page for page in _trials(deployment).values())
    assert len(_trials(deployment)) < 2


def _raise_the_extraction_prompt(deployment: Deployment, partition: str) -> None:
    deployment.raise_prompt(extract=2)
    eventually(
        lambda: all(
            deployment.stale(stage, partition)[0] == "STALE"
            for stage in (CHUNK_EXTRACTIONS, STORED_EVENTS)
        ),
        what="stale extractions and events",
    )
    deployment.provider.reset()


def _try_the_prompt(deployment: Deployment, plan: Json) -> str:
    """From the command line, and from Dagster. Returns the uid of a document that was tried."""
    assert plan["revisions"] == REVISIONS
    assert plan["cached_chunks"] == 0
    assert plan["distinct_chunks"] < plan["chunks"], "revisions share chunks"
    tried = deployment.command("trial", "--sample", "5", "--seed", "1")
    assert (tried["totals"]["revisions"], tried["totals"]["lost"]) == (5, 0)
    run_id = deployment.launch("try_prompt")
    assert deployment.wait_finished(run_id) == "SUCCESS"

    def are_shown() -> bool:
        deployment.wake_sensors()
        return len(_trials(deployment)) == 2

    eventually(are_shown, what="both trials on the asset's page")
    assert all("| kept |" in page and "# Trial" in page for page in _trials(deployment).values())
    assert run_id in _trials(deployment)
    assert deployment.made_with() == {"1/2": REVISIONS}, "nothing was replaced"
    uid: str = tried["revisions"][0]["artifact_uid"]
    assert any(uid in page for page in _trials(deployment).values())
    return uid


def _start_and_hold_the_first_run(deployment: Deployment, corpus: list[Json]) -> tuple[Json, Held]:
    """Returns the document whose answer is held back, and what holds it."""
    numbers: list[int] = []

    def is_first(body: Body) -> bool:
        """Whichever document the model is asked about first: which documents share the first run is
        not certain. One of a single chunk, which no other revision has."""
        kind, _, number = (title_of(body) or "").partition(" ")
        if kind == "Short":
            numbers.append(int(number))
        return kind == "Short"

    held = Held(only=is_first)
    trials = len(deployment.chunk_calls())
    deployment.provider.enqueue(held)
    started = deployment.command("start")
    assert started["plan"]["cached_chunks"] == trials > 0, "trials are not paid for twice"
    assert started["note"] == f"asked for {REVISIONS} revisions"
    eventually(lambda: numbers, what="a question of the first run")
    return corpus[2 * LONG + numbers[0]], held


def _fresh_work_goes_first(deployment: Deployment) -> None:
    fresh = deployment.ingest("Decision: fresh work goes first.", title="Fresh")
    deployment.wait_done(fresh)
    assert deployment.progress()["PENDING"] > 0, "the rest of the backfill is still to come"
    assert deployment.next_tick()["runRequests"], "the schedule takes the next step"
    [queued] = deployment.runs(tags=[{"key": "lane", "value": "backfill"}], statuses=["QUEUED"])
    tags = {tag["key"]: tag["value"] for tag in queued["tags"]}
    assert tags["dagster/priority"] == "-10"


def _kill_the_second_run_before_it_stores(
    deployment: Deployment, waiting: Json, held: Held
) -> None:
    """Its answers are paid for, and nothing of them is stored."""
    # The first run has nothing left but the held one: it would not end while no run can store.
    eventually(
        lambda: deployment.progress()["PROCESSING"] == 1,
        within=PATIENCE,
        what="the rest of the first run",
    )
    held.gate.set()
    deployment.wait_done(waiting)
    with deployment.locked("semantic_event"):
        eventually(lambda: _parked(deployment), within=PATIENCE, what="a run that cannot store")
        _, alive = psutil.wait_procs(deployment.kill_runs(), timeout=PATIENCE)
        assert not alive


def _each_question_was_asked_once(deployment: Deployment, plan: Json) -> None:
    questions = [
        json.dumps(call.body["messages"][1:])
        for call in deployment.chunk_calls()
        if "fresh work goes first" not in last_user_message(call.body)
    ]
    assert len(questions) == len(set(questions)) == plan["chunk_calls"]
    assert len(deployment.provider.chats) - 1 == pytest.approx(plan["calls"], rel=0.1)


def _the_schedule_has_nothing_more_to_do(deployment: Deployment) -> None:
    """It looks every minute."""
    assert deployment.next_tick()["skipReason"] == "no backfill is running"
    state = deployment.stack.graphql(_TICKS, schedule=SCHEDULE)["scheduleOrError"]["scheduleState"]
    assert state["status"] == "RUNNING"
    # A tick may fall into the moment of a deployment, when no code server is there; and the daemon
    # may notice a little later than we do that there is one again.
    failures = [
        tick["error"]["message"]
        for tick in state["ticks"]
        if tick["status"] == "FAILURE" and tick["timestamp"] > deployment.deployed_at
    ]
    assert all("DagsterUserCodeUnreachableError" in failure for failure in failures), failures


def _trials(deployment: Deployment) -> dict[str, str]:
    """Pages of trials by the run that made them; those of the command line have none. Before the
    first trial the asset says that there was none, without a page."""
    data = deployment.stack.graphql(_MATERIALISATIONS, key={"path": ["prompt_trial"]})
    return {
        item["runId"]: entry["mdStr"]
        for item in data["assetNodeOrError"]["assetMaterializations"]
        for entry in item["metadataEntries"]
        if entry["label"] == "page"
    }


def _parked(deployment: Deployment) -> bool:
    """As many documents wait to store as may at once, so that none begins; every answer is kept.
    The runs stand still then."""
    runs = deployment.run_processes()
    for run in runs:
        run.suspend()
    time.sleep(0.1)  # what they had sent has arrived
    if runs and _nothing_under_way(deployment):
        return True
    for run in runs:
        run.resume()
    return False


def _nothing_under_way(deployment: Deployment) -> bool:
    [waiting] = deployment.sql(
        "SELECT count(*) AS n FROM pg_locks WHERE NOT granted "
        "AND relation = 'semantic_event'::regclass"
    )
    [kept] = deployment.sql(
        "SELECT count(*) AS n FROM extraction_cache "
        "WHERE prompt_version LIKE %s AND context_hash <> 'event_merge'",
        f"{number_of('extract', 2)}-%",
    )
    calls = len(deployment.chunk_calls())
    return waiting["n"] >= 6 and not deployment.provider.in_flight and kept["n"] == calls
