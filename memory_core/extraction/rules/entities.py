"""Entities: the people, organisations and projects that a text names."""

from memory_core.extraction.model import Entity, EntityType, ProposedEvent
from memory_core.extraction.rules.patterns import DEPARTMENT, NAME_WORD, word_set
from memory_core.extraction.rules.people import Roster
from memory_core.extraction.rules.word_lists import words
from memory_core.text import timed_patterns as re

_ORG = re.compile(
    rf"(?<![\w-])(?:{NAME_WORD} ){{1,3}}(?:Inc|Ltd|LLC|GmbH|Corp|AG|PLC|BV|SAS|Foundation|"
    r"University|Institute|Bank|Association)\b\.?"
)
_PROJECT = re.compile(rf"\bProject (?P<name>{NAME_WORD})\b|\b(?P<before>{NAME_WORD}) [Pp]roject\b")
_NOT_PROJECTS = word_set(words("people", "not_projects"))
_GROUP = re.compile(
    rf"(?i)\b(?:team|group|committee|board|council|community|meeting)$|^{DEPARTMENT}$"
)


def find(
    text: str, masked: str, roster: Roster, events: tuple[ProposedEvent, ...]
) -> tuple[Entity, ...]:
    entities: dict[tuple[str, EntityType], Entity] = {}
    for name, aliases in roster.names.items():
        if _is_named(name) and (name in text or any(alias in text for alias in aliases)):
            _keep(entities, name, EntityType.PERSON, tuple(a for a in aliases if a in text))
    for event in events:
        for actor in event.actors:
            if not _GROUP.search(actor.ref):
                _keep(entities, actor.ref, EntityType.PERSON)
            elif actor.ref[0].isupper():
                _keep(entities, actor.ref, EntityType.ORG)
    for match in _ORG.finditer(masked):
        _keep(entities, match.group(), EntityType.ORG)
    for match in _PROJECT.finditer(masked):
        name = match["name"] or match["before"]
        if name not in _NOT_PROJECTS:
            _keep(entities, name, EntityType.PROJECT)
    return tuple(entities.values())


def _is_named(name: str) -> bool:
    return len(name) > 1 and any(c.isalpha() for c in name)


def _keep(
    entities: dict[tuple[str, EntityType], Entity],
    name: str,
    kind: EntityType,
    aliases: tuple[str, ...] = (),
) -> None:
    entities.setdefault((name.lower(), kind), Entity(name, kind, aliases))
