"""Resolving names: which person a name means.

A person is identified by a full name. If a document says that "AC" is Alice Chen, "AC" finds her,
unless some event has "AC" as an actor. Events under a name stay with that name, and one document
cannot assign them to another person: the person whom it equates with the name is only a candidate,
shown with that document. Two people are never merged because their first names match.
"""

from dataclasses import dataclass, field

from memory_core.extraction.aliases import TITLES, is_full_name
from memory_core.kernel.database import Session
from memory_core.runtime import Runtime

_CANDIDATES = 10


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    events: int
    aliases: list[str]
    # The query for exactly this person: a name that is also a part of other names stands in quotes.
    asked_as: str
    said_in: str | None  # the document that equates this name with the requested one


@dataclass(frozen=True, slots=True)
class KnownName:
    key: str  # the compared form
    is_actor: bool
    is_entity: bool
    is_org: bool


@dataclass(frozen=True, slots=True)
class StatedAlias:
    """A name that a document equates with the requested one."""

    name_key: str
    said_in: str


@dataclass(frozen=True, slots=True)
class NamedPerson:
    name_key: str
    name: str
    events: int
    aliases: list[str]


@dataclass(frozen=True, slots=True)
class Resolution:
    """The keys to search for, and the other candidates. Without keys, nothing is guessed."""

    keys: list[str] = field(default_factory=list)
    candidates: list[Person] = field(default_factory=list)


async def resolve_name(session: Session, name: str) -> Resolution:
    """The name itself; else the person who has it as an alias; else the people who have it as a
    part of their name. In double quotes it means exactly that name."""
    exactly = _unquoted(name)
    if exactly is not None:
        return Resolution([await _key(session, exactly)])
    for spelling in _spellings(name):
        resolution = await _resolve(session, spelling)
        if resolution is not None:
            return resolution
    return Resolution([await _key(session, name)])


async def names_looked_for(runtime: Runtime, name: str | None) -> list[str] | None:
    """The names, as written, whose events a name finds: the person's own first, empty if no event
    or document has it. None if no name is given or it is ambiguous."""
    if name is None:
        return None
    async with runtime.database.session() as session:
        resolution = await resolve_name(session, name)
        if not resolution.keys:
            return None
        return await session.values(str, "shown_names", keys=resolution.keys)


async def _resolve(session: Session, name: str) -> Resolution | None:
    """None if the name is unknown."""
    name_row = await session.only(KnownName, "known_name", name=name)
    key = name_row.key
    full_names = await _names_by_alias(session, key)
    if name_row.is_actor and (" " in key or name_row.is_org):
        return await _person(session, key, full_names)
    parts = _without_titles(
        [one for one in await _with_part(session, key) if one not in full_names]
    )
    if name_row.is_actor:
        if not parts:
            return await _person(session, key, full_names)
        return await _unclear(session, [key, *full_names, *parts], key, full_names)
    people = [*full_names, *parts]
    if len(people) == 1 and not (full_names and is_full_name(key, people[0])):
        return await _person(session, people[0], {})
    if people:
        return await _unclear(session, people, key, full_names)
    return await _person(session, key, {}) if name_row.is_entity else None


async def _unclear(
    session: Session, keys: list[str], asked: str, full_names: dict[str, str]
) -> Resolution:
    return Resolution(candidates=await _people(session, keys[:_CANDIDATES], {asked}, full_names))


async def _with_part(session: Session, key: str) -> list[str]:
    """The people who have the name as a part of theirs."""
    names = await session.values(str, "names_with_word", key=key, limit=_CANDIDATES + 1)
    return [name for name in names if name != key]


async def _names_by_alias(session: Session, key: str) -> dict[str, str]:
    """The full names that documents state this alias for, each with such a document."""
    stated = await session.rows(StatedAlias, "names_by_alias", key=key)
    return {alias.name_key: alias.said_in for alias in stated}


async def _person(session: Session, key: str, full_names: dict[str, str]) -> Resolution:
    """One person, with and without titles; and as candidates the other actors whom documents equate
    with this name."""
    same = [key]
    if " " in key:
        names = await session.values(str, "names_with_word", key=_plain(key), limit=_CANDIDATES)
        same += [name for name in names if _plain(name) == _plain(key)]
    stated = await session.rows(StatedAlias, "aliases_in_use", key=key, limit=_CANDIDATES)
    equated = full_names | {alias.name_key: alias.said_in for alias in stated}
    others = [one for one in equated if one not in same][:_CANDIDATES]
    candidates = await _people(session, others, set(others) - full_names.keys(), equated)
    return Resolution(list(dict.fromkeys(same)), candidates)


async def _key(session: Session, name: str) -> str:
    return (await session.only(KnownName, "known_name", name=name)).key


async def _people(
    session: Session, keys: list[str], quoted: set[str], said_in: dict[str, str]
) -> list[Person]:
    people = await session.rows(NamedPerson, "people_by_key", keys=keys) if keys else []
    return [
        Person(
            person.name,
            person.events,
            person.aliases,
            f'"{person.name}"' if person.name_key in quoted else person.name,
            said_in.get(person.name_key),
        )
        for person in people
    ]


def _unquoted(name: str) -> str | None:
    bare = name.strip()
    if len(bare) > 2 and bare[0] == bare[-1] == '"' and bare[1:-1].strip():
        return bare[1:-1]
    return None


def _spellings(name: str) -> list[str]:
    """As given; else without titles, and with the first name first."""
    return list(dict.fromkeys([name, _plain(" ".join(name.split()))]))


def _plain(name: str) -> str:
    """Chen, Alice and Dr. Alice Chen are Alice Chen."""
    last, comma, first = name.partition(",")
    if comma and first.strip() and "," not in first:
        name = f"{first.strip()} {last.strip()}"
    words = name.split()
    while len(words) > 1 and words[0].rstrip(".").lower() in TITLES:
        words = words[1:]
    return " ".join(words)


def _without_titles(keys: list[str]) -> list[str]:
    """Each person once."""
    plain: dict[str, str] = {}
    for key in keys:
        if key == _plain(key) or _plain(key) not in plain:
            plain[_plain(key)] = key
    return list(plain.values())
