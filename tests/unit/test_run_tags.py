"""What a run is called, so that a person finds it."""

import pytest

from memory_assets.tags import describe, trace_tags, trigger
from memory_assets.unclaimed import PartitionPlace


def revision(uid: str, source: str = "gmail", title: str | None = "Minutes") -> PartitionPlace:
    return PartitionPlace(
        partition_key=f"key of {uid}",
        id=1,
        artifact_uid=uid,
        source_system=source,
        title=title,
        before=None,
    )


@pytest.mark.parametrize(
    ("tags", "asked_by"),
    [
        ({"trigger": "queue", "dagster/sensor_name": "pending_jobs"}, "queue"),
        ({"dagster/backfill": "abc"}, "backfill"),
        ({"dagster/backfill": "abc", "dagster/from_ui": "true"}, "backfill"),
        ({"dagster/schedule_name": "nightly"}, "schedule"),
        ({"dagster/from_ui": "true"}, "ui"),
        ({}, "ui"),
    ],
)
def test_a_run_knows_who_asked_for_it(tags: dict[str, str], asked_by: str) -> None:
    assert trigger(tags) == asked_by


def test_a_run_for_one_document_is_found_by_it() -> None:
    assert describe("ui", [revision("uid_1"), revision("uid_1", title="Minutes, final")]) == {
        "trigger": "ui",
        "revisions": "2",
        "source": "gmail",
        "artifact": "uid_1",
        "title": "Minutes, final",
    }


def test_a_run_for_many_documents_names_a_few_sources() -> None:
    rows = [revision(f"uid_{number}", f"source-{number}") for number in range(5)]

    assert describe("queue", rows) == {
        "trigger": "queue",
        "revisions": "5",
        "source": "source-0, source-1, source-2 and 2 more",
    }


def test_a_title_is_cut_to_a_tag() -> None:
    title = describe("ui", [revision("uid_1", title="long\n" * 100)])["title"]

    assert len(title) == 120
    assert "\n" not in title
    assert "title" not in describe("ui", [revision("uid_1", title=None)])


def test_a_run_for_nothing_that_exists_says_so() -> None:
    assert describe("ui", []) == {"trigger": "ui", "revisions": "0"}


def test_a_run_is_found_by_the_trace_of_the_call_that_asked_for_it() -> None:
    assert trace_tags([None]) == {}
    assert trace_tags(["a", "a", None]) == {"trace_id": "a"}
    assert trace_tags(["a", "b", "a"]) == {"trace_ids": "a, b"}


def test_a_run_for_many_calls_names_the_first_of_them() -> None:
    shown = trace_tags([f"t{number}" for number in range(12)])["trace_ids"]
    assert shown.startswith("t0, t1, ")
    assert shown.endswith("t9 and 2 more")
