"""The record of a call holds ids, numbers and words of ours; a text only as length and hash."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from memory_core.telemetry.masking import is_id, job_of, masked, summary

KNOWN = ("query", "artifact_uid", "limit", "category", "ids", "time_from")


def test_a_text_becomes_its_length_and_hash() -> None:
    kept = masked({"query": "the merger is off"}, KNOWN)
    digest = hashlib.sha256(b"the merger is off").hexdigest()[:16]
    assert kept == {"query": {"chars": 17, "sha256": digest}}


def test_ids_numbers_moments_and_listed_words_stay() -> None:
    given = {
        "artifact_uid": "uid_0123456789abcdef",
        "limit": 5,
        "category": "Decision",
        "ids": ["evt_00000000-0000-0000-0000-000000000001"],
        "time_from": "2026-03-01T10:00:00Z",
    }
    assert masked(given, KNOWN, {"Decision"}) == given


def test_a_name_that_the_tool_does_not_have_is_counted_alone() -> None:
    assert masked({"the merger is off": 1, "limit": 2}, KNOWN) == {
        "limit": 2,
        "unknown_parameters": 1,
    }


def test_numbers_that_json_cannot_hold_are_told_by_their_length() -> None:
    assert masked({"limit": 10**30}, KNOWN) == {"limit": {"digits": 31}}


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="0123456789"), min_size=3)


@given(st.lists(WORDS, min_size=1) | st.dictionaries(WORDS, WORDS, min_size=1) | WORDS)
def test_no_value_of_any_shape_is_readable(value: object) -> None:
    kept = repr(masked({"query": value}, KNOWN))
    for text in [value] if isinstance(value, str) else list(value):  # type: ignore[call-overload]
        assert repr(text) not in kept.replace("'query'", "").replace("'chars'", "").replace(
            "'sha256'", ""
        ).replace("'items'", "")


def test_an_answer_is_told_by_ids_and_counts() -> None:
    answer = {
        "artifact_uid": "uid_0123456789abcdef",
        "title": "The merger",
        "status": "created",
        "events": [{"narrative": "It is off"}],
        "indexed": True,
    }
    assert summary(answer) == {
        "artifact_uid": "uid_0123456789abcdef",
        "status": "created",
        "events": 1,
        "indexed": True,
    }


def test_what_is_formed_like_no_id_of_ours_is_a_text() -> None:
    assert is_id("rev_00ff")
    assert is_id("art_0123456789abcdef::chunk::012::89abcdef")
    assert not is_id("uid_the-merger")
    assert not is_id("uid_0\nforged")


def test_the_job_is_found_with_and_without_its_prefix() -> None:
    job = "00000000-0000-0000-0000-000000000001"
    assert job_of({"job_id": None}, {"job_id": f"job_{job}"}) == job
    assert job_of({"job_id": "soon"}, None) is None
