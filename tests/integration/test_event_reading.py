"""Reading events: what each row tells, in how many queries, and by which clock."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import date
from uuid import UUID

import pytest
from pydantic import SecretStr

from benchmarks.bench_events import recorded
from memory_core.events.stakeholders import stakeholders
from memory_core.events.stored_events import get_event, list_for_revision
from memory_core.events.timeline import timeline
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_search import search_events
from stack.connection import joined_runtime
from tests.integration.planted_events import Event, Garden, Planted
from tests.tool_client import ToolClient


async def test_events_of_a_revision_name_their_document(
    planted: Planted, tools: ToolClient
) -> None:
    listed = await tools("event_list_for_revision", artifact_uid=planted.uid)
    searched = await tools("event_search", artifact_uid=planted.uid)

    for answer in (listed, searched):
        assert [event["title"] for event in answer["events"]] == ["Minutes of January"] * 3


@pytest.fixture
async def abroad(services: Settings) -> AsyncIterator[Runtime]:
    """A runtime over a Postgres that lives by the clock of Auckland."""
    zone = "&options=-c%20TimeZone%3DPacific/Auckland"
    dsn = SecretStr(services.dsn + zone)
    runtime = joined_runtime(
        services.model_copy(update={"events_db_dsn": dsn}), unasked="a test looks at what is stored"
    )
    await runtime.open()
    yield runtime
    await runtime.close()


async def test_days_are_those_of_utc_whatever_the_server_lives_by(
    garden: Garden, abroad: Runtime
) -> None:
    """Seven in the evening in London, and the next morning in Auckland."""
    await garden.document(Event("The beta opened.", time="2026-01-10T19:00:00Z"), source_id="one")

    page = await timeline(abroad, None, EventFilters(), limit=5)

    assert [day.day for day in page.days] == [date(2026, 1, 10)]


Reading = Callable[[Runtime, Planted], Awaitable[object]]


@pytest.mark.parametrize(
    "read",
    [
        lambda runtime, _: search_events(runtime, "pricing", EventFilters(), limit=20),
        lambda runtime, _: search_events(runtime, "pricing", EventFilters(), limit=20, sort="time"),
        lambda runtime, _: search_events(runtime, None, EventFilters(), limit=20),
        lambda runtime, _: timeline(runtime, "pricing", EventFilters(), limit=20),
        lambda runtime, _: stakeholders(runtime, "pricing", EventFilters(), limit=20),
        lambda runtime, one: list_for_revision(runtime, one.uid, None, include_evidence=True),
        lambda runtime, one: get_event(runtime, UUID(one.ids[0])),
    ],
    ids=[
        "search", "search by time", "list", "timeline", "stakeholders", "revision", "event",
    ],
)  # fmt: skip
async def test_all_evidence_comes_in_one_query(
    planted: Planted, runtime: Runtime, read: Reading
) -> None:
    with recorded() as statements:
        await read(runtime, planted)

    asked = [statement for statement, _ in statements if b"FROM event_evidence" in statement]
    assert len(asked) == 1
