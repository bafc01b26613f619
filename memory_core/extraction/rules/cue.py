"""A cue (a phrase that marks an event), and the patterns that cues of several categories share."""

from dataclasses import dataclass
from functools import cache

from memory_core.extraction.model import Category
from memory_core.extraction.rules import verbs
from memory_core.extraction.rules.patterns import NAMES, words
from memory_core.text import timed_patterns as re

GROUP = (
    r"(?i:we|(?:the|our)\s(?:[\w\-]+\s){0,2}(?:team|group|committee|board|council|meeting|"
    r"community|engineers|developers|maintainers|leads?|steering committee))"
)
# "Ann Lee (AL) has agreed": an aside may follow a name.
PERSON = rf"(?P<who>{NAMES})(?: \([^()]{{1,20}}\))?"
ACTOR = rf"\b(?P<who>{NAMES}|{GROUP}|I\b|i(?='|\s))"
# Words that may stand between a subject and its verb.
AUX = (
    r"(?:(?:'ve|'s|'d)?\s(?i:also|just|already|now|then|therefore|"
    r"both|all|have|has|had|later|together|again|sort of|kind of|since|[a-z]+ly)){0,3}(?:'ve|'s)?"
)
WILL = (
    r"(?:'ll|\s(?i:will|shall|(?:is|are|am) (?:going to|gonna))|"
    r"'(?:m|re|s)\s(?i:going to|gonna))"
)
SOON = (
    r"(?:\s(?i:also|then|now|just|[a-z]+ly|both|go ahead and|be the one to|go and|go|try to|try "
    r"and|at least|hopefully)){0,2}"
)
PROMISE = words(verbs.PROMISE)
DELIVER = words(verbs.DELIVER)
DONE = words(verbs.DONE)
DONE_STRONG = words(verbs.DONE_STRONG)
CHANGED = words(verbs.CHANGED)


@dataclass(frozen=True, slots=True)
class Cue:
    category: Category
    confidence: float
    source: str
    # The pattern after the subject. It is matched first, because subjects are everywhere.
    tail: re.Pattern
    # The named subject must be a person: "Ann will send", not "Cache will send".
    person: bool = False
    # Only with a known speaker or author; without one the phrase has no meaning.
    voiced: bool = False
    # In specifications the phrase describes, it does not report.
    talk_only: bool = False
    # Also certain enough in free speech, where most phrases are incidental.
    speech: bool = False
    # "We fear that X may fail" is still a fear, although it says "may".
    modal: bool = False
    # The cue contains its own negation ("does not work").
    negative: bool = False
    # The sentence must also state a date.
    dated: bool = False
    # A first-person promise. Speech is full of them, so it needs a real object.
    promise: bool = False
    # Only in a list, or for a person on the roster: "Ann to send" could be any words.
    listed: bool = False
    # "I" and "we" may be the subject.
    first_person: bool = False

    @property
    def pattern(self) -> re.Pattern:
        """The whole phrase. Compiled when a tail has matched: most texts need few of them."""
        return _compiled(self.source)


_compiled = cache(re.compile)


def build(category: Category, confidence: float, flags: str, pattern: str) -> Cue:
    """`flags`: the names of the cue's fields that are true."""
    first = any(part in pattern for part in (GROUP, "(?i:we", "I\\b", "who>I"))
    tail = re.compile(_tail(pattern))
    true = dict.fromkeys(flags.split(), True)
    return Cue(category, confidence, pattern, tail, first_person=first, **true)


def _tail(pattern: str) -> str:
    """The part of a pattern after its subject; the pattern is a plain sequence of parts."""
    for part in (AUX, SOON, PERSON, ACTOR):
        after = pattern.rpartition(part)[2]
        if part in pattern and after:
            return after
    return pattern
