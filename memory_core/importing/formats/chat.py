"""Chats: one artifact per channel and day, whatever program exported them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from memory_core.artifacts.document import ArtifactType
from memory_core.importing.item import Item, Skip


@dataclass(frozen=True, slots=True)
class ChatMessage:
    when: datetime
    who: str | None  # None: a notice of the program, "Alice joined"
    words: str


def by_day(system: str, channel: str, messages: Iterable[ChatMessage], key: str) -> Iterator[Item]:
    """`key` identifies this channel among all of the import. Days are in UTC if the export gives
    offsets, otherwise as it writes them."""
    ordered = sorted(
        messages, key=lambda one: one.when
    )  # a stable sort keeps the order of the export
    if not any(one.words.strip() for one in ordered):
        raise Skip("a chat without messages")
    for day, group in groupby(ordered, key=lambda one: one.when.astimezone(UTC).date()):
        yield from one_day(system, channel, day.isoformat(), group, f"{key}/{day.isoformat()}")


def one_day(
    system: str, channel: str, day: str, messages: Iterable[ChatMessage], key: str
) -> Iterator[Item]:
    """Yields nothing for a day without words."""
    worded = [one for one in messages if one.words.strip()]
    if worded:
        people = dict.fromkeys(one.who for one in worded if one.who)
        yield Item(
            ArtifactType.CHAT,
            system,
            "\n".join(map(_line, worded)) + "\n",
            key=key,
            title=f"{channel}, {day}",
            participants=tuple(people),
            ts=worded[0].when.astimezone(UTC),
        )


def _line(one: ChatMessage) -> str:
    """Further lines are indented, so that the text of one turn cannot look like another turn."""
    lines = one.words.replace("\r\n", "\n").replace("\r", "\n").strip("\n").split("\n")
    words = "\n".join([lines[0], *(f"  {line}" if line.strip() else "" for line in lines[1:])])
    clock = one.when.astimezone(UTC).strftime("%H:%M")
    return f"[{clock}] {one.who}: {words}" if one.who else f"[{clock}] * {words}"
