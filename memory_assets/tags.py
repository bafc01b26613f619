"""Tags of runs. A person finds a run in Dagster's list by its tags."""

from collections.abc import Iterable

from memory_assets.unclaimed import PartitionPlace, PartitionState

TRIGGER_TAG = "trigger"
FROM_QUEUE = "queue"
# How many revisions were left to another run that was already working on them.
NOT_DONE_TAG = "left_to_another_run"
_BACKFILL_TAG = "dagster/backfill"
_SCHEDULE_TAG = "dagster/schedule_name"
_NAMES_SHOWN = 3
_LONGEST = 120
_TRACES_SHOWN = 10


def trigger(tags: dict[str, str]) -> str:
    """What requested the run: the queue, a backfill, a schedule, or a person (in the UI or by its
    API)."""
    if tags.get(TRIGGER_TAG) == FROM_QUEUE:
        return FROM_QUEUE
    if _BACKFILL_TAG in tags:
        return "backfill"
    return "schedule" if _SCHEDULE_TAG in tags else "ui"


def describe(asked_by: str, revisions: Iterable[PartitionPlace | PartitionState]) -> dict[str, str]:
    """The tags of a run for these revisions."""
    rows = [row for row in revisions if row.artifact_uid is not None]
    tags = {TRIGGER_TAG: asked_by, "revisions": str(len(rows))}
    if sources := sorted({row.source_system for row in rows if row.source_system}):
        tags["source"] = _names(sources)
    artifacts = sorted({row.artifact_uid for row in rows if row.artifact_uid})
    if len(artifacts) == 1:
        tags["artifact"] = artifacts[0]
        if title := rows[-1].title:
            tags["title"] = _short(title)
    return tags


def trace_tags(trace_ids: Iterable[str | None]) -> dict[str, str]:
    """The trace ids of the calls that requested the work of a run, for `mcp-memory trace`."""
    ids = list(dict.fromkeys(filter(None, trace_ids)))
    if len(ids) <= 1:
        return {"trace_id": ids[0]} if ids else {}
    more = len(ids) - _TRACES_SHOWN
    return {"trace_ids": ", ".join(ids[:_TRACES_SHOWN]) + (f" and {more} more" if more > 0 else "")}


def _names(names: list[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    shown = ", ".join(names[:_NAMES_SHOWN])
    return _short(f"{shown} and {more} more" if more > 0 else shown)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"
