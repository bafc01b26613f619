"""Headings and what they promise about the lines below them."""

import re
from dataclasses import dataclass
from enum import Enum, auto

from memory_core.extraction.rules.markup import plain


class Kind(Enum):
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
    # Content that is about what was not chosen, not known, or not ours: cues there mislead.
    ASIDE = auto()


@dataclass(frozen=True, slots=True)
class Section:
    kind: Kind = Kind.PLAIN
    title: str = ""
    # "Action items" / "Alice": the sub-heading names who owns what stands below it.
    owner: str | None = None
    # The kind comes from an outer heading: the section is a part of, say, the decision.
    inherited: bool = False
    # The nearest heading around it that is a name, not a kind: a meeting, a project.
    topic: str = ""
    # The version whose notes these are.
    release: str = ""


# Whole headings, lower case, after numbering and filler ("key", "main", ...) are taken away.
_HEADINGS: dict[Kind, tuple[str, ...]] = {
    Kind.DECISION: (
        "decision", "decisions", "decision outcome", "decision made", "decisions made",
        "decisions taken", "resolution", "resolutions", "agreements", "agreed",
        "what we decided", "decided", "what was decided",
        "decision log", "decision record", "resolved", "consensus",
    ),
    Kind.STATUS: ("status",),
    Kind.ACTION: (
        "action", "actions", "action item", "action items", "ais", "ai", "next steps", "next step",
        "todo", "to do", "to-do", "todos", "to-dos", "follow up", "follow ups", "follow-up",
        "follow-ups", "followups", "tasks", "assignments", "commitments", "who does what",
        "who does what now", "deliverables", "action points", "actions and owners", "homework",
        "next actions",
    ),
    Kind.DONE: (
        "done", "completed", "accomplishments", "accomplished", "achievements", "shipped",
        "delivered", "what we did", "finished", "completed items", "what was done",
        "done this week", "completed action items", "implementation history",
    ),
    Kind.RISK: (
        "risk", "risks", "risks and mitigations", "open issues", "known issues",
        "concerns", "concern", "blockers", "blocker", "blocked", "problems", "problem list",
        "impediments", "risks and issues", "risks and concerns", "issues and risks", "drawbacks",
        "known limitations", "what worries me", "what worries us", "worries",
        "security concerns", "known problems", "risks and blockers", "quality risks",
    ),
    Kind.FEEDBACK: (
        "feedback", "user feedback", "customer feedback",
        "what we heard", "feedback received", "survey results", "user comments",
        "customer quotes", "what users said", "what customers said", "what went well",
        "what went badly", "what did not go well", "testimonials", "complaints",
        "beta feedback", "interview findings",
    ),
    Kind.CHANGE: (
        "changelog", "change log", "changes", "changed", "what changed", "what's changed",
        "revision history",
        "release notes", "what's new", "history of changes", "change history", "release history",
        "updates since last version", "bug fixes", "bugfixes", "new features", "breaking changes",
        "deprecations", "security fixes", "enhancements", "improvements", "fixes", "removed",
        "added", "deprecated", "fixed", "full changelog", "notable changes",
    ),
    Kind.ATTENDEES: (
        "attendees", "attendance", "attending", "participants", "present", "who was there",
        "in attendance", "attended", "members present", "people present", "who came",
    ),
    Kind.ROLES: (
        "stakeholders", "stakeholder", "roles", "roles and responsibilities", "responsibilities",
        "owners", "team", "the team", "contacts", "people", "who is involved", "raci",
        "project team", "reviewers", "approvers", "maintainers", "responsible",
    ),
    Kind.ASIDE: (
        "table of contents", "contents", "license", "licence", "copyright", "references",
        "alternatives", "alternatives considered", "rejected ideas", "rejected alternatives",
        "rationale and alternatives", "options considered", "considered options", "options",
        "considered alternatives", "pros and cons of the options", "unresolved questions",
        "open questions", "questions", "still open", "faq", "glossary", "examples", "example",
        "future possibilities", "future work", "prior art", "template", "user stories",
        "apologies", "absent", "regrets", "absences", "non-goals", "bibliography", "footnotes",
        "acknowledgements", "how to use this document", "guide-level explanation",
        "reference-level explanation", "specification", "reference implementation",
        "detailed design", "backwards compatibility",
    ),
}  # fmt: skip
_KINDS = {title: kind for kind, titles in _HEADINGS.items() for title in titles}

_NUMBERING = re.compile(r"(?:[0-9IVXivx]{1,4}(?:\.[0-9]{1,3}){0,4}[.):]?|[A-Z][.)]|§)\s+(?=\S)")
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


# Lists of what would have to be done: nobody has promised or done it.
_CRITERIA = re.compile(r"\b(?:checklist|criteria|questionnaire|template|sign-?off)\b")
# "1.4.0 (2024-03-05)", "Version 2", "[0.9.1] - 2024-03-05": what is listed below was released.
_RELEASE = re.compile(
    r"(?:version |release |v\.? ?)?\[?v?\d{1,4}\.\d{1,4}(?:\.\d{1,4}){0,2}[\w.\-]{0,12}\]?"
    r"(?:\s?[-–—:(,]?\s?[\[(]?\d{4}-\d{2}-\d{2}[)\]]?|\s?[-–—(,]\s?\w+ \d{1,2},? \d{4}\)?)?|"
    r"(?:version|release) \d{1,4}"
)


_VERSION = re.compile(r"v?\d[\w.\-]*")


def release_of(title: str) -> str | None:
    """The version that a heading names; None if it is no heading of a release."""
    if _RELEASE.fullmatch(title.lower().strip()) is None:
        return None
    found = _VERSION.search(title)
    return found.group() if found else None


def kind_of(title: str) -> Kind:
    words = title.lower().replace("’", "'").strip(" :.!✅❗⚠️📝🚀")
    words = words.replace("&", "and")
    for candidate in (words, _TAIL.sub("", words), _FILLER.sub("", _TAIL.sub("", words))):
        if candidate in _KINDS:
            return _KINDS[candidate]
    if release_of(words):
        return Kind.CHANGE
    return Kind.ASIDE if _CRITERIA.search(words) else Kind.PLAIN
