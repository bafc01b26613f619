"""Who is meant by a name.

A person is a full name. A document may say that "AC" or "Alice" is Alice Chen; then, and only
then, those names find her. Two people are never taken for one because their first names match.
"""

from dataclasses import dataclass, field

from memory_core.database import Session

_CANDIDATES = 10


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    events: int
    aliases: list[str]


@dataclass(frozen=True, slots=True)
class Resolution:
    """Either the keys to look for, or the people who might be meant."""

    keys: list[str] = field(default_factory=list)
    candidates: list[Person] = field(default_factory=list)


async def resolve_name(session: Session, name: str) -> Resolution:
    """The name itself; else who goes by it as an alias; else who has it as a part of their name."""
    row = await session.one("normalise_name", name=name)
    assert row is not None
    key: str = row["key"]
    by_alias = await session.all("names_by_alias", key=key)
    as_actor = await session.one("actor_exists", key=key)
    full_name = " " in key
    if full_name and as_actor is not None:
        return Resolution([key])
    stated = sorted({found["name_key"] for found in by_alias} | ({key} if full_name else set()))
    if len(stated) == 1:
        return Resolution(list(dict.fromkeys([*stated, key])))
    if len(stated) > 1:
        return Resolution(candidates=await _people(session, stated))
    partial = await session.all("names_with_word", key=key, limit=_CANDIDATES + 1)
    others = [found["name_key"] for found in partial if found["name_key"] != key]
    if not others:
        return Resolution([key])
    if len(others) == 1 and as_actor is None:
        return Resolution([others[0]])
    names = ([key] if as_actor is not None else []) + others
    return Resolution(candidates=await _people(session, names[:_CANDIDATES]))


async def _people(session: Session, keys: list[str]) -> list[Person]:
    rows = await session.all("people_by_key", keys=keys)
    return [Person(row["name"], row["events"], row["aliases"]) for row in rows]
