"""Transcripts: subtitles (WebVTT, SRT) as turns of speakers, and recognition of plain
transcripts."""

import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from memory_core.artifacts.document import ArtifactType
from memory_core.importing.formats.html import read as read_html
from memory_core.importing.item import Item, Skip, Unusable

_SPEAKER = re.compile(r"(?:>>\s*)?(?P<who>[^\W\d_][\w .'\-]{0,40}):\s+(?P<words>\S.*)", re.DOTALL)
_TURN = re.compile(
    r"(?:[\[(]?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?[\])]?\s{1,3})?"
    r"(?P<who>[^\W\d_][\w .'\-]{0,40}?)(?:\s{1,3}[\[(]?\d{1,2}:\d{2}(?::\d{2})?[\])]?)?:\s+\S"
)
# The speaker and a clock time on the line above the words, as meeting programs copy them.
_ALONE = re.compile(
    r"\[?(?P<who>[^\W\d_][\w .'\-]{0,40}?)\]?\s{1,10}[\[(]?\d{1,2}:\d{2}(?::\d{2})?[\])]?\s*$"
)
_MAX_NAME_WORDS = 4
_SAMPLE_LINES = 400
_MIN_TURNS = 4
_MIN_SHARE = 0.4
_MIN_SHARE_ALONE = 0.1
_MARKUP = re.compile(r"<[^<>]{0,200}>|\{\\[^{}]{0,100}\}")
_VOICE = re.compile(r"<v(?:\.[^\s<>]{0,100})?\s{1,9}([^<>]{1,100})>|</v>")
_BLOCK = re.compile(r"\n[ \t]*\n")
_CLOCK_LINE = re.compile(r"[ \t]*[\w.,]{0,10}:[\w:.,]{1,20}[ \t]*-{1,3}>")
_CLOCK = re.compile(r"[ \t]*(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})(?:[.,]\d{1,9})?[ \t]*-")


@dataclass(slots=True)
class _Turn:
    start: str
    who: str | None
    words: list[str]


def parse(text: str, path: PurePosixPath) -> Item:
    turns = _turns(_cues(text, path.suffix.lower()))
    if not turns:
        raise Skip("subtitles without words")
    lines = [
        f"[{turn.start}] {f'{turn.who}: ' if turn.who else ''}{' '.join(turn.words)}"
        for turn in turns
    ]
    return Item(
        ArtifactType.TRANSCRIPT,
        "files",
        "\n".join(lines) + "\n",
        title=path.stem,
        participants=tuple(dict.fromkeys(turn.who for turn in turns if turn.who)),
    )


def looks_like(text: str) -> bool:
    """Turns are a good part of the lines, and at least two speakers have several turns."""
    lines = [line for line in text[:100_000].splitlines() if line.strip()][:_SAMPLE_LINES]
    for pattern, share in ((_TURN, _MIN_SHARE), (_ALONE, _MIN_SHARE_ALONE)):
        regular = _regular(lines, pattern)
        if len(regular) >= 2 and sum(regular.values()) >= max(_MIN_TURNS, len(lines) * share):
            return True
    return False


def speakers(text: str) -> tuple[str, ...]:
    """The speakers of a plain transcript, in order of their first turn."""
    lines = text.splitlines()
    counts = max((_regular(lines, pattern) for pattern in (_TURN, _ALONE)), key=Counter.total)
    return tuple(counts)


def _regular(lines: list[str], pattern: re.Pattern[str]) -> Counter[str]:
    """Speakers and their number of turns. A prefix that occurs once may be any word with a
    colon."""
    counts: Counter[str] = Counter()
    for line in lines:
        turn = pattern.match(line[:300])
        if turn and len(turn["who"].split()) <= _MAX_NAME_WORDS:
            counts[turn["who"].strip()] += 1
    return Counter({who: count for who, count in counts.items() if count >= 2})


def _cues(text: str, suffix: str) -> list[tuple[str, str]]:
    """Pairs of (time, words with their tags)."""
    import webvtt
    from webvtt.errors import MalformedCaptionError, MalformedFileError

    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    is_vtt = text.lstrip().startswith("WEBVTT") or suffix == ".vtt"
    sound = [f"{start}.000 --> {start}.000\n{words}" for start, words in _blocks(text, is_vtt)]
    try:
        read = webvtt.from_buffer(io.StringIO("\n\n".join(["WEBVTT", *sound, ""])), format="vtt")
    except (MalformedCaptionError, MalformedFileError, ValueError, IndexError) as error:
        raise Unusable(f"not readable subtitles: {error}"[:200]) from error
    return [(str(cue.start).partition(".")[0], cue.raw_text) for cue in read.captions]


def _blocks(text: str, is_vtt: bool) -> Iterator[tuple[str, str]]:
    """(clock time, words) of every cue. A cue with an unreadable time gets that of the previous
    cue. Missing cue numbers or blank lines are accepted."""
    start, words = "00:00:00", list[str]()
    for block in _BLOCK.split(text):
        lines = block.strip("\n").split("\n")
        clocks = [i for i, line in enumerate(lines) if _CLOCK_LINE.match(line)]
        if not clocks and not is_vtt and not block.strip().isdigit():
            words += [line for line in lines if line.strip()]  # a cue with a blank line inside
        for at, stop in pairwise([*clocks, len(lines)]):
            if any(words):
                yield start, "\n".join(words)
            start = _clock(lines[at]) or start
            words = lines[at + 1 : stop]
            if stop < len(lines) and words and words[-1].strip().isdigit():
                words.pop()  # the number of the next cue
    if any(words):
        yield start, "\n".join(words)


def _clock(line: str) -> str | None:
    clock = _CLOCK.match(line)
    if clock is None or int(clock[2]) > 59 or int(clock[3]) > 59:
        return None
    return f"{int(clock[1] or 0):02}:{int(clock[2]):02}:{int(clock[3]):02}"


def _voices(raw: str) -> Iterator[tuple[str | None, str]]:
    """A cue may have several voices: <v Alice>…</v> <v Bob>…"""
    voice, end = None, 0
    for mark in _VOICE.finditer(raw):
        yield voice, raw[end : mark.start()]
        voice, end = (" ".join(mark[1].split()) if mark[1] else None), mark.end()
    yield voice, raw[end:]


def _turns(cues: list[tuple[str, str]]) -> list[_Turn]:
    """Consecutive cues of one speaker form one turn; a repeated line (rolling captions) counts
    once."""
    turns: list[_Turn] = []
    for start, raw in cues:
        for voice, said in _voices(raw):
            for line in said.split("\n"):
                if words := _words(line):
                    _add(turns, start, voice, words)
    return turns


def _words(line: str) -> str:
    words = " ".join(_MARKUP.sub("", line).split())
    if "&" in words:
        words = " ".join(read_html(words.replace("<", "&lt;"))[0].split())
    return words.removeprefix("- ")


def _add(turns: list[_Turn], start: str, who: str | None, words: str) -> None:
    named = _SPEAKER.match(words) if who is None else None
    if named and len(named["who"].split()) <= _MAX_NAME_WORDS:
        who, words = named["who"].strip(), named["words"]
    last = turns[-1] if turns else None
    if last is not None and (who is None or who == last.who) and len(last.words) < 50:
        if last.words[-1] != words:
            last.words.append(words)
    else:
        turns.append(_Turn(start, who, [words]))
