"""The asset graph in this process: what a run says of stores and providers that are away."""

from typing import Any

import dagster as dg
import psycopg
import pytest

from memory_assets.extraction_assets import extract_revisions
from memory_assets.memory_resource import MemoryResource
from memory_assets.revision_partitions import REVISIONS
from memory_assets.tags import FROM_QUEUE, TRIGGER_TAG
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from stack import ports
from tests.pipeline_client import Pipeline

TEXT = "Decision: we launch the beta in May."


@pytest.fixture
async def waiting(runtime: Runtime) -> list[str]:
    """Partition keys of two documents that are due."""
    pipeline = Pipeline(runtime)
    for name in ("first", "second"):
        await pipeline.remember(TEXT, name)
    return await pipeline.keys()


class Code:
    """The code location with settings of its own, and the runs it makes."""

    def __init__(self, settings: Settings, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
        own = settings.model_copy(update=changes)
        monkeypatch.setattr(MemoryResource, "settings", property(lambda _: own))

    def run(self, keys: list[str], **tags: str) -> str:
        """Its failure, or nothing."""
        with dg.DagsterInstance.ephemeral() as instance:
            instance.add_dynamic_partitions(REVISIONS.name, keys)
            first, last = keys[0], keys[-1]
            try:
                dg.materialize(
                    [extract_revisions],
                    resources={"memory": MemoryResource()},
                    instance=instance,
                    tags={
                        "dagster/asset_partition_range_start": first,
                        "dagster/asset_partition_range_end": last,
                        **tags,
                    },
                )
            except dg.Failure as failure:
                return failure.description or ""
        return ""


def jobs(sql: psycopg.Connection) -> list[tuple[str, int, str | None]]:
    return sql.execute("SELECT status, attempts, last_error_code FROM event_jobs").fetchall()


def test_without_chroma_the_jobs_are_done(
    services: Settings,
    sql: psycopg.Connection,
    waiting: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = Code(services, monkeypatch, chroma_port=ports.free_port())

    assert code.run(waiting, **{TRIGGER_TAG: FROM_QUEUE}) == ""

    assert jobs(sql) == [("DONE", 1, None)] * 2


def test_a_queue_that_is_served_is_extracted(
    services: Settings,
    sql: psycopg.Connection,
    waiting: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Code(services, monkeypatch).run(waiting, **{TRIGGER_TAG: FROM_QUEUE}) == ""

    assert jobs(sql) == [("DONE", 1, None)] * 2
