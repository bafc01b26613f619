"""A database of many events for tests of plans, and how its searches are explained."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from benchmarks.event_data import Size, fill
from memory_core.kernel import migrations
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.search import event_matching
from memory_core.search.event_filters import EventFilters
from memory_core.search.event_search import search_events
from stack.connection import joined_runtime
from tests.integration.explained_plans import Explained, explain

SIZE = Size(events=200_000, revisions=40_000, quotes=1)
PAGE = 20


@pytest.fixture(scope="module")
def plans_dsn(services: Settings) -> Iterator[str]:
    name = "event_plans"
    with psycopg.connect(services.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    dsn = services.dsn.replace("/postgres?", f"/{name}?")
    assert dsn != services.dsn
    migrations.apply(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        fill(connection, SIZE)
    yield dsn
    with psycopg.connect(services.dsn, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
async def million(services: Settings, plans_dsn: str) -> AsyncIterator[Runtime]:
    """A runtime over the many events (not quite a million)."""
    runtime = joined_runtime(
        services.model_copy(update={"events_db_dsn": SecretStr(plans_dsn)}),
        unasked="a test looks at what is stored",
    )
    await runtime.open()
    yield runtime
    await runtime.close()


@pytest.fixture(scope="module")
def looking(plans_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(plans_dsn, autocommit=True) as connection:
        yield connection


async def explain_search(
    million: Runtime,
    looking: psycopg.Connection,
    query: str | None,
    **filters: Any,
) -> tuple[int, Explained]:
    """How many there are, and how they were found."""
    total = 0

    async def work() -> None:
        nonlocal total
        page = await search_events(million, query, EventFilters(**filters), limit=PAGE)
        assert len(page.events) == min(page.total, PAGE)
        total = page.total

    explained = await explain(looking, work)
    assert explained.indexes("event_evidence") <= {"idx_event_evidence_event"}
    assert explained.rows("event_evidence") <= 5 * PAGE
    assert explained.indexes("semantic_event") <= {"semantic_event_pkey"}
    # The rows that are looked at, those whose texts are read, those that are shown, and those whose
    # vectors are compared.
    looked_at = event_matching.LOOKED_AT + 2 * event_matching.RANKED_MATCHES
    others = 100 + 2 * PAGE + million.vectors.comparable + 1
    assert explained.rows("semantic_event") <= looked_at + others
    return total, explained
