"""Which runs are suspected to be dead."""

from collections.abc import Iterator, Set
from uuid import uuid4

import dagster as dg
import pytest

from memory_assets import dead_runs
from memory_core.processing.stages import STAGES


@pytest.fixture
def instance(monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setattr(dead_runs, "SUSPECT_SECONDS", -1.0)
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def started(
    instance: dg.DagsterInstance, job: str, assets: Set[str] | None, *, check: bool = False
) -> str:
    key = dg.AssetCheckKey(dg.AssetKey("stored_events"), "some_check")
    run = dg.DagsterRun(
        job_name=job,
        run_id=str(uuid4()),
        asset_selection=None if assets is None else frozenset(map(dg.AssetKey, assets)),
        asset_check_selection=frozenset({key}) if check else None,
    )
    instance.add_run(run)
    event = dg.DagsterEvent("PIPELINE_START", job, message="started")
    instance.report_dagster_event(event, run.run_id)
    return run.run_id


@pytest.mark.parametrize(
    ("job", "assets"),
    [
        ("documents_to_events", None),
        ("extract_pending", None),
        ("__ASSET_JOB", set(STAGES)),
        ("__ASSET_JOB", {"event_index"}),
    ],
)
def test_a_run_that_is_to_claim_jobs_is_suspected_when_it_is_silent(
    instance: dg.DagsterInstance, job: str, assets: set[str] | None
) -> None:
    assert dead_runs.suspects(instance) == []
    run_id = started(instance, job, assets)

    assert dead_runs.suspects(instance) == [run_id]


@pytest.mark.parametrize(
    ("job", "assets", "check"),
    [
        ("keep_house", {"housekeeping"}, False),
        ("__ASSET_JOB", {"housekeeping"}, False),
        ("__ASSET_JOB", {"pipeline_health", "housekeeping"}, False),
        ("__ASSET_JOB", None, True),
        ("__ASSET_JOB", set(), True),
    ],
)
def test_a_run_that_claims_nothing_is_never_suspected(
    instance: dg.DagsterInstance, job: str, assets: set[str] | None, check: bool
) -> None:
    started(instance, job, assets, check=check)

    assert dead_runs.suspects(instance) == []
