"""Steps of a backfill: what is asked for again, in which order, within which budget, and what two
at once, a kill and another deployment make of it."""

import asyncio
import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_core.backfill import control
from memory_core.backfill import tick as steps
from memory_core.backfill.plan import make_plan
from memory_core.backfill.scope import Filter
from memory_core.backfill.tick import tick
from memory_core.events.reextraction import reextract
from memory_core.kernel.database import Session
from memory_core.kernel.errors import InvalidInput, NotFound
from memory_core.queue import jobs
from memory_core.queue.answers import Answers
from tests.backfill_client import (
    NOTHING,
    Deployment,
    asked_for,
    begin,
    remember,
    state,
    versions_of,
)
from tests.pipeline_client import Pipeline, number_of

# --- order, size, end -------------------------------------------------------------------------


async def test_newest_first_and_latest_before_superseded_in_steps_of_a_given_size(
    deployment: Deployment,
) -> None:
    old = deployment()
    uids = await remember(old, 4)
    again = await old.remember("Decision: plan 0 is dropped.", "doc-0", title="Note 0")
    await old.extract()
    new = deployment(extract=2, backfill_revisions_per_tick=2)

    started = await begin(new)
    assert started.plan.revisions == 5
    assert started.first is not None
    assert started.first.asked == 2
    order = await asked_for(new)
    # The first document's second revision is the newest; its first is superseded.
    assert order == [again.artifact_uid, uids[3]]
    assert (await tick(new.runtime)).note == "2 of it are still in the queue"

    await new.extract("run-2")
    assert (await tick(new.runtime)).asked == 2
    order += await asked_for(new)
    await new.extract("run-3")
    assert (await tick(new.runtime)).asked == 1
    [last] = await new.rows("SELECT * FROM event_jobs WHERE status = 'PENDING'")
    assert order == [uids[0], uids[3], uids[2], uids[1]]
    assert (last["artifact_uid"], last["origin"]) == (uids[0], "backfill")
    assert last["revision_id"] != again.revision_id

    await new.extract("run-4")
    ended = await tick(new.runtime)
    assert (ended.note, ended.status) == ("nothing is left", "DONE")
    seen = await state(new)
    assert (seen.total, seen.progress.done, seen.remaining) == (5, 5, 0)
    assert set((await versions_of(new)).values()) == {"2/1"}
    assert (await tick(new.runtime)).note == "no backfill is open"
    assert (await make_plan(new.runtime)).revisions == 0


async def test_an_empty_database_has_nothing_to_do(deployment: Deployment) -> None:
    new = deployment(extract=2)

    assert (await make_plan(new.runtime)).as_json()["tokens"] == 0
    assert (await begin(new)).first is None
    assert (await tick(new.runtime)).note == "no backfill is open"
    with pytest.raises(NotFound):
        await state(new)
    for command in (control.pause, control.resume, control.cancel):
        with pytest.raises(InvalidInput, match="No backfill is open"):
            await command(new.runtime)


@pytest.mark.parametrize(
    ("chosen", "count"),
    [
        (Filter(category="Feedback"), 0),  # type: ignore[arg-type]
        (Filter(category="Decision"), 3),  # type: ignore[arg-type]
        (Filter(source_system="mail"), 0),
        (Filter(source_system="notes"), 3),
        (Filter(artifact_type="email"), 0),  # type: ignore[arg-type]
        (Filter(artifact_type="note"), 3),  # type: ignore[arg-type]
        (Filter(time_from=datetime(2026, 2, 1, tzinfo=UTC)), 2),
        (Filter(time_to=datetime(2026, 2, 1, tzinfo=UTC)), 2),
        (Filter(artifact_uid="uid_nobody"), 0),
    ],
)
async def test_a_filter_limits_it(deployment: Deployment, chosen: Filter, count: int) -> None:
    old = deployment()
    for month in (1, 2, 3):
        ts = datetime(2026, month, 1, tzinfo=UTC)
        await old.remember(f"Decision: number {month}.", f"doc-{month}", ts=ts)
    await old.extract()
    new = deployment(extract=2)

    assert (await make_plan(new.runtime, chosen)).revisions == count
    started = await begin(new, chosen)
    assert (started.first.asked if started.first else 0) == count


