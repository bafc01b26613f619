"""How long a failed attempt waits, and which failures are for good."""

import re

import pytest

from memory_core.kernel.errors import ErrorCode
from memory_core.queue.jobs import PERMANENT, backoff_seconds
from tests.documented import ROOT


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [(1, 30), (2, 60), (3, 120), (4, 240), (5, 480), (6, 600), (7, 600), (100, 600)],
)
def test_waiting_doubles_up_to_ten_minutes(attempts: int, seconds: int) -> None:
    assert backoff_seconds(attempts) == seconds


@pytest.mark.parametrize(
    ("attempts", "retry_after", "seconds"),
    [
        pytest.param(1, 90.0, 90, id="longer than our own"),
        pytest.param(1, 7.0, 30, id="shorter than our own"),
        pytest.param(6, 3_600.0, 3_600, id="longer than our longest"),
        pytest.param(2, 0.0, 60, id="at once"),
        pytest.param(1, float("inf"), 86_400, id="for ever is a day"),
        pytest.param(1, 1e300, 86_400, id="nor longer than a day"),
        pytest.param(1, float("nan"), 30, id="not a number"),
    ],
)
def test_a_provider_may_ask_for_more_patience(
    attempts: int, retry_after: float, seconds: int
) -> None:
    assert backoff_seconds(attempts, retry_after) == seconds


@pytest.mark.parametrize("policy", ["exp", "fixed", "none"])
def test_the_page_has_the_waits_of_each_policy(policy: str) -> None:
    page = (ROOT / "docs" / "jobs.md").read_text(encoding="utf-8")
    [row] = re.findall(rf"^\| `{policy}` \| (.+) \|$", page, re.MULTILINE)
    listed = [int(seconds) for seconds in re.findall(r"\d+", row)]

    assert listed == [backoff_seconds(n, policy=policy) for n in range(1, len(listed) + 1)]


def test_only_what_waiting_cannot_cure_fails_at_once() -> None:
    assert {
        ErrorCode.OPENAI_INVALID_MODEL,
        ErrorCode.OPENAI_AUTH_ERROR,
        ErrorCode.ARTIFACT_NOT_FOUND,
    } <= PERMANENT
    assert not PERMANENT & {
        ErrorCode.OPENAI_RATE_LIMIT,
        ErrorCode.OPENAI_TIMEOUT,
        ErrorCode.OPENAI_CONNECTION_ERROR,
        ErrorCode.INVALID_JSON_SCHEMA,
        ErrorCode.CHROMA_CONNECTION_ERROR,
        ErrorCode.POSTGRES_CONNECTION_ERROR,
    }
