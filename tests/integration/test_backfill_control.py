"""Stopping a backfill and going on, what fails, what starts by itself, and who is said to have
asked."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from memory_core.artifacts.deletion import delete_artifact
from memory_core.backfill import control
from memory_core.backfill.tick import tick
from memory_core.events.reextraction import reextract
from memory_core.kernel.errors import ErrorCode, InvalidInput, ProviderFault
from memory_core.queue import jobs
from memory_core.queue.answers import Answers
from memory_core.runtime import Runtime
from tests.backfill_client import (
    Deployment,
    asked_for,
    begin,
    remember,
    state,
    versions_of,
)
from tests.integration.asking import until
from tests.pipeline_client import number_of
from tests.scripted_provider import AuthError, Held, ScriptedProvider
from tests.tool_client import ToolClient

# --- stopping ---------------------------------------------------------------------------------


async def test_pausing_takes_back_what_waits_and_resuming_goes_on(
    deployment: Deployment,
) -> None:
    old, new = deployment(), deployment(extract=2)
    uids = await remember(old, 3)
    before = await old.jobs()
    await begin(new)
    # A run holds one of them.
    [held] = await jobs.claim(new.runtime.database, [(await new.keys())[2]], "run-2")

    paused = await control.pause(new.runtime)

    assert (paused.backfill.status, paused.progress.working) == ("PAUSED", 1)
    now = {row["artifact_uid"]: row for row in await new.jobs()}
    for row in before[:2]:
        kept = ("status", "attempts", "origin", "requested_by", "locked_by", "backfill_id")
        assert [now[row["artifact_uid"]][name] for name in kept] == [row[name] for name in kept]
    assert (await tick(new.runtime)).note == "it is paused"
    assert held.artifact_uid == uids[2]

    # The run dies: what it held does not come back to life while all is paused.
    await jobs.release_run(new.runtime.database, "run-2", "killed")
    assert await asked_for(new) == []
    assert await new.extract("run-3") == []
    assert (await tick(new.runtime)).withdrawn == 1
    assert await asked_for(new) == []

    resumed = await control.resume(new.runtime)
    assert (resumed.backfill.status, resumed.progress.waiting) == ("RUNNING", 3)
    await new.extract("run-3")
    assert (await tick(new.runtime)).status == "DONE"


async def test_cancelling_while_a_run_works_keeps_what_it_does_and_nothing_else(
    deployment: Deployment, provider: ScriptedProvider
) -> None:
    old, new = deployment(), deployment(extract=2)
    await remember(old, 3)
    await begin(new)
    keys = await new.keys()
    held = Held()
    provider.enqueue(held)
    running = asyncio.create_task(new.extract("run-2", keys=keys[:1]))
    await until(lambda: provider.in_flight == 1)
    assert (await state(new)).progress.working == 1
    cancelled = await control.cancel(new.runtime)
    held.gate.set()
    await running

    assert cancelled.backfill.status == "CANCELLED"
    assert sorted((await versions_of(new)).values()) == ["1/1", "1/1", "2/1"]
    assert {row["status"] for row in await new.jobs()} == {"DONE"}
    with pytest.raises(InvalidInput):
        await control.resume(new.runtime)
    # Another may start, and does what is left.
    again = await begin(new)
    assert again.first is not None
    assert again.first.asked == 2


@pytest.mark.parametrize("stop", [control.pause, control.cancel])
async def test_nothing_is_asked_of_the_model_once_it_is_stopped(
    deployment: Deployment,
    provider: ScriptedProvider,
    stop: Callable[[Runtime], Awaitable[control.Status]],
) -> None:
    old, new = deployment(), deployment(extract=2)
    await remember(old, 3)
    await begin(new)
    keys = await new.keys()
    database = new.runtime.database
    # One run will be killed, one is killed unnoticed, one fails an attempt.
    await jobs.claim(database, keys[:1], "killed")
    await jobs.claim(database, keys[1:2], "silent")
    [failing] = await jobs.claim(database, keys[2:], "failing")

    await stop(new.runtime)
    await jobs.release_run(database, "killed", "killed")
    await new.rows(
        "UPDATE event_jobs SET locked_at = now() - interval '1 hour' WHERE locked_by = 'silent'"
    )
    await jobs.fail(database, failing, ProviderFault("slowly", code=ErrorCode.OPENAI_RATE_LIMIT))
    await new.all_due()
    provider.calls.clear()

    assert await asked_for(new) == []
    assert await new.extract("run-3") == []
    assert provider.chats == []
    assert await control.wants_a_tick(database, new.runtime.settings), "it takes them back"
    assert (await tick(new.runtime)).withdrawn == 3
    assert {job["status"] for job in await new.jobs()} == {"DONE"}
    assert not await control.wants_a_tick(database, new.runtime.settings)


async def test_a_new_request_takes_a_job_out_of_the_backfill(deployment: Deployment) -> None:
    old, new = deployment(), deployment(extract=2)
    [uid] = await remember(old, 1)
    await begin(new)

    await reextract(new.runtime, uid, None, answers=Answers.NEW)

    [job] = await new.jobs()
    assert (job["origin"], job["backfill_id"], job["needs_extractor"]) == ("tool", None, None)
    assert await asked_for(old) == [uid], "its events are as old: nothing would be undone"
    await new.extract("run-2")
    assert (await tick(new.runtime)).status == "DONE"
    assert (await state(new)).progress.done == 1


async def test_a_document_deleted_meanwhile_is_forgotten(deployment: Deployment) -> None:
    old, new = deployment(), deployment(extract=2)
    uids = await remember(old, 2)
    await begin(new)

    await delete_artifact(new.runtime, artifact_uid=uids[0])
    await new.extract("run-2")

    assert (await tick(new.runtime)).status == "DONE"
    assert (await state(new)).total == 1


# --- failures ---------------------------------------------------------------------------------


async def test_a_failed_one_keeps_its_old_events_and_resuming_tries_it_again(
    deployment: Deployment, provider: ScriptedProvider
) -> None:
    old, new = deployment(), deployment(extract=2)
    await remember(old, 1)
    events = await old.events()
    provider.enqueue(AuthError())
    await begin(new)
    await new.extract("run-2")

    seen = await state(new)
    assert (seen.progress.failed, seen.progress.done) == (1, 0)
    assert await new.events() == events
    assert (await tick(new.runtime)).status == "DONE"

    again = await begin(new)
    assert again.first is not None
    await control.pause(new.runtime)
    assert (await control.resume(new.runtime)).progress.waiting == 1
    await new.extract("run-3")
    assert set((await versions_of(new)).values()) == {"2/1"}


async def test_when_half_of_them_fail_it_pauses_by_itself(
    deployment: Deployment, provider: ScriptedProvider
) -> None:
    old, new = deployment(), deployment(extract=2, backfill_revisions_per_tick=10)
    await remember(old, 12)
    provider.enqueue(*[AuthError()] * 6)
    await begin(new)
    await new.extract("run-2")

    stopped = await tick(new.runtime)

    assert stopped.status == "PAUSED"
    assert "6 of the last 10 failed" in stopped.note
    assert len(await new.events()) == 24
    resumed = await control.resume(new.runtime)
    assert (resumed.progress.waiting, resumed.progress.failed) == (8, 0)


# --- by itself, and who asked -----------------------------------------------------------------


async def test_it_starts_by_itself_only_when_told_to_and_never_what_was_cancelled(
    deployment: Deployment,
) -> None:
    await remember(deployment(), 1)
    manual, auto = deployment(extract=2), deployment(extract=2, backfill_start="auto")
    database = auto.runtime.database

    assert await control.start_by_itself(manual.runtime) is None
    assert not await control.wants_a_tick(database, manual.runtime.settings)
    assert await control.wants_a_tick(database, auto.runtime.settings)
    begun = await control.start_by_itself(auto.runtime)
    assert begun is not None
    assert (await state(auto)).backfill.requested_by == "schedule"
    assert await control.start_by_itself(auto.runtime) is None, "one is open"
    await control.cancel(auto.runtime)

    assert await control.start_by_itself(auto.runtime) is None
    assert not await control.wants_a_tick(database, auto.runtime.settings)
    assert await control.start_by_itself(deployment(3, backfill_start="auto").runtime) is not None


async def test_the_tools_say_who_asked_and_what_made_the_events(
    deployment: Deployment, tools: ToolClient
) -> None:
    old, new = deployment(), deployment(extract=2)
    [uid] = await remember(old, 1)
    started = await begin(new)
    assert started.first is not None

    waiting = await tools("job_status", artifact_uid=uid)
    assert (waiting["origin"], waiting["requested_by"]) == ("backfill", "cli")
    assert waiting["backfill_id"] == str(started.first.backfill_id)
    assert waiting["extracted"]["requested_by"] == "ingest"
    assert waiting["extracted"]["prompt_version"].startswith(f"{number_of('extract', 1)}-")
    await new.extract("run-2")

    [event, *_] = (await tools("event_list_for_revision", artifact_uid=uid))["events"]
    shown = await tools("event_get", event_id=event["event_id"])
    [revision] = (await tools("artifact_history", artifact_uid=uid))["revisions"]
    for answer in (shown, revision):
        assert answer["requested_by"] == "backfill"
        assert answer["prompt_version"].startswith(f"{number_of('extract', 2)}-")
        assert answer["merge_version"].startswith(f"{number_of('merge', 1)}-")
        assert (answer["extractor"], answer["model"]) == ("openai", "gpt-4o")
        assert answer["extracted_at"]
    assert shown["dagster_run_id"] == "run-2"
