"""Sentences with exact offsets, none longer than a fixed bound."""

from collections.abc import Iterator
from dataclasses import dataclass

from memory_core.extraction.rules import speech
from memory_core.text import timed_patterns as re

# Every cue is matched against one sentence, so this bounds the cost of any match.
MAX_SENTENCE = 600
# Shorter pieces between semicolons are items of a list.
_MIN_CLAUSE = 15

_STOP = re.compile(r"[.!?…。！？]+[\"'”’)\]*_]{0,4}(?=\s|$)|[。！？]|\n")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|mr|mrs|ms|dr|prof|st|no|nr|fig|eq|approx|inc|ltd|corp|jan|"
    r"feb|mar|"
    r"apr|jun|jul|aug|sep|sept|oct|nov|dec|resp|al|ca|est|dept|p\.m|a\.m|incl)|(?:^|\s)\w)\.$",
    re.IGNORECASE,
)

_WORDS = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A span of the text, and its words as cues read them: runs of white space become one space.

    `offsets[i]` is the position of character `i` of `words` in the text.
    """

    start: int
    end: int
    words: str
    offsets: tuple[int, ...]

    def span(self, begin: int, end: int) -> tuple[int, int]:
        """Source span of `words[begin:end]`."""
        if begin >= len(self.offsets):
            return self.end, self.end
        start = self.offsets[begin] if begin else self.start
        stop = self.offsets[end - 1] + 1 if 0 < end < len(self.offsets) else self.end
        return start, max(stop, start)

    def clauses(self) -> list["Sentence"]:
        """The parts between semicolons, which count as separate sentences."""
        cuts = [i + 1 for i, c in enumerate(self.words) if c == ";"]
        if not cuts:
            return [self]
        parts = []
        for begin, end in zip([0, *cuts], [*cuts, len(self.words)], strict=True):
            while begin < end and self.words[begin] == " ":
                begin += 1
            if end - begin < _MIN_CLAUSE:
                return [self]
            stop = end - 1 if self.words[end - 1] == ";" else end
            start, last = self.span(begin, stop)
            parts.append(Sentence(start, last, self.words[begin:stop], self.offsets[begin:stop]))
        return parts


def read(masked: str, start: int, end: int, spoken: bool = False) -> Sentence:
    """`spoken`: without the fillers and repetitions of speech."""
    kept: list[int] = []
    pieces: list[str] = []
    filled = False
    for match in _WORDS.finditer(masked, start, end):
        token = match.group()
        if spoken and (speech.is_filler(token) or _is_repeated(token, pieces)):
            filled = True
            continue
        # "with , uh , Ann": the commas around a filler are removed with it.
        if filled and token == ",":
            continue
        if filled and pieces and pieces[-1] == ",":
            pieces.pop()
            kept.pop()
        filled = False
        if kept and not (spoken and speech.is_joined(token)):
            pieces.append(" ")
            kept.append(match.start() - 1)
        pieces.append(token)
        kept.extend(range(match.start(), match.end()))
    return Sentence(start, end, "".join(pieces), tuple(kept))


def _is_repeated(token: str, pieces: list[str]) -> bool:
    return bool(pieces) and token.isalpha() and token.lower() == pieces[-1].lower()


def split(
    masked: str, start: int, end: int, loose: bool, lines_end: bool
) -> Iterator[tuple[int, int]]:
    """Spans of the sentences in `masked[start:end]`, trimmed.

    `loose`: a full stop ends a sentence even before a lower-case letter, as in chats. `lines_end`:
    a line break ends a sentence, as in chats and transcripts.
    """
    begin = start
    for match in _STOP.finditer(masked, start, end):
        if not _ends(masked, match, begin, end, loose, lines_end):
            continue
        yield from _bounded(masked, begin, match.end())
        begin = match.end()
    yield from _bounded(masked, begin, end)


def _ends(
    masked: str, match: re.Match[str], begin: int, end: int, loose: bool, lines_end: bool
) -> bool:
    mark = match.group()
    if mark == "\n":
        return lines_end
    if mark[0] != "." or len(mark) > 1:
        return True
    if _ABBREVIATION.search(masked, max(begin, match.end() - 12), match.end()):
        return False
    following = match.end()
    while following < end and masked[following].isspace():
        following += 1
    # A following sentence that begins with code appears as a run of x.
    muted = masked.startswith("xxx", following)
    return following >= end or loose or muted or not masked[following].islower()


def _bounded(masked: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    while begin < end and masked[begin].isspace():
        begin += 1
    while end > begin and masked[end - 1].isspace():
        end -= 1
    while end - begin > MAX_SENTENCE:
        cut = max(masked.rfind(", ", begin, begin + MAX_SENTENCE), begin)
        if cut == begin:
            cut = masked.rfind(" ", begin, begin + MAX_SENTENCE)
        if cut <= begin:
            cut = begin + MAX_SENTENCE
        yield begin, cut
        begin = cut
        while begin < end and (masked[begin].isspace() or masked[begin] == ","):
            begin += 1
    if begin < end:
        yield begin, end
