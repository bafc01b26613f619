"""Runs that died without reporting it. They are detected by missing signs of life, and what they
stored is still shown."""

import logging
import time
from collections.abc import Iterable

import dagster as dg

from memory_assets.specs import code_versions, stages_made, version_tags
from memory_core.kernel.settings import load_settings
from memory_core.processing.stages import STAGES
from memory_core.queue.jobs import StoredEvents

log = logging.getLogger(__name__)

# A run claims its jobs within seconds of its start, and then renews its leases.
SUSPECT_SECONDS = 120.0
# The second name is the former one of the job: one of its runs may still be running at an upgrade.
_JOBS = frozenset({"documents_to_events", "extract_pending", "__ASSET_JOB"})


def suspects(instance: dg.DagsterInstance) -> list[str]:
    """Runs that started long ago and have the status "started".

    Dagster itself never checks them. A run that was killed together with its code server would be
    shown as running for ever, and would occupy a slot of the queue.
    """
    records = instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
    return [
        record.dagster_run.run_id
        for record in records
        if _extracts(record.dagster_run)
        and record.start_time is not None
        and time.time() - record.start_time > SUSPECT_SECONDS
    ]


def _extracts(run: dg.DagsterRun) -> bool:
    """Whether the run claims jobs. A run of upkeep, or of a check alone, never claims one."""
    selection = run.asset_selection
    if run.job_name not in _JOBS or (selection is None and run.asset_check_selection):
        return False
    return selection is None or any(dg.AssetKey(stage) in selection for stage in STAGES)


def mark_failed(instance: dg.DagsterInstance, run_ids: Iterable[str], reason: str) -> None:
    for run_id in run_ids:
        run = instance.get_run_by_id(run_id)
        if run is not None and not run.is_finished:
            instance.report_run_failed(run, message=reason)


def end(instance: dg.DagsterInstance, run_id: str, reason: str) -> None:
    """Stop the process of a run that is still alive, and record why."""
    run = instance.get_run_by_id(run_id)
    if run is None or run.is_finished:
        return
    instance.report_run_failed(run, message=reason)
    try:
        instance.run_launcher.terminate(run_id)
    except Exception as error:
        # The run has lost its leases, so it stops by itself at its next heartbeat.
        log.warning("run %s could not be stopped at once: %s", run_id, error)


def show_what_was_stored(
    instance: dg.DagsterInstance, run: dg.DagsterRun, stored: Iterable[StoredEvents]
) -> int:
    """Log the materialisations that a killed run could not log. A run that was killed between its
    commit and the event log leaves revisions that are DONE but shown as failed. Returns how many
    were corrected."""
    connection = instance.get_records_for_run(
        run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
    )
    wanted = stages_made(
        stage
        for stage in STAGES
        if run.asset_selection is None or dg.AssetKey(stage) in run.asset_selection
    )
    logged = {(record.asset_key, record.partition_key) for record in connection.records}
    versions = code_versions(load_settings())
    corrected = 0
    for row in stored:
        key = row.partition_key
        missing = [stage for stage in wanted if (dg.AssetKey(stage), key) not in logged]
        for stage in missing:
            instance.report_runless_asset_event(
                _late_materialisation(stage, row, run.run_id, versions)
            )
        corrected += bool(missing)
    return corrected


def _late_materialisation(
    stage: str, row: StoredEvents, run_id: str, versions: dict[str, str]
) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        asset_key=stage,
        partition=row.partition_key,
        description=f"Stored by run {run_id}, which died before it could say so.",
        metadata={"events": row.events},
        tags=version_tags(stage, versions, lambda _: run_id),
    )
