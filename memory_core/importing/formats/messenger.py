"""WhatsApp and Signal: text exports of lines that begin with a day and a clock; Signal's JSON."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from memory_core.importing.formats.chat import Said, by_day
from memory_core.importing.item import Item, Unusable

# Marks of direction that WhatsApp puts before lines and names.
_MARKS = "\u200e\u200f\u202a\u202b\u202c\ufeff"
_LINE = re.compile(
    rf"[{_MARKS}]*(?P<bracket>\[)?(?P<a>\d{{1,4}})(?P<sep>[./-])(?P<b>\d{{1,2}})(?P=sep)"
    r"(?P<c>\d{2,4}),?[\s\u202f](?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?"
    r"(?:[\s\u202f]?(?P<half>[AaPp])\.?[\s\u202f]?[Mm]\.?)?"
    r"(?(bracket)\]|[\s\u202f]-)[\s\u202f](?P<rest>.*)",
    re.DOTALL,
)
_WHO = re.compile(rf"[{_MARKS}]*(?P<who>[^:\n]{{1,60}}?):(?:\s|(?=\S)|$)(?P<words>.*)", re.DOTALL)
_NAMES = re.compile(
    r"(?:WhatsApp[ -]?(?:Chat|Unterhaltung)?(?: with| mit|-)?|Signal(?: Chat)?)[ _-]+"
)
_HEAD_LINES = 30
_MIN_SHARE = 0.3
_JSON_KEYS = ({"date", "sender", "body"}, {"timestamp", "sender", "body"})


@dataclass(slots=True)
class _Raw:
    day: tuple[int, int, int]
    year_first: bool
    dotted: bool
    clock: tuple[int, int, int]
    rest: str


def looks_like(text: str) -> bool:
    lines = [line for line in text[:50_000].split("\n") if line.strip()][:_HEAD_LINES]
    hits = sum(_begins(line[:500]) is not None for line in lines)
    return bool(lines) and _begins(lines[0][:500]) is not None and (
        hits >= max(1, len(lines) * _MIN_SHARE)
    )  # fmt: skip


def parse(text: str, path: PurePosixPath) -> Iterator[Item]:
    raws = list(_raws(text))
    if not raws:
        raise Unusable("no message was recognised")
    is_signal = raws[0].year_first and "whatsapp" not in path.name.lower()
    day_first = _day_first(raws)
    said = []
    for raw in raws:
        when = _when(raw, day_first)
        if when is None:
            raise Unusable(f"{raw.day} is no day: how it writes dates was not understood")
        named = _WHO.match(raw.rest)
        words = named["words"] if named else raw.rest
        said.append(Said(when, _tidy(named["who"]) if named else None, words.strip(_MARKS + "\n")))
    channel = _tidy(_NAMES.sub("", path.stem, count=1)) or path.stem
    system = "signal" if is_signal else "whatsapp"
    yield from by_day(system, channel, said, str(path.with_suffix("")))


def looks_like_json(content: Any) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and isinstance(content[0], dict)
        and any(keys <= content[0].keys() for keys in _JSON_KEYS)
    )


def parse_json(content: list[Any], path: PurePosixPath) -> Iterator[Item]:
    """Signal: a list of messages, or one message a line."""
    # Exports of whole accounts have a folder per conversation and one name for all files in it.
    generic = path.stem.lower() in ("data", "messages", "chat", "export", "signal")
    channel = path.parent.name if generic and path.parent.name else path.stem
    said = filter(None, map(_from_json, content))
    yield from by_day("signal", channel, said, str(path.with_suffix("")))


def _from_json(one: Any) -> Said | None:
    if not isinstance(one, dict):
        return None
    moment = one.get("date", one.get("timestamp"))
    try:
        if isinstance(moment, int | float):
            seconds = moment / 1000 if moment > 10**11 else moment
            when = datetime.fromtimestamp(seconds, tz=UTC)
        else:
            when = datetime.fromisoformat(str(moment))
            when = when.replace(tzinfo=UTC) if when.tzinfo is None else when
    except (ValueError, OverflowError, OSError):
        return None
    return Said(when, _tidy(str(one.get("sender") or "unknown")), str(one.get("body") or ""))


def _raws(text: str) -> Iterator[_Raw]:
    current: _Raw | None = None
    more: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _begins(line) if len(line) > 10 else None
        if match is None:
            more.append(line)
            continue
        if current is not None:
            current.rest = "\n".join([current.rest, *more])
            yield current
        more = []
        current = _raw(match)
    if current is not None:
        current.rest = "\n".join([current.rest, *more]).rstrip("\n")
        yield current


def _begins(line: str) -> re.Match[str] | None:
    """A day of the year first and no bracket is how programs write their logs."""
    match = _LINE.match(line)
    if match and len(match["a"]) == 4 and not match["bracket"]:
        return None
    return match


def _raw(match: re.Match[str]) -> _Raw:
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + (12 if match["half"] in "Pp" else 0)
    return _Raw(
        (int(match["a"]), int(match["b"]), int(match["c"])),
        len(match["a"]) == 4,
        match["sep"] == ".",
        (hour, int(match["minute"]), int(match["second"] or 0)),
        match["rest"],
    )


def _day_first(raws: list[_Raw]) -> bool:
    """31/12 or 12/31? A number above 12 tells; else the order in which time does not run back;
    else the way of most of the world."""
    if any(raw.dotted or raw.day[0] > 12 for raw in raws if not raw.year_first):
        return True
    if any(raw.day[1] > 12 for raw in raws if not raw.year_first):
        return False
    return _steps_back(raws, day_first=True) <= _steps_back(raws, day_first=False)


def _steps_back(raws: list[_Raw], *, day_first: bool) -> int:
    times = [_when(raw, day_first) for raw in raws]
    known = [time for time in times if time is not None]
    return sum(later < earlier - timedelta(hours=2) for earlier, later in pairwise(known))


def _when(raw: _Raw, day_first: bool) -> datetime | None:
    a, b, c = raw.day
    year, month, day = (a, b, c) if raw.year_first else (c, b, a) if day_first else (c, a, b)
    try:
        return datetime(year + 2000 if year < 100 else year, month, day, *raw.clock, tzinfo=UTC)
    except ValueError:
        return None


def _tidy(name: str) -> str:
    return " ".join(name.strip(_MARKS + "~ ").split())
