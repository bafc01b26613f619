"""WhatsApp and Signal: text exports whose lines begin with a day and a clock time; Signal's
JSON."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from memory_core.importing.formats.chat import ChatMessage, by_day
from memory_core.importing.item import Item, Unusable
from memory_core.kernel.times import as_utc

# Direction marks that WhatsApp puts before lines and names.
_MARKS = "\u200e\u200f\u202a\u202b\u202c\ufeff"
# Halves of the day, before or after the clock time. Those that are not afternoon are morning.
_HALF = (
    r"[AaPp]\.?[\s\u202f]?[Mm]\.?|[πμ]\.μ\.|[صم]|上午|下午|凌晨|清晨|早上|中午|晚上|"
    r"오전|오후|午前|午後"
)
_AFTERNOON = ("p", "μ", "م", "下午", "中午", "晚上", "오후", "午後")
_LINE = re.compile(
    rf"[{_MARKS}]*(?P<bracket>\[)?(?P<a>\d{{1,4}})(?P<sep>[./-][ ]?)(?P<b>\d{{1,2}})(?P=sep)"
    r"(?P<c>\d{1,4})\.?(?P<comma>,)?[\s\u202f](?:(?:klo|kl\.?|à|às|at|um|ore|o)[\s\u202f])?"
    rf"(?:(?P<early>{_HALF})[\s\u202f]?)?"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?"
    rf"(?:[\s\u202f]?(?P<late>{_HALF}))?"
    r"(?(bracket)\]|[\s\u202f]-)[\s\u202f](?P<rest>.*)",
    re.DOTALL,
)
# Quotation marks occur in notices of the program: Alice changed the subject to "Plan: B".
_WHO = re.compile(
    rf"[{_MARKS}]*(?P<who>[^:\n\"“”„«»]{{1,60}}?):(?:\s|(?=\S)|$)(?P<words>.*)", re.DOTALL
)
_NAMES = re.compile(
    r"(?:WhatsApp[ -]?(?:Chat|Unterhaltung)?(?: with| mit|-)?|Signal(?: Chat)?)[ _-]+"
)
_IOS = "_chat"
_HEAD_LINES = 30
_MIN_SHARE = 0.3
_JSON_KEYS = ({"date", "sender", "body"}, {"timestamp", "sender", "body"})


@dataclass(slots=True)
class _Raw:
    day: tuple[int, int, int]
    year_first: bool
    dotted: bool
    clock: tuple[int, int, int]
    # Written by Signal's exporters: "[2019-12-24, 12:23]", "[2019-12-24 12:23:05]".
    like_signal: bool
    rest: str
    whole: str


def looks_like(text: str) -> bool:
    lines = [line for line in text[:50_000].split("\n") if line.strip()][:_HEAD_LINES]
    hits = sum(_begins(line[:500]) is not None for line in lines)
    return bool(lines) and _begins(lines[0][:500]) is not None and (
        hits >= max(1, len(lines) * _MIN_SHARE)
    )  # fmt: skip


def parse(text: str, path: PurePosixPath, folder: str) -> Iterator[Item]:
    raws = list(_raws(text))
    if not raws:
        raise Unusable("no message was recognised")
    messages = _messages(raws)
    if not messages:
        raise Unusable(f"{raws[0].day} is no day: how it writes dates was not understood")
    system = "signal" if _is_signal(raws[0], path) else "whatsapp"
    yield from by_day(system, _channel(path, folder), messages, str(path.with_suffix("")))


def _messages(raws: list[_Raw]) -> list[ChatMessage]:
    """A line with an impossible time is no message: it belongs to the one above."""
    day_first = _day_first(raws)
    messages: list[ChatMessage] = []
    for raw in raws:
        when = _when(raw, day_first)
        if when is None:
            if messages:
                messages[-1] = replace(
                    messages[-1], words=f"{messages[-1].words}\n{raw.whole} {raw.rest}"
                )
            continue
        named = _WHO.match(raw.rest)
        words = named["words"] if named else raw.rest
        messages.append(
            ChatMessage(when, _tidy(named["who"]) if named else None, words.strip(_MARKS + "\n"))
        )
    return messages


def _is_signal(first: _Raw, path: PurePosixPath) -> bool:
    name = str(path).lower()
    if "whatsapp" in name or path.stem == _IOS:
        return False
    return first.like_signal or (first.year_first and "signal" in name)


def _channel(path: PurePosixPath, folder: str) -> str:
    """iPhones call every chat "_chat" and put it into a folder with its name."""
    name = folder if path.stem == _IOS and folder else path.stem
    return _tidy(_NAMES.sub("", name, count=1)) or path.stem


def looks_like_json(content: Any) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and isinstance(content[0], dict)
        and any(keys <= content[0].keys() for keys in _JSON_KEYS)
    )


def parse_json(content: list[Any], path: PurePosixPath, folder: str) -> Iterator[Item]:
    """Signal: a list of messages, or one message per line."""
    # Exports of whole accounts have a folder per conversation, and the same file name in each.
    generic = path.stem.lower() in ("data", "messages", "chat", "export", "signal")
    channel = folder if generic and folder else path.stem
    messages = filter(None, map(_from_json, content))
    yield from by_day("signal", channel, messages, str(path.with_suffix("")))


def _from_json(one: Any) -> ChatMessage | None:
    if not isinstance(one, dict):
        return None
    moment = one.get("date", one.get("timestamp"))
    try:
        if isinstance(moment, int | float):
            seconds = moment / 1000 if moment > 10**11 else moment
            when = datetime.fromtimestamp(seconds, tz=UTC)
        else:
            when = as_utc(datetime.fromisoformat(str(moment)))
    except (ValueError, OverflowError, OSError):
        return None
    return ChatMessage(when, _tidy(str(one.get("sender") or "unknown")), str(one.get("body") or ""))


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
    """A year first, seconds, and no bracket is the format of log files, not of chats."""
    match = _LINE.match(line)
    if match is None:
        return None
    if len(match["a"]) == 4:
        return None if match["second"] and not match["bracket"] else match
    return match if len(match["c"]) > 1 else None


def _raw(match: re.Match[str]) -> _Raw:
    hour = int(match["hour"])
    if half := match["early"] or match["late"]:
        hour = hour % 12 + (12 if half.lower().startswith(_AFTERNOON) else 0)
    year_first = len(match["a"]) == 4
    return _Raw(
        (int(match["a"]), int(match["b"]), int(match["c"])),
        year_first,
        match["sep"].strip() == ".",
        (0 if hour == 24 else hour, int(match["minute"]), int(match["second"] or 0)),
        year_first and bool(match["bracket"]) and bool(match["comma"]) != bool(match["second"]),
        match["rest"],
        match.string[: match.start("rest")].rstrip(),
    )


def _day_first(raws: list[_Raw]) -> bool:
    """31/12 or 12/31? A number above 12 decides; else the order in which times do not decrease;
    else the most common order in the world."""
    if any(raw.dotted or raw.day[0] > 12 for raw in raws if not raw.year_first):
        return True
    if any(raw.day[1] > 12 for raw in raws if not raw.year_first):
        return False
    return _steps_back(raws, day_first=True) <= _steps_back(raws, day_first=False)


def _steps_back(raws: list[_Raw], *, day_first: bool) -> int:
    times = [_when(raw, day_first) for raw in raws]
    given = [time for time in times if time is not None]
    return sum(later < earlier - timedelta(hours=2) for earlier, later in pairwise(given))


def _when(raw: _Raw, day_first: bool) -> datetime | None:
    a, b, c = raw.day
    year, month, day = (a, b, c) if raw.year_first else (c, b, a) if day_first else (c, a, b)
    try:
        return datetime(year + 2000 if year < 100 else year, month, day, *raw.clock, tzinfo=UTC)
    except ValueError:
        return None


def _tidy(name: str) -> str:
    return " ".join(name.strip(_MARKS + "~ ").split())
