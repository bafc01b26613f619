"""Filters of an event search, in addition to the words and the meaning of a query."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_core.kernel.database import Session
from memory_core.kernel.times import check_period


@dataclass(frozen=True, slots=True)
class EventFilters:
    category: str | None = None
    time_from: datetime | None = None
    time_to: datetime | None = None
    artifact_uid: str | None = None
    actor: str | None = None
    subject: str | None = None
    min_confidence: float = 0.0
    artifact_type: str | None = None
    source_system: str | None = None
    include_superseded: bool = False
    # Only revisions that were the latest at that moment.
    as_of: datetime | None = None

    def __post_init__(self) -> None:
        check_period(self.time_from, self.time_to)

    async def for_sql(self, session: Session, actor_keys: list[str] | None) -> dict[str, Any]:
        return {
            "words": None,
            "letters": None,
            "facets": self._facets() or None,
            "actor_facets": actor_facets(actor_keys),
            "audience_facets": await audience_facets(session),
            "time_from": self.time_from,
            "time_to": self.time_to,
            "subject": self.subject,
            "min_confidence": self.min_confidence,
            "include_superseded": self.include_superseded or self.as_of is not None,
            "as_of": self.as_of,
        }

    def _facets(self) -> list[str]:
        """The marks of `facets_of_event` that an event must have."""
        wanted = {
            "category": self.category,
            "artifact": self.artifact_uid,
            "type": self.artifact_type,
            "source": self.source_system,
        }
        return [f"{name}:{value}" for name, value in wanted.items() if value is not None]


@dataclass(frozen=True, slots=True)
class AudienceMarks:
    facets: list[str] | None


async def audience_facets(session: Session) -> list[str] | None:
    """The marks of the audiences that the principal sees, if these are few among many: then the
    index finds only their events. They do not decide who may see an event."""
    return (await session.only(AudienceMarks, "audience_facets")).facets


def actor_facets(keys: list[str] | None) -> list[str] | None:
    """The marks of `facets_of_event` for these actors; an event must have one of them."""
    return None if keys is None else [f"actor:{key}" for key in keys]
