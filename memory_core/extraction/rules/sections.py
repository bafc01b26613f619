"""Sections: headings, and what they say about the lines below them."""

from dataclasses import dataclass
from enum import Enum, auto

from memory_core.extraction.rules.markup import plain
from memory_core.extraction.rules.word_lists import phrases
from memory_core.text import timed_patterns as re


class SectionKind(Enum):
    PLAIN = auto()
    DECISION = auto()
    STATUS = auto()
    ACTION = auto()
    DONE = auto()
    RISK = auto()
    FEEDBACK = auto()
    CHANGE = auto()
    ATTENDEES = auto()
    ROLES = auto()
    # Content about what was not chosen, is not known, or is not ours: cues there mislead.
    ASIDE = auto()


@dataclass(frozen=True, slots=True)
class Section:
    kind: SectionKind = SectionKind.PLAIN
    title: str = ""
    # "Action items" / "Alice": the sub-heading names the owner of the items below it.
    owner: str | None = None
    # The kind comes from an outer heading: the section is a part of, say, the decision.
    inherited: bool = False
    # The nearest enclosing heading that is a name, not a kind: a meeting, a project.
    topic: str = ""
    # The version that these notes are for.
    release: str = ""


# Whole headings in lower case, without numbering and filler words ("key", "main", ...).
_KINDS = {
    title: kind
    for kind in SectionKind
    if kind is not SectionKind.PLAIN
    for title in phrases("headings", kind.name.lower())
}

_NUMBERING = re.compile(
    r"(?:[0-9IVXivx]{1,4}(?:\.[0-9]{1,3}){0,4}[.):]|[0-9]{1,4}(?:\.[0-9]{1,3}){1,4}|[A-Z][.)]|§)\s+(?=[^\W\d])"
)
_FILLER = re.compile(
    r"^(?:key|main|major|our|new|current|summary of|the|list of|top|meeting|project|recent|other|"
    r"general|identified|potential)\s+"
)
_TAIL = re.compile(
    r"\s*(?:\([^()]{0,60}\)|(?:from|of|since|for|in|on) (?:the |this |our |today|last |"
    r"previous |v?\d).{0,60}"
    r"|(?:made|taken|so far|today))$"
)
_ANCHOR = re.compile(r"\s*\{#[^}]{0,80}\}\s*$")
MAX_HEADING = 120


def clean_title(raw: str) -> str:
    """A heading's words: without marks, numbering, anchors, closing hashes and colon."""
    title = _ANCHOR.sub("", raw.strip().strip("#").strip())
    title = plain(title).strip(" :*_=-")
    return _NUMBERING.sub("", title, count=1) if _NUMBERING.match(title) else title


# Lists of what would have to be done: these items are neither promised nor done.
_CRITERIA = re.compile(r"\b(?:checklist|criteria|questionnaire|template|sign-?off)\b")
_DATED = r"\s?[-–—:(,]?\s?[\[(]?\d{4}-\d{2}-\d{2}[)\]]?|\s?[-–—(,]\s?\w+ \d{1,2},? \d{4}\)?"
# "1.4.0 (2024-03-05)", "Version 2", "[0.9.1] - 2024-03-05": the items below were released.
_RELEASE = re.compile(
    r"(?:version |release |v\.? ?)?\[?v?\d{1,4}\.\d{1,4}(?:\.\d{1,4}){0,2}[\w.\-]{0,12}\]?"
    rf"(?:{_DATED})?|(?:version|release) \d{{1,4}}|"
    # "libfoo 1:2.4~rc1-3 (2022-03-05)"
    rf"[a-z][\w+.\-]{{1,60}} v?\d[\w.\-+~:]{{0,60}}(?:{_DATED})"
)


_VERSION = re.compile(r"(?:[A-Za-z][\w+.\-]+ )?v?\d[\w.\-+~:]*")


def release_of(title: str) -> str | None:
    """The version that a heading names; None if it is no release heading."""
    if _RELEASE.fullmatch(title.lower().strip()) is None:
        return None
    version = _VERSION.search(title)
    return version.group().removeprefix("Version ").removeprefix("Release ") if version else None


def kind_of(title: str) -> SectionKind:
    words = title.lower().replace("’", "'").strip(" :.!✅❗⚠️📝🚀")
    words = words.replace("&", "and")
    for candidate in (words, _TAIL.sub("", words), _FILLER.sub("", _TAIL.sub("", words))):
        if candidate in _KINDS:
            return _KINDS[candidate]
    if release_of(words):
        return SectionKind.CHANGE
    return SectionKind.ASIDE if _CRITERIA.search(words) else SectionKind.PLAIN
