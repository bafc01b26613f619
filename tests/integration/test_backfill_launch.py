"""Starting and watching a backfill: from Dagster's launchpad, and from a terminal."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
import typer

from mcp_server.cli import backfill_tables
from memory_assets.backfill import prompt_upgrade_job
from memory_assets.memory_resource import MemoryResource
from memory_core.backfill import control
from memory_core.backfill.tick import tick
from memory_core.kernel.settings import Settings
from tests.backfill_client import Deployment, asked_for, begin, remember, state, versions_of
from tests.pipeline_client import Pipeline

# --- the launchpad ----------------------------------------------------------------------------


async def launch(pipeline: Pipeline, **config: Any) -> dg.ExecuteInProcessResult:
    """The job `prompt_upgrade`, as a person starts it with this configuration."""
    settings = pipeline.runtime.settings

    class Here(MemoryResource):
        @property
        def settings(self) -> Settings:
            return settings

    return await asyncio.to_thread(
        prompt_upgrade_job.execute_in_process,
        run_config={"ops": {"step": {"config": config}}},
        resources={"memory": Here()},
        raise_on_error=False,
    )


async def test_a_backfill_started_from_the_launchpad_keeps_to_its_filter(
    deployment: Deployment,
) -> None:
    old, new = deployment(), deployment(extract=2)
    uids = await remember(old, 3)

    assert (await launch(new, start=True, artifact_uid=uids[1])).success

    assert await asked_for(new) == [uids[1]]
    seen = await state(new)
    assert seen.backfill.filter == {"artifact_uid": uids[1]}
    assert seen.backfill.requested_by == "ui"
    await new.extract("run-2")
    # Without `start` it is a step of the open one.
    assert (await launch(new)).success
    assert (await state(new)).backfill.status == "DONE"
    made = await versions_of(new)
    assert [made[uid] for uid in uids] == ["1/1", "2/1", "1/1"]


@pytest.mark.parametrize(
    ("config", "asked"),
    [
        ({"category": "Decision"}, 3),
        ({"category": "Feedback"}, 0),
        ({"source_system": "notes", "artifact_type": "note"}, 3),
        ({"source_system": "mail"}, 0),
        ({"time_from": "2020-01-01"}, 3),
        ({"time_to": "2020-01-01T00:00:00Z"}, 0),
    ],
)
async def test_each_limit_of_the_configuration_limits(
    deployment: Deployment, config: dict[str, str], asked: int
) -> None:
    await remember(deployment(), 3)
    new = deployment(extract=2)

    assert (await launch(new, start=True, **config)).success

    assert len(await asked_for(new)) == asked


async def test_the_configuration_includes_other_models(deployment: Deployment) -> None:
    await remember(deployment(), 2)
    mini = deployment(openai_event_model="mini")

    assert (await launch(mini, start=True)).success
    assert await asked_for(mini) == []
    assert (await launch(mini, start=True, other_models=True)).success
    assert len(await asked_for(mini)) == 2


async def test_a_filter_that_makes_no_sense_starts_nothing(deployment: Deployment) -> None:
    await remember(deployment(), 1)
    new = deployment(extract=2)

    assert not (await launch(new, start=True, category="Gossip")).success

    assert await asked_for(new) == []


# --- the terminal -----------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[Pipeline], None]:
    """Commands with the settings of a deployment, that look again without a pause."""
    monkeypatch.setattr(backfill_tables, "LOOK_SECONDS", 0.0)

    def use(pipeline: Pipeline) -> None:
        monkeypatch.setattr(backfill_tables, "read_settings", lambda: pipeline.runtime.settings)

    return use


async def start_and_wait(pipeline: Pipeline) -> "asyncio.Task[None]":
    """The command at work, and what it asked for in the queue."""
    waiting = asyncio.create_task(
        asyncio.to_thread(
            backfill_tables.start, {}, other_models=False, yes=True, wait=True, as_json=True
        )
    )
    while not await asked_for(pipeline):
        await asyncio.sleep(0)
    return waiting


async def test_start_can_wait_for_the_end(
    deployment: Deployment,
    terminal: Callable[[Pipeline], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    old, new = deployment(), deployment(extract=2)
    await remember(old, 3)
    terminal(new)

    waiting = await start_and_wait(new)
    await new.extract("run-2")
    await tick(new.runtime)
    await waiting

    answer = json.loads(capsys.readouterr().out)
    assert (answer["status"], answer["done"], answer["total"]) == ("DONE", 3, 3)


async def test_waiting_for_one_that_is_paused_ends_as_a_failure(
    deployment: Deployment,
    terminal: Callable[[Pipeline], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    old, new = deployment(), deployment(extract=2)
    await remember(old, 1)
    terminal(new)

    waiting = await start_and_wait(new)
    await control.pause(new.runtime)
    with pytest.raises(typer.Exit) as ended:
        await waiting

    assert ended.value.exit_code == 1
    assert json.loads(capsys.readouterr().out)["status"] == "PAUSED"


async def test_a_running_backfill_can_be_watched_to_its_end(
    deployment: Deployment,
    terminal: Callable[[Pipeline], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new = deployment(), deployment(extract=2)
    await remember(old, 2)
    await begin(new)
    terminal(new)
    looked = asyncio.Event()
    here = asyncio.get_running_loop()
    look = control.status

    async def seen(*arguments: Any) -> control.Status:
        answer = await look(*arguments)
        here.call_soon_threadsafe(looked.set)
        return answer

    monkeypatch.setattr(control, "status", seen)
    watching = asyncio.create_task(
        asyncio.to_thread(backfill_tables.status, None, watch=True, as_json=False)
    )
    await looked.wait()
    await new.extract("run-2")
    await tick(new.runtime)

    assert await watching == "DONE"
    shown = capsys.readouterr().out
    assert "2 of 2" in shown
    assert "nothing is left" in shown
