"""Markdown and RST marks: hidden for matching, removed for reading."""

from collections.abc import Callable

from memory_core.text import timed_patterns as re

# A cue never depends on text inside these. Repeats are bounded, so that a line of opening brackets
# costs linear time.
_LINK = re.compile(r"\[([^\[\]\n]{1,300})\](?:\([^()\s]{0,500}\)|\[[^\[\]\n]{0,100}\])")
_CODE = re.compile(r"(`{1,3})[^`\n]{1,200}\1(?!`)")
_URL = re.compile(r"(?:https?|ftp|mailto)://?[^\s<>()\[\]]{1,1000}")
_STRUCK = re.compile(r"~~[^~\n]{1,300}~~")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,80}>")
_ROLE = re.compile(r":[a-z]{2,20}:(?=`)")
_EMPHASIS = re.compile(r"\*{1,3}|(?<!\w)_{1,3}(?=\w)|(?<=[\w.!?])_{1,3}(?!\w)|\\")
_MARKS = re.compile(r"(?<!\w)_{1,3}(?=\w)|(?<=[\w.!?])_{1,3}(?!\w)|\*{1,3}|`{1,3}|\\")
# Quoted speech of three words or more. A single quoted word is a term, not a sentence.
_SPEECH = re.compile(r'"[^"\n]{0,40} [^"\n]{0,40} [^"\n]{0,400}"|“[^“”\n]{0,400}”')

_SAME_LENGTH = str.maketrans({"’": "'", "‘": "'", "\u00a0": " ", "\t": " ", "–": "-", "—": "-"})


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _fill(match: re.Match[str]) -> str:
    return "x" * len(match.group())


def _words_only(match: re.Match[str]) -> str:
    """The words of a link at their place."""
    return f" {match[1]}".ljust(len(match.group()))


def _mute(match: re.Match[str]) -> str:
    """Keep the shape of words, so that the sentence around a quotation can still be read."""
    inner: str = match.group()
    return inner[0] + "".join("x" if c.isalnum() else c for c in inner[1:-1]) + inner[-1]


_STEPS: tuple[tuple[re.Pattern, Callable[[re.Match[str]], str]], ...] = (
    (_ROLE, _blank),
    (_CODE, _fill),
    (_LINK, _words_only),
    (_URL, _fill),
    (_STRUCK, _blank),
    (_TAG, _blank),
    (_EMPHASIS, _blank),
    (_SPEECH, _mute),
)


def mask(text: str) -> str:
    """The text as cues see it: same length, marks blanked, code and quoted speech muted."""
    masked = text.translate(_SAME_LENGTH)
    for pattern, replacement in _STEPS:
        masked = pattern.sub(replacement, masked)
    return masked


def plain(text: str) -> str:
    """The text as a person reads it: one line, without marks, links reduced to their words."""
    text = _STRUCK.sub("", text)
    text = _LINK.sub(r"\1", text)
    text = _ROLE.sub("", text)
    text = _TAG.sub("", text)
    return " ".join(_MARKS.sub("", text).split())