# --- two deployments --------------------------------------------------------------------------


async def test_deployments_with_different_prompts_never_undo_each_other(
    deployment: Deployment,
) -> None:
    both_old, extracts, merges = deployment(), deployment(extract=2), deployment(merge=2)
    await remember(both_old, 2)

    await begin(extracts)
    # The old deployment's runs do not take what is meant for the new one.
    assert await asked_for(both_old) == []
    assert await both_old.extract("old-run") == []
    assert len(await extracts.extract("new-run")) == 2
    assert (await tick(extracts.runtime)).status == "DONE"
    assert set((await versions_of(both_old)).values()) == {"2/1"}

    # Neither the older one nor the one whose other prompt is newer may touch it now.
    for other in (both_old, merges):
        assert (await make_plan(other.runtime)).revisions == 0
        assert (await begin(other)).first is None
    assert "newer prompt" in " ".join((await make_plan(both_old.runtime)).warnings)
    assert (await make_plan(deployment(2, 2).runtime)).revisions == 2


@pytest.mark.parametrize("numbers", [{"extract": 2}, {"merge": 2}])
async def test_an_older_deployment_leaves_what_a_newer_prompt_made_whatever_asks_again(
    deployment: Deployment, numbers: dict[str, int]
) -> None:
    old, new = deployment(), deployment(**numbers)
    [uid] = await remember(old, 1)
    await begin(new)
    await new.extract("new-run")
    renewed = await versions_of(new)

    await reextract(old.runtime, uid, None, answers=Answers.NEW)

    assert await asked_for(old) == []
    assert await old.extract("old-run") == []
    assert await asked_for(new) == [uid]
    await new.extract("new-run-2")
    assert await versions_of(new) == renewed

    # A person who materialises it in the UI of the old deployment means that one.
    assert len(await old.extract("by-hand", asked_by="ui")) == 1
    assert set((await versions_of(new)).values()) == {"1/1"}


async def test_what_only_a_newer_deployment_may_do_does_not_hold_up_a_backfill(
    deployment: Deployment,
) -> None:
    old, new = deployment(), deployment(extract=3)
    [uid, _] = await remember(old, 2)
    await begin(new, Filter(artifact_uid=uid))
    await new.extract("new-run")
    assert (await tick(new.runtime)).status == "DONE"
    await reextract(new.runtime, uid, None, answers=Answers.NEW)

    started = await begin(deployment(extract=2))

    assert started.first is not None
    assert started.first.asked == 1


async def test_what_an_older_deployment_made_of_it_meanwhile_is_not_counted_as_done(
    deployment: Deployment,
) -> None:
    old, new = deployment(), deployment(extract=2)
    [uid] = await remember(old, 1)
    await begin(new)
    await reextract(old.runtime, uid, None, answers=Answers.NEW)
    await old.extract("old-run")

    seen = await state(new)
    assert (seen.progress.done, seen.progress.overtaken) == (0, 1)


async def test_a_step_of_an_older_deployment_leaves_the_backfill_alone(
    deployment: Deployment,
) -> None:
    old, new = deployment(), deployment(extract=2, backfill_revisions_per_tick=1)
    await remember(old, 2)
    await begin(new)

    note = (await tick(old.runtime)).note

    assert "left to a newer one" in note
    assert (await state(new)).progress.waiting == 1


async def test_another_model_is_no_upgrade_unless_asked_for(deployment: Deployment) -> None:
    await remember(deployment(), 2)
    mini = deployment(openai_event_model="mini")

    assert (await make_plan(mini.runtime)).revisions == 0
    assert "--other-models" in " ".join((await make_plan(mini.runtime)).warnings)
    assert (await make_plan(mini.runtime, other_models=True)).revisions == 2
    await begin(mini, other_models=True)
    await mini.extract("mini-run")
    assert (await tick(mini.runtime)).status == "DONE"
    assert [row["model"] for row in await mini.rows("SELECT model FROM extraction")] == [
        "mini",
        "mini",
    ]
    # With a newer prompt, what this model made is outdated; a lower number never is an upgrade.
    assert (await make_plan(deployment().runtime, other_models=True)).revisions == 2
    assert (await make_plan(deployment(extract=2).runtime)).revisions == 2


