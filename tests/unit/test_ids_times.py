"""Identifiers follow from what they name; times are ISO 8601 and UTC."""

import hashlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.kernel import ids
from memory_core.kernel.errors import ErrorCode, InvalidInput, NotFound
from memory_core.kernel.times import as_utc, parse_time, parse_until

UUID = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"


def test_artifact_uid_is_a_hash_of_source_and_id() -> None:
    expected = hashlib.sha256(b"gmail:msg-1").hexdigest()[:16]

    assert ids.artifact_uid("gmail", "msg-1") == f"uid_{expected}"


@pytest.mark.parametrize("source_id", [None, ""])
def test_artifact_uid_without_a_source_id_is_never_the_same(source_id: str | None) -> None:
    made = {ids.artifact_uid("gmail", source_id) for _ in range(100)}

    assert len(made) == 100
    assert all(len(uid) == len("uid_") + 16 for uid in made)


def test_revision_id_follows_from_the_content() -> None:
    digest = hashlib.sha256("Zoë".encode()).hexdigest()

    assert ids.sha256("Zoë") == digest
    assert ids.revision_id(digest) == f"rev_{digest[:16]}"


def test_artifact_id_differs_between_documents_and_between_revisions() -> None:
    made = {ids.artifact_id(uid, rev) for uid in ("uid_1", "uid_2") for rev in ("rev_1", "rev_2")}

    assert len(made) == 4
    assert ids.artifact_id("uid_1", "rev_1") == ids.artifact_id("uid_1", "rev_1")


@pytest.mark.parametrize(
    ("index", "expected"),
    [(0, "art_1::chunk::000::abcdef01"), (1234, "art_1::chunk::1234::abcdef01")],
)
def test_chunk_id_says_which_chunk_of_what(index: int, expected: str) -> None:
    assert ids.chunk_id("art_1", index, "abcdef0123456789") == expected


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Pricing model for Tallyrook 4", "pricing-model-for-tallyrook"),
        ("notes/2026/kick-off.md", "notes-2026-kick-off-md"),
        ("Größe & Übermut", "größe-übermut"),
        ("田中さんのメモ", "田中さんのメモ"),
        ("a:b:c", "a-b-c"),  # the separator of the key stays the key's own
        ("🚀", "untitled"),
        ("", "untitled"),
        (None, "untitled"),
    ],
)
def test_partition_key_is_readable(name: str | None, slug: str) -> None:
    assert ids.partition_key(name, "uid_1", "rev_1").split(":")[0] == slug


@given(st.text())
def test_partition_key_is_a_short_title_and_ten_digits(name: str) -> None:
    key = ids.partition_key(name, "uid_1", "rev_1")

    slug, digits = key.split(":")
    assert len(digits) == 10
    assert slug
    assert len(key) <= 38, "what Dagster's page of an asset has room for"


def test_partition_keys_of_revisions_and_documents_of_one_title_differ() -> None:
    keys = {
        ids.partition_key("Minutes", uid, revision)
        for uid in ("uid_1", "uid_2")
        for revision in ("rev_1", "rev_2")
    }

    assert len(keys) == 4


@pytest.mark.parametrize(
    "given_id", [UUID, f"evt_{UUID}", f"job_{UUID}", f"evi_{UUID}", f" {UUID} "]
)
def test_ids_are_read_with_and_without_the_prefix_of_the_documentation(given_id: str) -> None:
    assert str(ids.parse_uuid("event_id", given_id)) == UUID


@pytest.mark.parametrize("given_id", ["", "evt_", "evt_evt_" + UUID, "art_" + UUID, "7"])
def test_what_is_no_id_names_nothing(given_id: str) -> None:
    with pytest.raises(NotFound, match="There is no event '") as refused:
        ids.parse_uuid("event_id", given_id)

    assert refused.value.details == {"event_id": given_id}


@pytest.mark.parametrize("given_id", ["uid_" + "0" * 200, "uid_\x00", "uid_\ud800", "x" * 10**6])
def test_an_id_that_no_store_can_hold_names_nothing(given_id: str) -> None:
    with pytest.raises(NotFound, match="There is no artifact ") as refused:
        ids.refuse_impossible("artifact_uid", given_id)

    assert len(refused.value.message) < 300
    assert len(refused.value.details["artifact_uid"].encode()) < 300


@pytest.mark.parametrize("given_id", ["uid_0123456789abcdef", "7", "", "überall", "x" * 200])
def test_any_other_is_for_the_stores_to_know(given_id: str) -> None:
    ids.refuse_impossible("artifact_uid", given_id)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-03-15", datetime(2026, 3, 15, tzinfo=UTC)),
        ("2026-03-15T14:30:00", datetime(2026, 3, 15, 14, 30, tzinfo=UTC)),
        ("2026-03-15T14:30:00Z", datetime(2026, 3, 15, 14, 30, tzinfo=UTC)),
        ("2026-03-15T14:30:00+02:00", datetime(2026, 3, 15, 12, 30, tzinfo=UTC)),
        (" 2026-03-15 ", datetime(2026, 3, 15, tzinfo=UTC)),
        ("", None),
        ("  ", None),
        (None, None),
    ],
)
def test_times_are_read_as_utc(written: str | None, meant: datetime | None) -> None:
    assert parse_time("ts", written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-03-15", datetime(2026, 3, 15, 23, 59, 59, 999_999, tzinfo=UTC)),
        (" 20260315 ", datetime(2026, 3, 15, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("9999-12-31", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("2026-03-15T00:00:00", datetime(2026, 3, 15, tzinfo=UTC)),
        ("2026-03-15T14:30:00+02:00", datetime(2026, 3, 15, 12, 30, tzinfo=UTC)),
        ("  ", None),
        (None, None),
    ],
)
def test_a_day_as_an_upper_bound_is_meant_to_its_end(
    written: str | None, meant: datetime | None
) -> None:
    assert parse_until("time_to", written) == meant


@pytest.mark.parametrize(
    "written",
    ["next Friday", "15/03/2026", "2026-02-30", "0001-01-01T00:00:00+14:00", "1710513000"],
)
def test_what_is_no_time_is_refused_by_name_with_an_example(written: str) -> None:
    with pytest.raises(InvalidInput, match=r"ts=.*ISO 8601") as refused:
        parse_time("ts", written)

    assert refused.value.code is ErrorCode.VALIDATION_ERROR
    assert refused.value.details["parameter"] == "ts"


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)))
def test_what_we_print_we_read_again(moment: datetime) -> None:
    assert parse_time("ts", as_utc(moment).isoformat()) == as_utc(moment)
