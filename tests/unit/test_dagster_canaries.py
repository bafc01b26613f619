"""Canaries: what `memory_assets/dagster_internals` relies on is still there in this Dagster.

Each would otherwise fail without a word: Dagster would work, only slowly. See
docs/raising-dagster.md.
"""

import importlib.util
import inspect

import pytest
from dagster._core.events import DagsterEvent
from dagster._daemon import controller
from dagster._grpc.server import DagsterApiServer
from dagster_postgres import PostgresEventLogStorage, PostgresRunStorage
from dagster_webserver import cli as web_cli

from memory_assets.dagster_internals import code_server, daemon, storage


def parameters(function: object) -> list[str]:
    return list(inspect.signature(function).parameters)  # type: ignore[arg-type]


def test_the_code_server_starts_runs_by_the_context_that_is_replaced() -> None:
    uses = [
        name
        for name, function in inspect.getmembers(DagsterApiServer, inspect.isfunction)
        if "_mp_ctx" in function.__code__.co_names and name != "__init__"
    ]

    assert "StartRun" in uses
    assert "_mp_ctx" in DagsterApiServer.__init__.__code__.co_names


@pytest.mark.parametrize("module", code_server._LOADED)
def test_what_runs_are_forked_with_exists(module: str) -> None:
    # The process that runs are forked from leaves out what it cannot import.
    assert importlib.util.find_spec(module) is not None


def test_the_daemon_makes_its_loops_by_the_names_that_are_replaced() -> None:
    made = controller.create_daemon_of_type.__code__.co_names

    assert {"SensorDaemon", "QueuedRunCoordinatorDaemon"} <= set(made)
    assert "core_loop" in controller.DagsterDaemon.run_daemon_loop.__code__.co_names


def test_a_round_over_the_sensors_takes_what_it_is_given() -> None:
    given = {
        "workspace_process_context",
        "logger",
        "threadpool_executor",
        "submit_threadpool_executor",
        "sensor_tick_futures",
        "instrument_elapsed",
    }

    assert given <= set(parameters(daemon.execute_sensor_iteration))


def test_the_web_server_serves_by_the_function_that_is_replaced() -> None:
    served_by = "host_dagster_ui_with_workspace_process_context"

    assert served_by in web_cli.dagster_webserver.callback.__code__.co_names


def test_an_event_can_be_marked_as_one_of_a_batch() -> None:
    assert parameters(DagsterEvent.asset_materialization)[-1] == "batch_metadata"


@pytest.mark.parametrize(
    ("ours", "theirs", "method"),
    [
        (storage.BatchingEventLog, PostgresEventLogStorage, "store_event_batch"),
        (storage.NotifyingRuns, PostgresRunStorage, "handle_run_event"),
    ],
)
def test_the_storage_is_called_by_the_methods_that_are_replaced(
    ours: type, theirs: type, method: str
) -> None:
    assert method in vars(ours)
    assert callable(getattr(theirs, method))


@pytest.mark.parametrize(
    "method", ["_event_to_row", "_store_asset_event_tags", "_store_asset_event"]
)
def test_the_parts_of_a_batch_are_written_by_methods_of_dagsters_own(method: str) -> None:
    assert callable(getattr(PostgresEventLogStorage, method, None))
