"""Grounds: what a passage and its document's context say, for all that is claimed beside the quote.

A name stands word for word in the passage or in the document's title, author or participants, and
is stored as it stands there. A narrative is the extractor's own wording: it is kept when its words
are mostly those of the passage and context, it adds no name, number or negation to them, drops no
negation of its quote, says the opposite of no word of theirs, and leaves people in their order.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import cached_property

import regex as re

from memory_core.extraction.aliases import equates, is_short_form, words_of
from memory_core.extraction.alignment import SourceText
from memory_core.extraction.alignment.lexicon import STOPWORDS, burden, listed
from memory_core.extraction.alignment.words import find_words
from memory_core.extraction.model import Actor, DocumentContext, Entity, Subject, SubjectType

# Of the letters of the content words of each sentence of a narrative, as many stand in the text.
_ENOUGH = 0.5
# Words are compared by their beginnings: "deployed" tells of a deployment.
_STEM = 5
# How an occurrence is told in the third person. They say nothing that the quote would have to.
_TELLING = listed("""
    accepted according achieved added agreed agrees announced approved asked assigned author
    because cause change changed commits committed communicated completed concern confirmed created
    decided decides decision discussed document done during expressed feedback finished future
    given handed identified indicated informed intends issue made meeting mentioned message met
    moved noted participant participants passage plan planned plans problem promised promises
    proposed received regarding removed replaced reported reports requested responsibility
    responsible risk said says sent shared somebody someone speaker stated states suggested takes
    task team text that's thinks told took undertook update updated user users volunteered wants
    was were writer wrote
""")
# Of a word on one side that only the narrative has, and one on the other that the text has, the
# narrative tells the opposite. By their beginnings.
_OPPOSITES = tuple(
    (listed(one), listed(other))
    for one, other in (
        (
            "accep adopt agree appro commi confi promi volun",
            "cance decli deny denie oppos refus rejec veto",
        ),
        ("add added exten incre raise raisi", "cut decre drop dropp lower reduc remov short"),
        ("begin began open opene start", "close end ended stop stopp"),
        ("enabl keep kept", "aband delet disab drop dropp remov retir"),
        ("pass passe succe won win", "fail faile lose lost"),
        ("after", "befor"),
        ("above over more", "below under less fewer"),
        ("early earli", "late later delay"),
    )
)  # fmt: skip
# More words are a sentence, not a name.
_LONGEST_NAME = 6
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_BLANK_LINE = re.compile(r"\n\s*\n")
# Marks that belong to words of some scripts, and to signs.
_JOINERS = "\u200c\u200d"
# Words of the quote that stand for a subject which the text does not have.
_SUBJECT_WORDS = 8


class Context:
    """A document's title, author and participants. The same for all its passages."""

    def __init__(self, context: DocumentContext) -> None:
        self.date = context.date
        given = (context.title, context.author, *context.participants)
        self._values = [value for value in given if value]

    @cached_property
    def sources(self) -> list[SourceText]:
        return [SourceText(value) for value in self._values]

    @cached_property
    def words(self) -> set[str]:
        return {word for value in self._values for word in words_of(value)}


