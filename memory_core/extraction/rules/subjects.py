"""Subjects: what an event is about."""

from memory_core.extraction.model import Subject, SubjectType
from memory_core.extraction.rules import sections, verbs
from memory_core.extraction.rules.markup import plain
from memory_core.extraction.rules.patterns import words
from memory_core.extraction.rules.sections import SectionKind
from memory_core.text import timed_patterns as re

_MAX_WORDS = 6
_MAX_CHARS = 80
# The object of a verb ends here.
_END = re.compile(
    rf"\s(?:{words(verbs.CHANGED)})\b|"
    r"\s(?:today|yesterday|tomorrow|tonight|this (?:week|month|morning|afternoon)|next|last|"
    r"again|as well|"
    r"with|over|(?:on|in|of|for)? ?\d{1,2} [A-Z]|on \d)|"
    r"[,;:!?()\[\]\"“”]|\.(?=\s|$)|\s-\s|\b(?:by|because|instead|rather|so|which|that|until|"
    r"before|after|when|"
    r"while|if|as|and|but|or|since|than|unless|where|who|at|from|not|is|are|was|were|will|has|have|"
    r"to the|on (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:(?:to|on|that|not|the|a|an|our|their|his|her|its|this|these|those|with|for|up|out|"
    r"in|into|"
    r"of|about|over|against|we|it|they|i|you|now|first|all|some|any|also|just|back|there|them|"
    r"at|after|which|by|he|she|him|her|us|me|and|or|but|down|off|very|really|ahead|going|new|"
    r"one|my|your|should|will|be|is|are)\b\s*)+",
    re.IGNORECASE,
)
_VERB_FIRST = re.compile(rf"^{words(verbs.IMPERATIVE)}\s+(?=\w)", re.IGNORECASE)
_DECIDED = re.compile(
    r"^(?:(?:we|it|they|the (?:team|group))\s+)?(?:(?:have|has|was|will)\s+)?"
    rf"(?:decided|agreed|resolved|chose|approved|decision|{words(verbs.CHANGED)})\s+(?=\w)",
    re.IGNORECASE,
)
# A date or a number says when or how many, not what.
_HAS_WORD = re.compile(
    r"(?i)(?!(?:today|yesterday|tomorrow|\w+day|january|february|march|april|june|july|august|"
    r"september|october|november|december)\b)\b[^\W\d_]{3,}"
)
_PROJECT = re.compile(r"\b[Pp]roject\b")


def of_object(object_words: str, fallback: Subject) -> Subject:
    """The noun phrase at the start of `object_words`, which follow the cue."""
    phrase = _LEAD.sub("", plain(object_words[:200]).lstrip(" ([\"'“,;:-"))
    phrase = _LEAD.sub("", _DECIDED.sub("", phrase))
    phrase = _LEAD.sub("", _VERB_FIRST.sub("", phrase))
    stop = _END.search(phrase, 2)
    if stop:
        phrase = phrase[: stop.start()]
    picked = phrase.split()[:_MAX_WORDS]
    ref = " ".join(picked).strip(" -–—*_'\"`/|")
    if len(ref) < 3 or len(ref) > _MAX_CHARS or not _HAS_WORD.search(ref):
        return fallback
    kind = SubjectType.PROJECT if _PROJECT.search(ref) else SubjectType.OBJECT
    return Subject(kind, ref)


def of_person(name: str) -> Subject:
    return Subject(SubjectType.PERSON, name)


def of_document(section_title: str, title: str | None) -> Subject:
    """The section, unless its title only names a kind of section; else the document."""
    named = section_title and sections.kind_of(section_title) is SectionKind.PLAIN
    ref = section_title if named and len(section_title) <= _MAX_CHARS else title or section_title
    ref = " ".join((ref or "document").split())[:_MAX_CHARS].strip() or "document"
    kind = SubjectType.PROJECT if _PROJECT.search(ref) else SubjectType.OTHER
    return Subject(kind, ref)
