"""The events that searches of the tests go over."""

import psycopg
import pytest

from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from tests.conftest import IndexHost, empty_tables
from tests.integration.planted_events import Event, Garden, Planted
from tests.tool_client import Json, ToolClient

PRICING = Event(
    "Dana Whitlock decided to charge per location instead of per seat.",
    time="2026-01-10T09:00:00Z",
    actors=("Dana Whitlock",),
    subject="pricing model",
    confidence=0.95,
)
PRICE_RISK = Event(
    "The pricing change may drive small customers away.",
    category="QualityRisk",
    time="2026-01-12T00:00:00Z",
    actors=("Elena Petrova",),
    subject="pricing model",
    confidence=0.6,
)
BETA = Event(
    "The beta opens on 24 March 2026; that is the deadline for all teams.",
    category="Commitment",
    time="2026-03-24T00:00:00Z",
    actors=("Alice Chen",),
    subject="beta",
)
AUTH = Event(
    "Alice Chen leads the auth redesign and Tomás Herrera reviews it.",
    category="Stakeholder",
    time="2025-11-03T00:00:00Z",
    actors=("Alice Chen", "Tomás Herrera"),
    subject="auth redesign",
)
LUNCH = Event(
    "The canteen serves soup on Fridays.",
    category="Execution",
    actors=("Jonas Lindqvist",),
    subject="canteen",
    confidence=0.5,
)

_NARRATIVES = sorted(event.narrative for event in (PRICING, PRICE_RISK, BETA, AUTH, LUNCH))


@pytest.fixture
async def planted(garden: Garden) -> Planted:
    return await _plant(garden)


@pytest.fixture
async def searched(
    services: Settings,
    _session_client: ToolClient,
    _session_runtime: Runtime,
    sql: psycopg.Connection,
    index_host: IndexHost,
) -> ToolClient:
    """Every tool, over the planted events. Tests that use it only read."""
    rows = sql.execute("SELECT narrative FROM semantic_event").fetchall()
    held = sorted(narrative for (narrative,) in rows)
    if held != _NARRATIVES or not index_host.serves(_session_runtime):
        empty_tables(services)
        await index_host.serve(_session_runtime)
        await _plant(Garden(_session_client, _session_runtime, sql))
    return _session_client


async def _plant(garden: Garden) -> Planted:
    await garden.document(
        AUTH, LUNCH, source_id="kickoff", artifact_type="email", source_system="gmail"
    )
    return await garden.document(
        PRICING, PRICE_RISK, BETA, source_id="minutes", title="Minutes of January"
    )


def narratives(answer: Json) -> list[str]:
    return [event["narrative"] for event in answer["events"]]
