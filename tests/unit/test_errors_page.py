"""docs/errors.md lists every code that a tool or a job can show, and no other."""

import re

import pytest

from memory_core.kernel.errors import ErrorCode
from memory_core.queue import jobs
from tests.documented import ROOT

PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
OF_TOOLS, OF_JOBS = PAGE.split("## What a job can end with")
# Codes that only a job has.
JOBS_ALONE = {ErrorCode.INVALID_JSON_SCHEMA, ErrorCode.ARTIFACT_NOT_FOUND,
              ErrorCode.MAX_ATTEMPTS_EXCEEDED}  # fmt: skip


def rows(text: str) -> list[list[str]]:
    """The cells of each row that begins with a code."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]


def codes(text: str) -> list[str]:
    return [row[0].strip("`") for row in rows(text)]


def test_every_code_of_a_tool_is_listed_once() -> None:
    assert sorted(codes(OF_TOOLS)) == sorted({code.value for code in ErrorCode} - JOBS_ALONE)


def test_every_code_of_a_job_is_listed_once() -> None:
    listed = codes(OF_JOBS)

    assert len(listed) == len(set(listed))
    assert set(listed) >= JOBS_ALONE | jobs.PERMANENT | {jobs.RUN_DIED, jobs.RUN_STUCK}
    assert set(listed) <= {code.value for code in ErrorCode} | {jobs.RUN_DIED, jobs.RUN_STUCK}
    assert {code for code in ErrorCode if code.startswith("OPENAI_")} <= set(listed)


def test_the_page_says_which_are_tried_again() -> None:
    final = {row[0].strip("`") for row in rows(OF_JOBS) if row[1] == "no"}

    assert final == jobs.PERMANENT | {ErrorCode.MAX_ATTEMPTS_EXCEEDED}


@pytest.mark.parametrize("row", rows(PAGE), ids=lambda row: row[0])
def test_every_code_has_a_cause_and_a_remedy(row: list[str]) -> None:
    assert all(re.search(r"[a-z]{3}", cell) for cell in row[1:] if cell not in {"yes", "no"})
