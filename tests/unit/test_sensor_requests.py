"""Which runs the sensor asks for: neighbours together, dead runs' jobs alone, nothing twice."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID, uuid4

import dagster as dg
import pytest
from dagster._core.remote_origin import (
    GrpcServerCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)

from memory_assets.run_requests import (
    REVISIONS_PER_RUN,
    YOUNG_SECONDS,
    batches,
    busy_tenants,
    lane_tags,
    lanes,
    let_old_runs_pass,
    still_wanted,
    worth_a_run,
)
from memory_assets.unclaimed import PartitionPlace
from memory_core.queue.jobs import RUN_DIED, ClaimableJob
from memory_core.queue.request_columns import HIGHEST

RUN_KEY = "the-run"
BACKFILL = UUID(int=99)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def job(
    number: int,
    *,
    generation: int = 1,
    attempts: int = 0,
    error: str | None = None,
    backfill: UUID | None = None,
    priority: int = 0,
    tenant: int = 0,
) -> ClaimableJob:
    return ClaimableJob(
        job_id=UUID(int=number),
        tenant_id=UUID(int=tenant),
        generation=generation,
        attempts=attempts,
        last_error_code=error,
        partition_key=f"key-{number}",
        artifact_uid=f"uid_{number}",
        backfill_id=backfill,
        priority=priority,
        trace_id=None,
        run_key=None,
        requested_seconds_ago=None,
    )


def keys(count: int) -> list[str]:
    return [f"key-{number}" for number in range(count)]


def places(due: list[ClaimableJob], count: int) -> list[PartitionPlace]:
    """Where due jobs stand in a list of `count` keys, whose ids have gaps."""
    ids = {key: 10 * number for number, key in enumerate(keys(count), start=1)}
    return [
        PartitionPlace(
            partition_key=row.partition_key,
            id=ids[row.partition_key],
            artifact_uid=row.artifact_uid,
            source_system="test",
            title=None,
            before=ids[row.partition_key] - 10 or None,
        )
        for row in due
    ]


def cut(due: list[ClaimableJob], count: int) -> list[list[str]]:
    return [[row.partition_key for row in batch] for batch in batches(due, places(due, count))]


def asked_for(row: ClaimableJob, *, seconds_ago: float = 0.0) -> ClaimableJob:
    """The same job, for whose attempt a run was requested."""
    return replace(row, run_key=RUN_KEY, requested_seconds_ago=seconds_ago)


def run_of_the_request(instance: dg.DagsterInstance, status: dg.DagsterRunStatus) -> None:
    instance.add_run(
        dg.DagsterRun(
            job_name="documents_to_events",
            run_id=str(uuid4()),
            status=status,
            tags={"dagster/run_key": RUN_KEY},
        )
    )


# --- batches ----------------------------------------------------------------------------------


def test_neighbours_share_a_run_whatever_the_order_they_are_due_in() -> None:
    assert cut([job(2), job(0), job(1)], 3) == [["key-0", "key-1", "key-2"]]


def test_a_gap_ends_a_batch_since_a_range_would_include_it() -> None:
    assert cut([job(0), job(1), job(3)], 4) == [["key-0", "key-1"], ["key-3"]]


def test_a_batch_has_a_size_limit() -> None:
    count = 2 * REVISIONS_PER_RUN + 1
    cuts = cut([job(number) for number in range(count)], count)

    assert [len(batch) for batch in cuts] == [REVISIONS_PER_RUN, REVISIONS_PER_RUN, 1]
    assert [key for batch in cuts for key in batch] == keys(count)


def test_jobs_of_a_dead_run_go_in_small_groups_then_alone() -> None:
    once = [job(number, attempts=1, error=RUN_DIED) for number in range(60)]
    twice = [job(number, attempts=2, error=RUN_DIED) for number in range(3)]

    assert [len(batch) for batch in cut(once, 60)] == [25, 25, 10]
    assert [len(batch) for batch in cut(twice, 3)] == [1, 1, 1]


@pytest.mark.parametrize("dead", [0, 1, 2, 4])
def test_a_job_whose_run_died_goes_alone(dead: int) -> None:
    due = [job(number, error=RUN_DIED if number == dead else None) for number in range(5)]
    cuts = cut(due, 5)

    assert [f"key-{dead}"] in cuts
    assert [key for batch in cuts for key in batch] == keys(5)


def test_jobs_that_failed_otherwise_go_with_the_rest() -> None:
    assert cut([job(0, error="OPENAI_TIMEOUT"), job(1)], 2) == [["key-0", "key-1"]]


def test_a_key_that_was_retired_this_moment_waits_for_the_next_tick() -> None:
    due = [job(0), job(1), job(2)]
    first, _, third = places(due, 3)

    assert batches(due, [first, replace(third, before=first.id)]) == [[job(0), job(2)]]


def test_nothing_due_is_no_batch() -> None:
    assert batches([], []) == []


# --- lanes ------------------------------------------------------------------------------------


def test_a_backfill_never_shares_a_run_with_fresh_work_and_comes_after_it() -> None:
    due = [job(0), job(1, backfill=BACKFILL), job(2), job(3, backfill=BACKFILL)]
    fresh, later = lanes(due)

    assert [row.partition_key for row in fresh] == ["key-0", "key-2"]
    assert [row.partition_key for row in later] == ["key-1", "key-3"]
    assert lane_tags(fresh) == {}
    assert lane_tags(later) == {
        "lane": "backfill",
        "backfill": str(BACKFILL),
        "dagster/priority": "-10",
    }
    assert lanes([]) == []


def test_a_run_is_as_urgent_as_its_most_urgent_job() -> None:
    assert lane_tags([job(0), job(1, priority=7), job(2, priority=-3)]) == {"dagster/priority": "7"}


def test_a_run_that_waited_long_passes_all_others(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dg.job
    def nothing() -> None:
        return None

    location = GrpcServerCodeLocationOrigin(host="localhost", port=1, location_name="here")
    queued = instance.create_run_for_job(
        nothing,
        tags={"dagster/priority": "-10"},
        status=dg.DagsterRunStatus.QUEUED,
        remote_job_origin=RemoteJobOrigin(RemoteRepositoryOrigin(location, "all"), "nothing"),
    )
    old = queued.run_id
    at_work = instance.create_run_for_job(nothing, status=dg.DagsterRunStatus.STARTED)
    assert let_old_runs_pass(instance) == []

    monkeypatch.setattr("memory_assets.run_requests.QUEUED_SECONDS", -1.0)
    assert let_old_runs_pass(instance) == [old]
    assert let_old_runs_pass(instance) == [], "once is enough"
    [record] = instance.get_run_records(dg.RunsFilter(run_ids=[old]))
    assert int(record.dagster_run.tags["dagster/priority"]) > HIGHEST
    assert "dagster/priority" not in instance.get_run_by_id(at_work.run_id).tags  # type: ignore[union-attr]


def test_what_is_due_first_is_requested_first() -> None:
    assert cut([job(5), job(0), job(1)], 6) == [["key-5"], ["key-0", "key-1"]]


# --- whether to wait for more -------------------------------------------------------------------


def test_a_single_note_has_its_run_at_once() -> None:
    assert worth_a_run([job(1)], [job(1)]) == [job(1)]


def test_while_a_run_is_about_to_begin_the_next_gathers_jobs() -> None:
    on_its_way, new = asked_for(job(1)), job(2)

    assert worth_a_run([on_its_way, new], [new]) == []


def test_enough_for_a_full_run_do_not_wait() -> None:
    on_its_way = asked_for(job(0))
    new = [job(number) for number in range(1, REVISIONS_PER_RUN + 1)]

    assert worth_a_run([on_its_way, *new], new) == new


def test_a_backfill_on_its_way_keeps_no_fresh_work_waiting_nor_the_other_way_round() -> None:
    renewal, new = asked_for(job(1, backfill=BACKFILL)), job(2)
    assert worth_a_run([renewal, new], [new]) == [new]

    note, later = asked_for(job(3)), job(4, backfill=BACKFILL)
    assert worth_a_run([note, later], [later]) == [later]


def test_the_long_queue_of_a_tenant_keeps_no_other_waiting() -> None:
    on_its_way = [asked_for(job(number)) for number in range(900)]
    more, others = [job(number) for number in range(900, 999)], [job(1000, tenant=1)]
    wanted = [*more, *others]
    busy = busy_tenants([*on_its_way, *wanted], wanted)

    assert worth_a_run([*on_its_way, *wanted], wanted) == others
    assert lanes(wanted, busy) == [others, more]
    assert lane_tags(others, busy) == {"dagster/priority": "1"}, "before those that wait in Dagster"
    assert lane_tags(more, busy) == {}


def test_a_tenant_goes_ahead_with_what_comes_first_alone() -> None:
    on_its_way = [asked_for(job(0)), asked_for(job(1, tenant=1))]
    wanted = [job(2, tenant=1)]
    busy = busy_tenants([*on_its_way, *wanted], wanted)

    assert worth_a_run([*on_its_way, *wanted], wanted) == []
    assert lane_tags(wanted, busy) == {}


# --- whether to ask again ---------------------------------------------------------------------


def test_what_was_never_requested_is_wanted(instance: dg.DagsterInstance) -> None:
    assert still_wanted(job(1), instance, {})


def test_a_young_request_is_not_repeated_though_its_run_does_not_exist_yet(
    instance: dg.DagsterInstance,
) -> None:
    assert not still_wanted(asked_for(job(1)), instance, {})


def test_an_old_request_without_a_run_is_repeated(instance: dg.DagsterInstance) -> None:
    assert still_wanted(asked_for(job(1), seconds_ago=YOUNG_SECONDS), instance, {})


@pytest.mark.parametrize(
    ("status", "repeated"),
    [
        (dg.DagsterRunStatus.NOT_STARTED, False),
        (dg.DagsterRunStatus.STARTING, False),
        (dg.DagsterRunStatus.STARTED, False),
        (dg.DagsterRunStatus.CANCELING, False),
        (dg.DagsterRunStatus.SUCCESS, True),
        (dg.DagsterRunStatus.FAILURE, True),
        (dg.DagsterRunStatus.CANCELED, True),
    ],
)
def test_an_old_request_is_repeated_only_when_its_run_is_over(
    instance: dg.DagsterInstance, status: dg.DagsterRunStatus, repeated: bool
) -> None:
    run_of_the_request(instance, status)

    old = asked_for(job(1), seconds_ago=YOUNG_SECONDS)
    assert still_wanted(old, instance, {}) is repeated


def test_a_run_that_many_jobs_wait_for_is_looked_up_once(instance: dg.DagsterInstance) -> None:
    run_of_the_request(instance, dg.DagsterRunStatus.STARTED)
    one, other = (asked_for(job(number), seconds_ago=YOUNG_SECONDS) for number in (1, 2))
    over: dict[str, bool] = {}

    assert not still_wanted(one, instance, over)
    assert over == {RUN_KEY: False}
    over[RUN_KEY] = True
    assert still_wanted(other, instance, over), "as it was remembered"
