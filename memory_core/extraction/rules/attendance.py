"""Attendance: a list of participants is one meeting, and each stated role is one stakeholder."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from memory_core.extraction.model import ActorRole, Category
from memory_core.extraction.rules import confidence, sentence_labels
from memory_core.extraction.rules.blocks import MAX_ENTRY, Block
from memory_core.extraction.rules.drafts import EventDraft, role_of
from memory_core.extraction.rules.people import ListedPerson, Roster, is_listing, listed, tidy
from memory_core.extraction.rules.sections import Section, SectionKind
from memory_core.text import timed_patterns as re

MIN_ATTENDEES = 2
# Two turns within this many characters fit into one quote.
_CLOSELY = 120
_MOST_SPEAKERS = 20

_ABSENT = re.compile(r"\W*(?:apologies|absent|regrets|excused|absences)\b", re.IGNORECASE)


def find(text: str, blocks: list[Block], roster: Roster) -> Iterator[EventDraft]:
    present: list[tuple[ListedPerson, Block, int]] = []
    listing: Section | None = None
    for block in blocks:
        start = _list_start(text, block)
        if start is None or (
            block.section != listing and block.section.kind is SectionKind.ATTENDEES
        ):
            yield from _meeting(text, present, roster)
            present = []
        if start is not None:
            listing = block.section
            entry = text[start : min(block.end, start + MAX_ENTRY)].replace("\n", ", ")
            present += [(person, block, start) for person in listed(entry)]
    yield from _meeting(text, present, roster)


def of_speakers(text: str, blocks: list[Block], given: Iterable[str]) -> Iterator[EventDraft]:
    """A transcript is a meeting of its speakers. The quote is a place where two speakers follow
    each other closely. `given`: the known participants."""
    spoken = [block for block in blocks if block.spoken and block.speaker]
    names = list(dict.fromkeys(block.speaker or "" for block in spoken))
    names = [name for name in names if not name.lower().endswith("bot")]
    # "Hon. Ann Lee" in the given list is Ann Lee. If the given names are mostly nicknames, they
    # prove nothing.
    others = [tidy(name) for name in given]
    if 2 * sum(name.endswith(tuple(names)) for name in others) >= len(others):
        names += [name for name in others if name and not name.endswith(tuple(names))]
    names = names[:_MOST_SPEAKERS]
    for one, other in pairwise(spoken):
        start = text.rfind("\n", 0, one.start) + 1
        if one.speaker != other.speaker and other.start - start < _CLOSELY:
            actors = tuple((name, ActorRole.CONTRIBUTOR) for name in names)
            span = (start, min(other.end, other.start + _CLOSELY))
            yield EventDraft(
                Category.COLLABORATION, confidence.SECTION, *span, (start, other.start), actors,
                "meeting",
            )  # fmt: skip
            return


def _list_start(text: str, block: Block) -> int | None:
    if _ABSENT.match(text, block.start, block.end):
        return None
    after = sentence_labels.attendee_label(text[block.start : block.start + 60].replace("*", " "))
    if after is not None:
        return block.start + after
    listing = block.section.kind is SectionKind.ATTENDEES and not block.nested
    names = text[block.start : min(block.end, block.start + MAX_ENTRY)]
    return block.start if listing and is_listing(names) else None


def _meeting(
    text: str, present: list[tuple[ListedPerson, Block, int]], roster: Roster
) -> Iterator[EventDraft]:
    # Lists of handles write the same handle with and without a capital.
    resolved = (roster.resolve(person.name) for person, _, _ in present)
    names = list({name.lower(): name for name in resolved}.values())
    if len(names) < MIN_ATTENDEES:
        return
    first, last = present[0], present[-1]
    begin = text.find(first[0].name, first[2])
    actors = tuple((name, ActorRole.CONTRIBUTOR) for name in names)
    yield EventDraft(
        Category.COLLABORATION, confidence.SECTION, begin, last[1].end,
        (begin, begin + len(first[0].name)), actors, "meeting",
    )  # fmt: skip
    for person, block, start in present:
        if person.role is None:
            continue
        at = text.find(person.name, start, block.end)
        if at < 0:
            continue
        name = roster.resolve(person.name)
        stop = text.find(person.role[-8:], at, block.end) + len(person.role[-8:])
        stop += text.startswith(")", stop)
        yield EventDraft(
            Category.STAKEHOLDER, confidence.STRONG, at, max(stop, at + len(person.name)),
            (at, at + len(person.name)), ((name, role_of(person.role)),), "listed_role",
            person.role, person=name,
        )  # fmt: skip