class Grounds:
    """What may be said of one passage."""

    def __init__(self, passage: SourceText, context: Context) -> None:
        self._passage, self._context = passage, context
        self._names: dict[str, str | None] = {}

    @cached_property
    def _words(self) -> set[str]:
        return {*words_of(self._passage.text), *self._context.words}

    @cached_property
    def _stems(self) -> set[str]:
        return {word[:_STEM] for word in self._words}

    def name(self, claimed: str) -> str | None:
        """The name as it is written in the passage, else in the context; None if in neither."""
        if claimed not in self._names:
            self._names[claimed] = self._find(claimed)
        return self._names[claimed]

    def _find(self, claimed: str) -> str | None:
        if not self._words.issuperset(words_of(claimed)):
            return None  # most lies, without a look at every participant
        for source in (self._passage, *self._context.sources):
            if (found := source.find(claimed)) and not _BLANK_LINE.search(found.quote):
                return " ".join(found.quote.split())
        first, blank, last = claimed.rpartition(" ")
        if not blank:
            return None
        # "Chen, Alice" in a list of people is Alice Chen.
        for source in (self._passage, *self._context.sources):
            if (found := source.find(f"{last}, {first}")) and "," in found.quote:
                standing, _, before = " ".join(found.quote.split()).partition(",")
                return f"{before.strip()} {standing}"
        return None

    def actor(self, claimed: str) -> str | None:
        """A name that can be an actor's: no pronoun, no sentence."""
        words = words_of(claimed)
        letter = len(claimed) == 1 and claimed != "I"  # how some transcripts name speakers
        if len(words) > _LONGEST_NAME or (STOPWORDS.issuperset(words) and not letter):
            return None
        return self.name(claimed)

    def actors(self, claimed: Iterable[Actor]) -> tuple[Actor, ...]:
        named = ((self.actor(actor.ref), actor.role) for actor in claimed)
        return tuple(Actor(name, role) for name, role in named if name is not None)

    def subject(self, claimed: Subject, quote: str) -> Subject:
        """As it is written; else in the extractor's order, if all its words stand in the text; else
        what the quote begins with."""
        written = self.name(claimed.ref)
        if written is None and claimed.ref.isprintable() and self._has_all(claimed.ref):
            written = " ".join(claimed.ref.split())
        if written is not None:
            return Subject(claimed.type, written)
        return Subject(SubjectType.OTHER, " ".join(quote.split()[:_SUBJECT_WORDS]))

    def _has_all(self, phrase: str) -> bool:
        words = [word for word in words_of(phrase) if word not in STOPWORDS]
        return bool(words) and all(word in self._words for word in words)

    def entity(self, claimed: Entity) -> Entity | None:
        """With those of its aliases that stand in the text and are the name's, by their form or
        because the text says so."""
        name = self.actor(claimed.name)
        if name is None:
            return None
        aliases = (self.actor(alias) for alias in claimed.aliases)
        own = [a for a in aliases if a and a != name and self._is_alias(a, name)]
        return Entity(name, claimed.type, tuple(dict.fromkeys(own)))

    def _is_alias(self, alias: str, name: str) -> bool:
        return is_short_form(alias, name) or any(
            equates(source.text, name, alias) for source in (self._passage, *self._context.sources)
        )

    def narrative(self, told: str, quote: str, *times: datetime | None) -> str | None:
        """None where it tells of something else than the text. `times`: those of the event."""
        told = " ".join(_without_controls(told).split())
        dates = _words_of_dates(self._context.date, *times)
        for sentence in _SENTENCE_END.split(told):
            if not self._is_told(sentence, dates):
                return None
        words = words_of(told)
        if not words:
            return None
        if _denies(words_of(quote)) and not _denies(words):
            return None
        if self._says_the_opposite(words) or _in_another_order(told, quote):
            return None
        return told

    def _says_the_opposite(self, words: list[str]) -> bool:
        added = {word[:_STEM] for word in words if not self._knows(word)}
        return any(
            (added & one and self._stems & other) or (added & other and self._stems & one)
            for one, other in _OPPOSITES
        )

    def _is_told(self, sentence: str, dates: set[str]) -> bool:
        written = find_words(sentence, 0, len(sentence))
        content = known = 0
        for word in written:
            [folded] = words_of(word) or [""]
            has = folded in dates or self._knows(folded)
            if not has and self._must_stand(word, folded):
                return False
            if folded and folded not in STOPWORDS and folded not in _TELLING:
                content += len(folded)
                known += len(folded) if has else 0
        return known >= _ENOUGH * content

    def _knows(self, folded: str) -> bool:
        bare = folded.removesuffix("'s").removesuffix("'")
        if burden(bare):
            return bare in self._words or burden(bare) in self._burdens
        return folded in self._words or bare in self._words or bare[:_STEM] in self._stems

    @cached_property
    def _burdens(self) -> set[str]:
        return {said for word in self._words if (said := burden(word))}

    @staticmethod
    def _must_stand(word: str, folded: str) -> bool:
        """Names, numbers and negations are never a matter of wording. The capital of a first word
        may be a name's."""
        if folded in STOPWORDS or folded in _TELLING:
            return False
        return bool(burden(folded)) or word[0].isupper()


def _without_controls(text: str) -> str:
    """Without what changes the direction of writing, or cannot be seen."""
    return "".join(c for c in text if c.isprintable() or c.isspace() or c in _JOINERS)


def _denies(words: list[str]) -> bool:
    return any(burden(word) == "not" for word in words)


def _in_another_order(told: str, quote: str) -> bool:
    """ "Bob pays Ann" where the quote has "Ann pays Bob". With "by" it may say the same."""
    if any(mark in f"{told}{quote}" for mark in ":|"):
        return False  # a heading or a table, whose order tells nothing
    names = [word for word in find_words(told, 0, len(told)) if word[0].isupper()]
    places = [quote.find(name) for name in dict.fromkeys(names)]
    found = [place for place in places if place >= 0]
    return found != sorted(found) and " by " not in told


def _words_of_dates(*dates: datetime | None) -> set[str]:
    """How a date may be written out: a relative one is resolved against the document's."""
    return {
        word
        for date in dates
        if date is not None
        for word in (
            *(f"{date:%Y}", f"{date:%m}", f"{date:%d}", f"{date.day}", f"{date.month}"),
            *(f"{date:%B}".lower(), f"{date:%b}".lower(), f"{date:%A}".lower()),
            *(f"{date:%Y-%m-%d}", f"{date:%Y-%m}", f"{date:%H:%M}", f"{date.day}th"),
            *(f"{date.day}st", f"{date.day}nd", f"{date.day}rd", "utc"),
        )
    }