async def test_a_backfill_to_another_model_is_left_to_deployments_of_that_model(
    deployment: Deployment,
) -> None:
    await remember(deployment(), 2)
    mini, maxi = (deployment(openai_event_model=name) for name in ("mini", "maxi"))
    await begin(mini, other_models=True)

    assert await asked_for(maxi) == []
    assert await maxi.extract("maxi-run") == []
    assert "it is for mini, this deployment has maxi" in (await tick(maxi.runtime)).note
    await mini.extract("mini-run")
    assert (await tick(mini.runtime)).status == "DONE"
    made = await mini.rows("SELECT DISTINCT model FROM extraction")
    assert made == [{"model": "mini"}]


async def test_a_backfill_to_a_prompt_may_be_done_with_any_model(deployment: Deployment) -> None:
    await remember(deployment(), 1)
    await begin(deployment(extract=2))

    assert len(await deployment(extract=2, openai_event_model="mini").extract("run-2")) == 1


async def test_the_same_number_with_another_text_is_told_of(
    deployment: Deployment, tmp_path: Path
) -> None:
    two = deployment(extract=2)
    await remember(two, 1)
    folder = tmp_path / "changed"
    folder.mkdir()
    (folder / f"extract.{number_of('extract', 2)}.md").write_text(
        "Another text under the same number."
    )
    changed = Pipeline(two.runtime, prompts_dir=folder)

    plan = await make_plan(changed.runtime)

    assert plan.revisions == 0
    assert "give the changed prompt the next number" in " ".join(plan.warnings)


# --- fresh work first -------------------------------------------------------------------------


async def test_nothing_is_asked_for_while_fresh_jobs_wait(deployment: Deployment) -> None:
    old, new = deployment(), deployment(extract=2, backfill_revisions_per_tick=1)
    await remember(old, 3)
    await begin(new)
    fresh = await new.remember("Decision: the fresh one.", "fresh")

    queue = await asked_for(new)
    assert queue[0] == fresh.artifact_uid, "it came later and goes first"
    assert len(queue) == 2
    others = await new.rows(
        "SELECT partition_key FROM artifact_revision WHERE artifact_uid <> %s", fresh.artifact_uid
    )
    await new.extract("backfill-run", keys=[row["partition_key"] for row in others])
    assert "go first" in (await tick(new.runtime)).note

    # A job that waits for its next try holds up no other.
    await new.rows(
        "UPDATE event_jobs SET next_run_at = now() + interval '1 hour' WHERE artifact_uid = %s",
        fresh.artifact_uid,
    )
    assert (await tick(new.runtime)).asked == 1


# --- the budget -------------------------------------------------------------------------------


async def test_a_day_has_its_tokens_and_the_next_day_has_them_again(
    deployment: Deployment,
) -> None:
    old = deployment()
    await remember(old, 4)
    whole = (await make_plan(deployment(extract=2).runtime)).cost.tokens
    new = deployment(extract=2, backfill_tokens_per_day=round(whole * 0.6))

    started = await begin(new)
    assert started.plan.days == 2
    assert started.first is not None
    assert started.first.asked == 2
    await new.extract("run-2")
    midnight = datetime(2026, 3, 3, tzinfo=UTC)
    await new.rows("UPDATE model_call SET called_at = %s", midnight - timedelta(hours=12))
    noon = await tick(new.runtime, now=midnight - timedelta(hours=12))
    assert "today's tokens do not suffice" in noon.note

    # One second before midnight is still that day; at midnight, UTC, another begins.
    before = await tick(new.runtime, now=midnight - timedelta(seconds=1))
    assert before.asked == 0
    assert (await tick(new.runtime, now=midnight)).asked == 2
    # What is reserved counts for whichever day it will be billed on.
    assert (await tick(new.runtime, now=midnight + timedelta(days=1))).asked == 0
    await new.extract("run-3")
    assert (await tick(new.runtime)).status == "DONE"


