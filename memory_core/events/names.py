"""Who is meant by a name.

A person is a full name. A document may say that "AC" or "Alice" is Alice Chen; then, and as long as
nobody else goes by them, those names are hers: they find her, and her name finds what was done
under them. Two people are never taken for one because their first names match.
"""

from dataclasses import dataclass, field

from memory_core.database import Session
from memory_core.runtime import Runtime

_CANDIDATES = 10
_TITLES = {
    *("dr", "mr", "mrs", "ms", "miss", "mx", "prof", "professor", "sir", "dame", "herr", "frau"),
}


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    events: int
    aliases: list[str]
    # How to ask for exactly them: a name that is also a part of others stands in quotes.
    asked_as: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """Either the keys to look for, or the people who might be meant."""

    keys: list[str] = field(default_factory=list)
    candidates: list[Person] = field(default_factory=list)


async def resolve_name(session: Session, name: str) -> Resolution:
    """The name itself; else who goes by it as an alias; else who has it as a part of their name.
    In double quotes it is nobody else's."""
    exactly = _unquoted(name)
    if exactly is not None:
        return Resolution([await _key(session, exactly)])
    for spelling in _spellings(name):
        resolution = await _resolve(session, spelling)
        if resolution is not None:
            return resolution
    return Resolution([await _key(session, name)])


async def names_looked_for(runtime: Runtime, name: str | None) -> list[str] | None:
    """The names, as written, whose events a name finds: the person's own first, none if nobody is
    called so. None when no name is given or it may mean several people."""
    if name is None:
        return None
    async with runtime.database.session() as session:
        resolution = await resolve_name(session, name)
        if resolution.candidates:
            return None
        rows = await session.all("shown_names", keys=resolution.keys)
    return [row["name"] for row in rows if row["name"] is not None]


async def _resolve(session: Session, name: str) -> Resolution | None:
    """None when nobody is known by it."""
    known = await session.one("known_name", name=name)
    assert known is not None
    key: str = known["key"]
    stated = await _named_by(session, [key])
    people = stated.get(key, [])
    if " " in key and not people and (known["is_actor"] or known["is_entity"]):
        return await _person(session, key)
    if known["is_org"] and known["is_actor"] and not people:
        return await _person(session, key)
    if " " not in key or not people:
        # Somebody else may be called so as well, whatever a document says.
        people = _without_titles([*people, *await _with_part(session, key)])
    if not people:
        known_at_all = known["is_actor"] or known["is_entity"]
        return await _person(session, key) if known_at_all else None
    if len(people) == 1 and (key in stated or not known["is_actor"]):
        return await _person(session, people[0])
    also = [key] if known["is_actor"] and key not in people else []
    return Resolution(candidates=await _people(session, [*also, *people][:_CANDIDATES], key))


async def _with_part(session: Session, key: str) -> list[str]:
    """Who has the name as a part of theirs; aliases stand for whoever goes by them."""
    rows = await session.all("names_with_word", key=key, limit=_CANDIDATES + 1)
    found = [row["name_key"] for row in rows if row["name_key"] != key]
    owners = await _named_by(session, found)
    return [owners[one][0] if len(owners.get(one, [])) == 1 else one for one in found]


async def _named_by(session: Session, keys: list[str]) -> dict[str, list[str]]:
    """For each alias the full names that documents state it for."""
    named: dict[str, list[str]] = {}
    for row in await session.all("names_by_alias", keys=keys) if keys else []:
        named.setdefault(row["alias_key"], []).append(row["name_key"])
    return named


async def _person(session: Session, key: str) -> Resolution:
    """One person, under all names that are theirs alone."""
    same = [key]
    if " " in key:
        rows = await session.all("names_with_word", key=_plain(key), limit=_CANDIDATES)
        same += [row["name_key"] for row in rows if _plain(row["name_key"]) == _plain(key)]
    rows = await session.all("aliases_in_use", key=key)
    aliases = {row["alias_key"] for row in rows}
    for row in rows:
        others = {other for other in row["others"] if _plain(other) != _plain(key)}
        if not others - aliases:
            same.append(row["alias_key"])
    return Resolution(list(dict.fromkeys(same)))


async def owners_of(session: Session, keys: list[str]) -> dict[str, str]:
    """Of these names those that are somebody's alias, and theirs alone, with whose."""
    named = await _named_by(session, keys)
    owners = {one for people in named.values() if len(people) == 1 for one in people}
    found: dict[str, str] = {}
    for owner in sorted(owners):
        for key in (await _person(session, owner)).keys:
            if key != owner:
                found[key] = owner
    return {key: found[key] for key in keys if key in found}


async def _key(session: Session, name: str) -> str:
    row = await session.one("known_name", name=name)
    assert row is not None
    key: str = row["key"]
    return key


async def _people(session: Session, keys: list[str], asked: str) -> list[Person]:
    rows = await session.all("people_by_key", keys=keys)
    return [
        Person(
            row["name"],
            row["events"],
            row["aliases"],
            f'"{row["name"]}"' if row["name_key"] == asked else row["name"],
        )
        for row in rows
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
    while len(words) > 1 and words[0].rstrip(".").lower() in _TITLES:
        words = words[1:]
    return " ".join(words)


def _without_titles(keys: list[str]) -> list[str]:
    """Each person once."""
    plain: dict[str, str] = {}
    for key in keys:
        if key == _plain(key) or _plain(key) not in plain:
            plain[_plain(key)] = key
    return list(plain.values())
