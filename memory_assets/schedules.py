"""Builds a schedule with a job of its own, switched on by default."""

import dagster as dg


def scheduled(
    name: str, job: str, selection: dg.AssetSelection, cron: str, description: str
) -> dg.ScheduleDefinition:
    return dg.ScheduleDefinition(
        name=name,
        job=dg.define_asset_job(job, selection=selection, description=description),
        cron_schedule=cron,
        description=description,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