async def test_without_a_budget_only_what_is_free_is_done(
    deployment: Deployment, tmp_path: Path
) -> None:
    old = deployment()
    uids = await remember(old, 2)
    # The second one's answer is known already.
    newer = deployment(extract=2)
    await reextract(newer.runtime, uids[1], None, answers=Answers.NEW)
    await newer.extract("run-2")
    await newer.rows(
        "UPDATE extraction SET extract_version = '1-x' WHERE artifact_uid = %s", uids[1]
    )
    free = deployment(extract=2, backfill_tokens_per_day=0)

    started = await begin(free)
    assert started.plan.days is None
    assert await asked_for(free) == [uids[1]]
    await free.extract("run-3")
    stopped = await tick(free.runtime)
    assert stopped.status == "PAUSED"
    assert "raise BACKFILL_TOKENS_PER_DAY" in stopped.note
    assert (await free.calls())[-1]["backfill_id"] is None, "nothing was asked of the model"


async def test_what_a_cancelled_one_has_in_work_is_reserved_as_well(deployment: Deployment) -> None:
    old = deployment()
    await remember(old, 4)
    whole = (await make_plan(deployment(extract=2).runtime)).cost.tokens
    new = deployment(extract=2, backfill_tokens_per_day=round(whole * 0.6))
    await begin(new)
    claimed = await jobs.claim(new.runtime.database, await new.keys(), "run-2")
    await control.cancel(new.runtime)

    again = await begin(new)

    assert len(claimed) == 2
    assert again.first is not None
    assert again.first.asked == 0
    assert "today's tokens do not suffice" in again.first.note


async def test_many_that_are_too_large_do_not_hide_behind_work_that_no_run_does(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remember(deployment(), 5)
    monkeypatch.setattr(steps, "PAGES", 2)
    new = deployment(extract=2, backfill_tokens_per_day=1, backfill_revisions_per_tick=2)

    started = await begin(new)

    assert started.first is not None
    assert started.first.status == "PAUSED"
    assert "4 revisions need more than a whole day's tokens each" in started.first.note


# --- two at once, and kills -------------------------------------------------------------------


async def test_steps_at_once_ask_for_nothing_twice(deployment: Deployment) -> None:
    old, new = deployment(), deployment(extract=2, backfill_revisions_per_tick=5)
    await remember(old, 5)

    begun = await asyncio.gather(*(begin(new) for _ in range(4)), return_exceptions=True)
    assert sorted(type(one).__name__ for one in begun) == ["InvalidInput"] * 3 + ["StartedBackfill"]
    await control.pause(new.runtime)
    await new.rows("UPDATE backfill SET status = 'RUNNING'")
    steps = await asyncio.gather(*(tick(new.runtime) for _ in range(6)))

    assert sum(step.asked for step in steps) == 5
    assert {job["generation"] for job in await new.jobs()} == {3}, "once by the start, once now"
    assert (await state(new)).total == 5


async def test_a_step_killed_before_its_commit_has_not_happened(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = deployment(), deployment(extract=2)
    await remember(old, 2)

    class Killed(BaseException):
        pass

    broken = copy.copy(new.runtime)
    run = Session.run

    async def dies(self: Session, query: str, /, **parameters: Any) -> int:
        if query == "note_tick":
            raise Killed
        return await run(self, query, **parameters)

    monkeypatch.setattr(Session, "run", dies)
    with pytest.raises(Killed):
        await control.start(broken, NOTHING, requested_by="cli")
    monkeypatch.undo()

    assert {job["status"] for job in await new.jobs()} == {"DONE"}
    assert (await state(new)).remaining == 2
    assert (await tick(new.runtime)).asked == 2
