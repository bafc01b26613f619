"""Transcripts: subtitles (WebVTT, SRT) as turns of speakers, and plain ones recognised."""

import io
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath

from memory_core.artifacts.document import ArtifactType
from memory_core.importing.formats.html import read as read_html
from memory_core.importing.item import Item, Skip, Unusable

_SPEAKER = re.compile(r"(?:>>\s*)?(?P<who>[^\W\d_][\w .'\-]{0,40}):\s+(?P<words>\S.*)", re.DOTALL)
_TURN = re.compile(
    r"(?:[\[(]?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?[\])]?\s{1,3})?"
    r"(?P<who>[^\W\d_][\w .'\-]{0,40}?)(?:\s{1,3}[\[(]?\d{1,2}:\d{2}(?::\d{2})?[\])]?)?:\s+\S"
)
_MAX_NAME_WORDS = 4
_SAMPLE_LINES = 400
_MIN_TURNS = 4
_MARKUP = re.compile(r"<[^<>]{0,200}>|\{\\[^{}]{0,100}\}")
_BLOCK = re.compile(r"\n[ \t]*\n")


@dataclass(slots=True)
class _Turn:
    start: str
    who: str | None
    words: list[str]


def parse(text: str, path: PurePosixPath) -> Item:
    turns = _turns(_cues(text, path.suffix.lower()))
    if not turns:
        raise Skip("subtitles without words")
    speakers = tuple(dict.fromkeys(turn.who for turn in turns if turn.who))
    lines = [
        f"[{turn.start}] {f'{turn.who}: ' if turn.who else ''}{' '.join(turn.words)}"
        for turn in turns
    ]
    return Item(
        ArtifactType.TRANSCRIPT,
        "files",
        "\n".join(lines) + "\n",
        title=path.stem,
        participants=speakers,
    )


def looks_like(text: str) -> bool:
    """Most lines are turns, and at least two speakers take several."""
    lines = [line for line in text[:100_000].splitlines() if line.strip()][:_SAMPLE_LINES]
    speakers: Counter[str] = Counter()
    for line in lines:
        if (turn := _TURN.match(line[:300])) and len(turn["who"].split()) <= _MAX_NAME_WORDS:
            speakers[turn["who"].strip()] += 1
    regular = [count for count in speakers.values() if count >= 2]
    return len(regular) >= 2 and sum(regular) >= max(_MIN_TURNS, len(lines) * 0.4)


def _cues(text: str, suffix: str) -> list[tuple[str, str | None, str]]:
    """(when, who, words). A file whose clocks are broken is read block by block."""
    import webvtt
    from webvtt.errors import MalformedCaptionError, MalformedFileError

    is_vtt = text.lstrip("\ufeff \t\r\n").startswith("WEBVTT")
    kind = "vtt" if is_vtt or suffix == ".vtt" else "srt"
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        captions = webvtt.from_buffer(io.StringIO(_sound(text, kind)), format=kind)
    except (MalformedCaptionError, MalformedFileError, ValueError, IndexError) as error:
        raise Unusable(f"not readable subtitles: {error}"[:200]) from error
    return [(str(cue.start)[:8], cue.voice, str(cue.text)) for cue in captions.captions]


def _sound(text: str, kind: str) -> str:
    """Without the blocks that are no cues, and with the numbers that some programs leave out."""
    blocks = [block.strip("\n") for block in _BLOCK.split(text) if "-->" in block]
    if kind == "vtt":
        return "\n\n".join(["WEBVTT", *blocks]) + "\n"
    numbered = [
        f"{number}\n" + "\n".join(lines[_clock_line(lines) :])
        for number, block in enumerate(blocks, start=1)
        if (lines := block.split("\n"))
    ]
    return "\n\n".join(numbered) + "\n"


def _clock_line(lines: list[str]) -> int:
    return next(i for i, line in enumerate(lines) if "-->" in line)


def _turns(cues: list[tuple[str, str | None, str]]) -> list[_Turn]:
    """Cues of one speaker in a row are one turn; a repeated line (rolling captions) counts once."""
    turns: list[_Turn] = []
    for start, voice, raw in cues:
        for line in raw.split("\n"):
            words = " ".join(_MARKUP.sub("", line).split())
            if "&" in words:
                words = " ".join(read_html(words.replace("<", "&lt;"))[0].split())
            words = words.removeprefix("- ")
            if not words:
                continue
            who = voice
            named = _SPEAKER.match(words) if who is None else None
            if named and len(named["who"].split()) <= _MAX_NAME_WORDS:
                who, words = named["who"].strip(), named["words"]
            last = turns[-1] if turns else None
            if last is not None and (who is None or who == last.who) and len(last.words) < 50:
                if last.words[-1] != words:
                    last.words.append(words)
            else:
                turns.append(_Turn(start, who, [words]))
    return turns
