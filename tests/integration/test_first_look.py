"""The first hour of a memory in Dagster: figures at the start, checks after the first documents."""

from collections.abc import Iterator

import dagster as dg
import pytest

from memory_assets.definitions import defs
from memory_assets.first_look import first_look
from memory_assets.memory_resource import MemoryResource
from memory_core.kernel.settings import Settings
from memory_core.upkeep.integrity import CHECKS
from tests.integration.job_queue import Queue

AT_THE_START = ["report_health", "keep_house"]
WHEN_DOCUMENTS_ARE_DONE = ["integrity", "verify_events_are_fresh", "report_health"]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture(autouse=True)
def here(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryResource, "settings", property(lambda _: settings))


def look(instance: dg.DagsterInstance, cursor: str | None) -> tuple[list[str], str | None]:
    """The jobs that a tick asks for, and the cursor it leaves."""
    context = dg.build_sensor_context(
        instance=instance, cursor=cursor, resources={"memory": MemoryResource()}
    )
    data = first_look.evaluate_tick(context)
    return [request.job_name or "" for request in data.run_requests or []], data.cursor


def test_an_empty_memory_has_its_figures_at_once_and_its_checks_when_a_document_is_done(
    instance: dg.DagsterInstance, queue: Queue
) -> None:
    asked, cursor = look(instance, None)
    assert asked == AT_THE_START
    queue.add()
    assert look(instance, cursor) == ([], cursor)

    queue.change("status = 'DONE'")

    asked, cursor = look(instance, cursor)
    assert asked == WHEN_DOCUMENTS_ARE_DONE
    assert look(instance, cursor) == ([], cursor)


def test_a_memory_with_documents_has_all_of_it_at_once(
    instance: dg.DagsterInstance, queue: Queue
) -> None:
    queue.add()
    queue.change("status = 'DONE'")

    asked, cursor = look(instance, None)

    assert asked == AT_THE_START + WHEN_DOCUMENTS_ARE_DONE
    assert look(instance, cursor) == ([], cursor)


def test_the_checks_that_are_asked_for_are_all_there_are() -> None:
    jobs = {job.name: job for job in defs.get_repository_def().get_all_jobs()}
    evaluated = {
        key.name
        for name in WHEN_DOCUMENTS_ARE_DONE
        for key in jobs[name].asset_layer.asset_graph.asset_check_keys
    }

    assert {check.name for check in CHECKS} | {"events_are_fresh"} <= evaluated


def test_an_asset_that_was_never_asked_for_says_so_instead_of_looking_amiss(
    instance: dg.DagsterInstance, queue: Queue
) -> None:
    def told(cursor: str | None) -> list[str]:
        context = dg.build_sensor_context(
            instance=instance, cursor=cursor, resources={"memory": MemoryResource()}
        )
        data = first_look.evaluate_tick(context)
        return [event.asset_key.to_user_string() for event in data.asset_events]

    assert told(None) == ["prompt_trial"]

    instance.report_runless_asset_event(dg.AssetMaterialization("prompt_trial"))
    assert told(None) == []
