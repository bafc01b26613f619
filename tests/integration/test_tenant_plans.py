"""How Postgres answers a small tenant among many: by its own part of the index."""

from collections.abc import AsyncIterator

import psycopg
import pytest
from pydantic import SecretStr

from benchmarks.bench_tenants import ALICE
from benchmarks.event_data import Size, fill, word
from memory_core.events.commitments import list_commitments
from memory_core.events.stakeholders import stakeholders
from memory_core.kernel import migrations
from memory_core.kernel.principal import asking
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_search import search_events
from stack.connection import joined_runtime
from tests.integration.explained_plans import explain

SIZE = Size(events=20_000, revisions=4_000, quotes=1, tenants=20)
MATCHES = "idx_event_entry_latest"


@pytest.fixture
async def small(own_database: str, services: Settings) -> AsyncIterator[Runtime]:
    migrations.apply(own_database)
    with psycopg.connect(own_database, autocommit=True) as connection:
        fill(connection, SIZE)
    runtime = joined_runtime(services.model_copy(update={"events_db_dsn": SecretStr(own_database)}))
    await runtime.open()
    yield runtime
    await runtime.close()


async def test_only_its_own_entries_are_read(small: Runtime, own_database: str) -> None:
    filters = EventFilters(category="Decision")
    with psycopg.connect(own_database, autocommit=True) as looking, asking(ALICE):
        totals = []

        async def search() -> None:
            page = await search_events(small, word(0), filters, limit=20)
            totals.append(page.total)

        async def browse() -> None:
            totals.append((await search_events(small, None, filters, limit=20)).total)

        async def promises() -> None:
            page = await list_commitments(
                small, actor=None, due_from=None, due_to=None, status=None, limit=5
            )
            totals.append(page.total or 0)

        async def people() -> None:
            totals.append((await stakeholders(small, None, filters, limit=5)).events_total)

        ways = {
            "ranked_with_total": search,
            "newest_of_few": browse,
            "list_promises": promises,
            "stakeholders": people,
        }
        for statement, work in ways.items():
            explained = await explain(looking, work)
            assert explained.indexes("event_entry", statement) == {MATCHES}, statement
            assert 0 < explained.rows("event_entry", statement) <= totals[-1], statement
    assert all(0 < total < SIZE.events / SIZE.tenants for total in totals)
