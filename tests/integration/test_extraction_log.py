"""The pipeline's log: one line for each document, of ids and counts, never of what it says."""

import logging
import re

import pytest

from memory_core.runtime import Runtime
from tests.pipeline_client import Pipeline
from tests.scripted_provider import AuthError, ScriptedProvider

SECRET = "Decision: we buy Wexford Limited in May."


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="memory_core")
    return caplog


def lines(log: pytest.LogCaptureFixture, word: str) -> list[str]:
    return [line for line in log.messages if line.split()[0] == word]


async def test_a_claim_and_each_extracted_document_have_a_line(
    runtime: Runtime, log: pytest.LogCaptureFixture
) -> None:
    pipeline = Pipeline(runtime)
    made = [await pipeline.remember(SECRET, name, title="Wexford") for name in ("a", "b")]
    log.clear()

    await pipeline.extract("run-7")

    assert lines(log, "claimed") == ["claimed run_id=run-7 jobs=2 of=2"]
    logged = sorted(re.sub(r"ms=\d+", "ms=1", line) for line in lines(log, "extracted"))
    assert logged == sorted(
        f"extracted job_id={one.job_id} artifact_uid={one.artifact_uid} "
        f"revision_id={one.revision_id} attempt=1 trace_id=- ms=1 events=1 rejected=0 calls=0"
        for one in made
    )
    assert "Wexford" not in log.text


async def test_a_failure_is_told_by_its_code(
    openai: Pipeline, provider: ScriptedProvider, log: pytest.LogCaptureFixture
) -> None:
    provider.enqueue(AuthError())
    made = await openai.remember(SECRET, title="Wexford")
    log.clear()

    await openai.extract()

    [line] = lines(log, "failed")
    assert f"job_id={made.job_id} artifact_uid={made.artifact_uid}" in line
    assert line.endswith("code=OPENAI_AUTH_ERROR status=FAILED")
    assert "Wexford" not in log.text
