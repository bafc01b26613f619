"""The events that searches of the tests go over."""

import pytest

from tests.integration.planted_events import Event, Garden, Planted
from tests.tool_client import Json

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


@pytest.fixture
async def planted(garden: Garden) -> Planted:
    await garden.document(
        AUTH, LUNCH, source_id="kickoff", artifact_type="email", source_system="gmail"
    )
    return await garden.document(
        PRICING, PRICE_RISK, BETA, source_id="minutes", title="Minutes of January"
    )


def narratives(answer: Json) -> list[str]:
    return [event["narrative"] for event in answer["events"]]
