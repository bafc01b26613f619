"""Which runs the sensor has requested, and how due jobs are cut into runs."""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import dagster as dg

from memory_core import jobs
from memory_core.database import Row

REVISIONS_PER_RUN = 100
# A request this young is on its way; its run may not exist yet.
YOUNG_SECONDS = 20.0


@dataclass(slots=True)
class Requested:
    """Job, generation and attempt → the run that was asked for it, and when. Kept as the cursor."""

    entries: dict[str, tuple[str, float]] = field(default_factory=dict)

    @classmethod
    def from_cursor(cls, cursor: str | None) -> "Requested":
        entries = json.loads(cursor) if cursor else {}
        return cls({key: (run_key, at) for key, (run_key, at) in entries.items()})

    def to_cursor(self) -> str:
        return json.dumps(self.entries)

    def forget_all_but(self, rows: Iterable[Row]) -> None:
        current = {_name(row) for row in rows}
        self.entries = {key: value for key, value in self.entries.items() if key in current}


def _name(row: Row) -> str:
    return f"{row['job_id']}:{row['generation']}:{row['attempts']}"


def remember(requested: Requested, batch: Sequence[Row], run_key: str) -> None:
    for row in batch:
        requested.entries[_name(row)] = (run_key, time.time())


def still_wanted(row: Row, requested: Requested, instance: dg.DagsterInstance) -> bool:
    """Whether no run is under way for this very request."""
    entry = requested.entries.get(_name(row))
    if entry is None:
        return True
    run_key, at = entry
    if time.time() - at < YOUNG_SECONDS:
        return False
    runs = instance.get_runs(dg.RunsFilter(tags={"dagster/run_key": run_key}), limit=1)
    return not runs or runs[0].is_finished


def batches(due: Sequence[Row], order: Sequence[str]) -> list[list[Row]]:
    """Groups of neighbouring partitions, since a range includes all that lies between its ends.

    A job whose last run died goes alone: should it be the one that kills runs, it takes no
    others with it.
    """
    position = {key: index for index, key in enumerate(order)}
    ordered = sorted(due, key=lambda row: position[row["partition_key"]])
    groups: list[list[Row]] = []
    for row in ordered:
        if groups and _follows(groups[-1][-1], row, position) and _room(groups[-1], row):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _follows(before: Row, row: Row, position: dict[str, int]) -> bool:
    return position[row["partition_key"]] == position[before["partition_key"]] + 1


def _room(group: Sequence[Row], row: Row) -> bool:
    alone = jobs.RUN_DIED in {group[-1]["last_error_code"], row["last_error_code"]}
    return len(group) < REVISIONS_PER_RUN and not alone
