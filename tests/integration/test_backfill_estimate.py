"""A plan's estimate against what the backfill then used, and a trial before it."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from typer.testing import CliRunner

from mcp_server.cli import app
from memory_core.artifacts.deletion import delete_artifact
from memory_core.backfill import control
from memory_core.backfill.plan import BackfillPlan, make_plan
from memory_core.backfill.scope import Filter
from memory_core.backfill.tick import tick
from memory_core.backfill.trial import run_trial
from memory_core.backfill.trial_page import page
from memory_core.kernel.errors import InvalidInput
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from tests.backfill_client import Deployment
from tests.pipeline_client import SMALL_CHUNKS, Pipeline
from tests.scripted_provider import (
    AuthError,
    Body,
    ScriptedProvider,
    extract_telling_sentences,
)

TOLERANCE = 0.10


@pytest.fixture
def deployment(deployment: Deployment) -> Deployment:
    """With chunks so small that a few sentences make several."""
    return partial(deployment, **SMALL_CHUNKS)


def paragraph(number: int) -> str:
    return (
        f"Carol Diaz will deliver part {number} of the plan for room {number * 7} by Friday, as "
        f"she told everybody in the hall. The lamps of floor {number} were counted and complete."
    )


async def remember_many(pipeline: Pipeline, count: int) -> None:
    """Documents of several chunks, some of which two revisions share, with promises so alike that
    merges are asked about."""
    for number in range(count):
        parts = [paragraph(number * 10 + part) for part in range(3 + number % 4)]
        await pipeline.remember("\n\n".join(parts), f"doc-{number}", title=f"Plan {number}")
        if number % 3 == 0:
            parts.append(f"Decision: the plan of wing {number} is final.")
            await pipeline.remember("\n\n".join(parts), f"doc-{number}", title=f"Plan {number}")
    await pipeline.extract()


async def backfill(pipeline: Pipeline) -> tuple[BackfillPlan, control.Status]:
    started = await control.start(pipeline.runtime, Filter(), requested_by="cli")
    await pipeline.extract("backfill-run")
    assert (await tick(pipeline.runtime)).status == "DONE"
    return started.plan, await control.status(pipeline.runtime)


def tells_otherwise(chunk: str, body: Body) -> dict[str, Any]:
    """As a new prompt does: the same promises in other words, and one of them more."""
    answer = extract_telling_sentences(chunk, body)
    for event in answer["events"]:
        event["narrative"] = f"It was told that {event['narrative']}"
    return answer


async def test_the_estimate_is_within_a_tenth_of_what_the_backfill_used(
    deployment: Deployment, provider: ScriptedProvider
) -> None:
    await remember_many(deployment(), 12)
    provider.on_extract = tells_otherwise
    provider.calls.clear()

    plan, used = await backfill(deployment(extract=2))

    assert plan.revisions == used.progress.done == 16
    assert plan.cost.distinct_chunks < plan.cost.chunks, "some chunks are shared"
    assert plan.cost.cached_chunks == 0
    assert plan.cost.merge_calls > 0
    chunk_calls = [call for call in provider.chats if "event_merge" not in str(call.body)]
    assert len(chunk_calls) == plan.cost.chunk_calls, "one call for each distinct chunk"
    assert used.progress.calls == pytest.approx(plan.cost.calls, rel=TOLERANCE)
    assert used.progress.used_tokens == pytest.approx(plan.cost.tokens, rel=TOLERANCE)


async def test_a_new_merge_prompt_asks_about_no_chunk_and_is_estimated_as_well(
    deployment: Deployment, provider: ScriptedProvider
) -> None:
    await remember_many(deployment(), 12)
    provider.calls.clear()

    plan, used = await backfill(deployment(merge=2))

    assert (plan.cost.chunk_calls, plan.cost.cached_chunks) == (0, plan.cost.distinct_chunks)
    assert plan.cost.merge_calls > 0
    assert len(provider.chats) == plan.cost.merge_calls
    assert all("event_merge" in str(call.body) for call in provider.chats)
    assert used.progress.used_tokens == pytest.approx(plan.cost.tokens, rel=TOLERANCE)


async def test_rules_cost_nothing(runtime: Runtime) -> None:
    rules = Pipeline(runtime, extractor="rules")
    await rules.remember("Decision: we launch the beta in May.")
    await rules.extract()
    await rules.rows("UPDATE extraction SET extract_version = '0-rules'")

    plan, used = await backfill(rules)

    assert (plan.revisions, plan.cost.tokens, plan.cost.calls) == (1, 0, 0)
    assert used.progress.done == 1


async def test_without_any_call_before_the_plan_says_that_it_guesses(
    deployment: Deployment,
) -> None:
    await remember_many(deployment(), 1)
    other = deployment(openai_event_model="never-called")

    plan = await make_plan(other.runtime, other_models=True)

    assert plan.revisions == 2
    assert plan.cost.tokens > 0
    assert "is a guess" in " ".join(plan.warnings)


# --- trials -----------------------------------------------------------------------------------


def tells_better(chunk: str, body: Body) -> dict[str, Any]:
    """Loses feedback, tells promises otherwise, finds lamps, and invents a quote."""
    answer = extract_telling_sentences(chunk, body)
    answer["events"] = [e for e in answer["events"] if e["category"] != "Feedback"]
    for event in answer["events"]:
        if event["category"] == "Commitment":
            event["event_time"] = "2026-05-01"
    if "lamps" in chunk:
        proposed = {**extract_telling_sentences("Decision: x.", body)["events"][0]}
        proposed["category"] = "Execution"
        proposed["narrative"] = "Somebody counted the lamps."
        proposed["evidence"] = {"quote": "The lamps were counted.", "start_char": 0, "end_char": 9}
        lie = {
            **proposed,
            "evidence": {**proposed["evidence"], "quote": "Nobody ever said this thing."},
        }
        answer["events"] += [proposed, lie]
    return answer


async def remember_two(pipeline: Pipeline) -> list[str]:
    texts = [
        "Decision: we stay.\nBob Roth will test it.\nThe lamps were counted.",
        "Decision: we go.\nFeedback: too dark | too *small*.",
    ]
    results = [
        await pipeline.remember(text, f"trial-{n}", title=f"Trial {n}")
        for n, text in enumerate(texts)
    ]
    await pipeline.extract()
    return [result.artifact_uid for result in results]


async def test_a_trial_compares_and_replaces_nothing_and_is_not_paid_for_twice(
    deployment: Deployment, provider: ScriptedProvider
) -> None:
    old, new = deployment(), deployment(extract=2)
    await remember_two(old)
    served, states = await old.events(), await old.jobs()
    provider.on_extract = tells_better

    trial = await run_trial(new.runtime, Filter(), sample=20, seed=3, requested_by="cli")

    totals = trial.totals()
    sides = {side: totals[side] for side in ("kept", "changed", "added", "lost")}
    assert sides == {"kept": 2, "changed": 1, "added": 1, "lost": 1}
    assert (totals["before"], totals["after"]) == (4, 4)
    assert (totals["rejected_before"], totals["rejected"]) == (0, 1)
    assert (totals["calls"], totals["failed"]) == (2, 0)
    assert totals["tokens"] > 0
    assert await new.events() == served
    assert await new.jobs() == states
    shown = page(trial)
    assert "| lost | 1 |" in shown
    assert "too dark \\| too \\*small\\*" in shown, "text of documents is no Markdown of ours"
    assert "event\\_time" not in shown
    assert "(event_time)" in shown

    provider.calls.clear()
    plan, used = await backfill(new)
    assert (plan.cost.calls, used.progress.calls, provider.chats) == (0, 0, [])
    assert len(await new.events()) == 4


async def test_a_trial_takes_a_seeded_sample_and_survives_a_failure(
    deployment: Deployment, provider: ScriptedProvider
) -> None:
    old, new = deployment(), deployment(extract=2)
    await remember_many(old, 6)
    samples = [
        {
            row.artifact_uid + row.revision_id
            for row in (
                await run_trial(new.runtime, Filter(), sample=3, seed=seed, requested_by="cli")
            ).revisions
        }
        for seed in (1, 1, 2)
    ]
    assert samples[0] == samples[1] != samples[2]

    third = deployment(extract=3)
    provider.enqueue(AuthError())
    trial = await run_trial(third.runtime, Filter(), sample=3, seed=1, requested_by="cli")
    assert trial.totals()["failed"] == 1
    assert "OPENAI\\_AUTH\\_ERROR" in page(trial)
    with pytest.raises(InvalidInput, match="nothing to try"):
        await run_trial(old.runtime, Filter(), sample=3, seed=1, requested_by="cli")


async def test_deleting_a_document_takes_its_trials_along(
    deployment: Deployment, provider: ScriptedProvider
) -> None:
    old, new = deployment(), deployment(extract=2)
    uids = await remember_two(old)
    await run_trial(new.runtime, Filter(), sample=2, seed=1, requested_by="cli")

    await delete_artifact(new.runtime, artifact_uid=uids[0])

    rows = await new.rows("SELECT artifact_uid FROM prompt_trial_revision")
    assert [row["artifact_uid"] for row in rows] == [uids[1]]


# --- the command line -------------------------------------------------------------------------


@pytest.fixture
def command(
    deployment: Deployment, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """`mcp-memory backfill …` of a deployment with a newer prompt."""
    for name, value in deployment(extract=2).runtime.settings.environment().items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["backfill", *arguments])
        assert done.exit_code == code, (done.output, done.exception)
        return done.output

    return run


async def test_the_command_line_plans_tries_starts_and_stops(
    deployment: Deployment, command: Callable[..., str], provider: ScriptedProvider
) -> None:
    await remember_two(deployment())

    def drive() -> None:
        assert "revisions" in command("plan")
        plan = json.loads(command("plan", "--json"))
        assert (plan["revisions"], plan["calls"]) == (2, 2)
        assert json.loads(command("plan", "--category", "Feedback", "--json"))["revisions"] == 1
        trial = json.loads(command("trial", "--sample", "1", "--seed", "7", "--json"))
        assert trial["totals"]["revisions"] == 1
        assert command("trial", "--sample", "1", "--markdown").startswith("# Trial")
        assert "lost" in command("trial")
        assert json.loads(command("plan", "--json"))["cached_chunks"] == 2

        started = json.loads(command("start", "--json"))
        assert started["note"] == "asked for 2 revisions"
        assert json.loads(command("status", "--json"))["waiting"] == 2
        assert "RUNNING" in command("status")
        assert json.loads(command("pause", "--json"))["status"] == "PAUSED"
        # Paused, there is nothing to wait for.
        assert "PAUSED" in command("status", "--watch")
        assert json.loads(command("resume", "--json"))["waiting"] == 2
        assert json.loads(command("cancel", "--json"))["status"] == "CANCELLED"

    await asyncio.to_thread(drive)
