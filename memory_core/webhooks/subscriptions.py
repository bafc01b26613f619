"""Subscriptions: who receives which changes, and where."""

import base64
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from memory_core.extraction.model import Category
from memory_core.kernel.database import Session
from memory_core.kernel.errors import InvalidInput, NotFound
from memory_core.log.change import ChangeType
from memory_core.webhooks.addresses import parse_url

# How long messages are also signed with a replaced secret.
ROTATION_SECONDS = 86_400.0
_MOST = 100
_MAX_ACTOR = 200


@dataclass(frozen=True, slots=True)
class Subscription:
    id: UUID
    url: str
    types: list[str]
    category: str | None
    actor: str | None
    include_content: bool
    status: str
    disabled_reason: str | None
    failures: int
    last_success_at: datetime | None
    created_at: datetime
    secret: str = field(repr=False)
    previous_secret: str | None = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """The subscription without its secret."""
        return {
            "subscription_id": str(self.id),
            "url": self.url,
            "types": self.types,
            "category": self.category,
            "actor": self.actor,
            "include_content": self.include_content,
            "status": self.status,
            "disabled_reason": self.disabled_reason,
            "waiting": 0,
            "failures": self.failures,
            "last_error": None,
            "last_success_at": self.last_success_at,
            "created_at": self.created_at,
        }


@dataclass(frozen=True, slots=True)
class ListedSubscription(Subscription):
    """A subscription, with its waiting messages."""

    waiting: int
    last_error: str | None

    def as_json(self) -> dict[str, Any]:
        state = {"waiting": self.waiting, "last_error": self.last_error}
        return Subscription.as_json(self) | state


@dataclass(frozen=True, slots=True)
class DeliveryState:
    """A message that waits or has ended."""

    subscription_id: UUID
    message_id: UUID
    event_type: str
    outcome: str
    attempts: int
    error: str | None
    created_at: datetime
    ended_at: datetime | None
    next_attempt_at: datetime | None

    def as_json(self) -> dict[str, Any]:
        return {
            "subscription_id": str(self.subscription_id),
            "event_type": self.event_type,
            "outcome": self.outcome,
            "attempts": self.attempts,
            "error": self.error,
            "created_at": self.created_at,
            "ended_at": self.ended_at,
            "next_attempt_at": self.next_attempt_at,
            "webhook_id": self.webhook_id,
        }

    @property
    def webhook_id(self) -> str:
        return f"msg_{self.message_id.hex}"


async def add(
    session: Session,
    url: str,
    types: list[str],
    *,
    category: str | None = None,
    actor: str | None = None,
    include_content: bool = False,
    allow_private: bool = False,
) -> Subscription:
    parse_url(url, allow_private=allow_private)
    category = _category(category)
    actor = _actor(actor)
    if (category or actor) and types != [ChangeType.EVENTS_REPLACED.value]:
        raise InvalidInput(
            "A category or an actor chooses among events: give --types events.replaced alone "
            "with it, and make a second subscription for other types."
        )
    if len(await list_subscriptions(session)) >= _MOST:
        raise InvalidInput(f"There are {_MOST} subscriptions already: remove one first.")
    return await session.only(
        Subscription,
        "add_subscription",
        url=url,
        types=types,
        category=category,
        actor=actor,
        include_content=include_content,
        secret=_new_secret(),
    )


async def list_subscriptions(session: Session) -> list[ListedSubscription]:
    return await session.rows(ListedSubscription, "list_subscriptions")


async def find(session: Session, text: str) -> Subscription:
    """Look up by id, or by the first characters of it."""
    start = text.strip().lower()
    rows: list[Subscription] = []
    if start and all(char in "0123456789abcdef-" for char in start):
        rows = await session.rows(Subscription, "find_subscriptions", start=start)
    if not rows:
        raise NotFound("There is no such subscription: `mcp-memory webhooks list` shows them.")
    if len(rows) > 1:
        raise InvalidInput("Several subscriptions have ids with this beginning: give more of it.")
    return rows[0]


async def remove(session: Session, subscription: Subscription) -> None:
    """Remove it, with all its waiting messages."""
    await session.run("remove_subscription", id=subscription.id)


async def rotate(session: Session, subscription: Subscription) -> Subscription:
    """Replace the secret. For a day, messages are signed with the old one as well."""
    rotated = await session.row(
        Subscription,
        "rotate_secret",
        id=subscription.id,
        secret=_new_secret(),
        overlap=ROTATION_SECONDS,
    )
    if rotated is None:
        raise NotFound("The subscription was removed meanwhile.")
    return rotated


async def deliveries(
    session: Session, subscription: Subscription | None, limit: int
) -> list[DeliveryState]:
    """Waiting messages, then ended ones, newest first."""
    id_ = subscription.id if subscription is not None else None
    return await session.rows(DeliveryState, "list_deliveries", id=id_, limit=limit)


def _new_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def _category(text: str | None) -> str | None:
    if text is None:
        return None
    for category in Category:
        if category.value.lower() == text.strip().lower():
            return category.value
    names = ", ".join(category.value for category in Category)
    raise InvalidInput(f"{text[:80]!r} is no category: choose one of {names}.")


def _actor(text: str | None) -> str | None:
    if text is None:
        return None
    name = " ".join(text.split())
    if not name or len(name) > _MAX_ACTOR:
        raise InvalidInput(f"An actor is a name of at most {_MAX_ACTOR} characters.")
    return name
