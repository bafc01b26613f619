"""Who wants to be told of which changes, and where."""

import base64
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from memory_core.extraction.model import Category
from memory_core.kernel.database import Row, Session
from memory_core.kernel.errors import InvalidInput, NotFound
from memory_core.log.change import ChangeType
from memory_core.webhooks.addresses import parse_url

# So long a receiver may go on with the secret that was replaced.
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
    waiting: int = 0
    last_error: str | None = None

    @classmethod
    def of(cls, row: Row) -> Self:
        names = (
            *("url", "types", "category", "actor", "include_content", "status", "disabled_reason"),
            *("failures", "last_success_at", "created_at", "secret", "previous_secret"),
        )
        return cls(
            id=row["subscription_id"],
            waiting=row.get("waiting", 0),
            last_error=row.get("last_error"),
            **{name: row[name] for name in names},
        )

    @property
    def secrets(self) -> list[str]:
        """Those that sign now, the newest first."""
        return [self.secret, *([self.previous_secret] if self.previous_secret else [])]

    def as_json(self) -> dict[str, Any]:
        """Without the secret."""
        return {
            "subscription_id": str(self.id),
            "url": self.url,
            "types": self.types,
            "category": self.category,
            "actor": self.actor,
            "include_content": self.include_content,
            "status": self.status,
            "disabled_reason": self.disabled_reason,
            "waiting": self.waiting,
            "failures": self.failures,
            "last_error": self.last_error,
            "last_success_at": self.last_success_at,
            "created_at": self.created_at,
        }


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
    if len(await everyone(session)) >= _MOST:
        raise InvalidInput(f"There are {_MOST} subscriptions already: remove one first.")
    row = await session.one(
        "add_subscription",
        url=url,
        types=types,
        category=category,
        actor=actor,
        include_content=include_content,
        secret=_new_secret(),
    )
    assert row is not None
    return Subscription.of(row)


async def everyone(session: Session) -> list[Subscription]:
    return [Subscription.of(row) for row in await session.all("list_subscriptions")]


async def find(session: Session, text: str) -> Subscription:
    """By its id, or the first characters of it."""
    start = text.strip().lower()
    rows = []
    if start and all(char in "0123456789abcdef-" for char in start):
        rows = await session.all("find_subscriptions", start=start)
    if not rows:
        raise NotFound("There is no such subscription: `mcp-memory webhooks list` shows them.")
    if len(rows) > 1:
        raise InvalidInput("Several subscriptions begin so: give more of the id.")
    return Subscription.of(rows[0])


async def remove(session: Session, subscription: Subscription) -> None:
    """With all messages that wait for it."""
    await session.run("remove_subscription", id=subscription.id)


async def rotate(session: Session, subscription: Subscription) -> Subscription:
    """A new secret. Messages are signed with the old one too, for a day."""
    row = await session.one(
        "rotate_secret", id=subscription.id, secret=_new_secret(), overlap=ROTATION_SECONDS
    )
    if row is None:
        raise NotFound("The subscription was removed meanwhile.")
    return Subscription.of(row)


async def deliveries(session: Session, subscription: Subscription | None, limit: int) -> list[Row]:
    """What waits, then what has ended, newest first."""
    id_ = subscription.id if subscription is not None else None
    return await session.all("list_deliveries", id=id_, limit=limit)


def _new_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def _category(text: str | None) -> str | None:
    if text is None:
        return None
    for known in Category:
        if known.value.lower() == text.strip().lower():
            return known.value
    names = ", ".join(known.value for known in Category)
    raise InvalidInput(f"{text[:80]!r} is no category: choose one of {names}.")


def _actor(text: str | None) -> str | None:
    if text is None:
        return None
    name = " ".join(text.split())
    if not name or len(name) > _MAX_ACTOR:
        raise InvalidInput(f"An actor is a name of at most {_MAX_ACTOR} characters.")
    return name
