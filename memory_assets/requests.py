"""Which runs the sensor has requested, and how due jobs are cut into runs."""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import dagster as dg

from memory_core import jobs
from memory_core.database import Row

REVISIONS_PER_RUN = 200
# Of a backfill: it is stopped between two runs, not within one.
RENEWALS_PER_RUN = 100
SUSPECTS_PER_RUN = 25
# A request this young is on its way; its run may not exist yet.
YOUNG_SECONDS = 20.0
_FORGOTTEN_SECONDS = 86_400.0
LANE_TAG = "lane"


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

    def forget_all_but(self, rows: Iterable[Row], *, complete: bool = True) -> None:
        """Only the front of a long queue is seen: what lies behind it was requested all the same.
        A request that is a day old is forgotten in any case."""
        current = {_name(row) for row in rows}
        old = time.time() - _FORGOTTEN_SECONDS
        self.entries = {
            key: (run_key, at)
            for key, (run_key, at) in self.entries.items()
            if key in current or (not complete and at > old)
        }


def _name(row: Row) -> str:
    return f"{row['job_id']}:{row['generation']}:{row['attempts']}"


def remember(requested: Requested, batch: Sequence[Row], run_key: str) -> None:
    for row in batch:
        requested.entries[_name(row)] = (run_key, time.time())


def still_wanted(
    row: Row,
    requested: Requested,
    instance: dg.DagsterInstance,
    over: dict[str, bool] | None = None,
) -> bool:
    """Whether no run is under way for this very request.

    `over` remembers for one look at the queue which runs are: a hundred jobs wait for the same.
    """
    entry = requested.entries.get(_name(row))
    if entry is None:
        return True
    run_key, at = entry
    if time.time() - at < YOUNG_SECONDS:
        return False
    over = {} if over is None else over
    if run_key not in over:
        runs = instance.get_runs(dg.RunsFilter(tags={"dagster/run_key": run_key}), limit=1)
        over[run_key] = not runs or runs[0].is_finished
    return over[run_key]


def lanes(due: Sequence[Row]) -> list[list[Row]]:
    """Fresh work first, a backfill's after it: never in one run, nor in each other's place."""
    fresh = [row for row in due if row["backfill_id"] is None]
    later = [row for row in due if row["backfill_id"] is not None]
    return [lane for lane in (fresh, later) if lane]


def lane_tags(batch: Sequence[Row]) -> dict[str, str]:
    """Where a run stands in Dagster's queue. `dagster.yaml` lets one run of a backfill work at a
    time: places stay free for fresh work, and no two of them ask about the same passage at once."""
    backfill = batch[0]["backfill_id"]
    if backfill is None:
        return {}
    return {LANE_TAG: "backfill", "backfill": str(backfill), "dagster/priority": "-10"}


def batches(due: Sequence[Row], places: Iterable[Row]) -> list[list[Row]]:
    """Groups of neighbouring partitions, since a range includes all that lies between its ends.

    Those without a place in Dagster's list (retired this very moment) are left for the next tick.
    Jobs whose last run died go with a few of their kind, and alone when that one died as well:
    should one of them be what kills runs, it takes none with it that had no part in it.
    """
    jobs_by_key = {row["partition_key"]: row for row in due}
    groups: list[list[Row]] = []
    last: int | None = None
    for place in sorted(places, key=lambda place: place["id"]):
        row = jobs_by_key[place["partition_key"]]
        if groups and last is not None and place["before"] == last and _room(groups[-1], row):
            groups[-1].append(row)
        else:
            groups.append([row])
        last = place["id"]
    # What is due first is requested first, with its neighbours.
    turn = {row["partition_key"]: number for number, row in enumerate(due)}
    return sorted(groups, key=lambda group: min(turn[row["partition_key"]] for row in group))


def _room(group: Sequence[Row], row: Row) -> bool:
    return len(group) < min(_company(group[-1]), _company(row)) and (_died(group[-1]) == _died(row))


def _company(row: Row) -> int:
    """How many may share a run with it."""
    if not _died(row):
        return REVISIONS_PER_RUN if row["backfill_id"] is None else RENEWALS_PER_RUN
    return SUSPECTS_PER_RUN if row["attempts"] < 2 else 1


def _died(row: Row) -> bool:
    return bool(row["last_error_code"] == jobs.RUN_DIED)
