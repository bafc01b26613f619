"""Grounds: whether the passage and its document's context support what an event says besides its
quote.

A name must stand word for word in the passage or in the document's title, author or participants,
and is stored as written there. A narrative is the extractor's own wording. It is kept if most of
its words come from the passage and context, it adds no name, number or negation, it drops no
negation of its quote, it contains the opposite of none of their words, and it keeps people in their
order.
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

# This share of the letters of a sentence's content words must stand in the text.
_ENOUGH = 0.5
# Words are compared by their first letters: "deployed" supports "deployment".
_STEM = 5
# Words that tell an occurrence in the third person. The quote need not contain them.
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
# Pairs of opposites, by their first letters. A narrative contradicts the text if it has a word of
# one side that the text lacks, and the text has a word of the other side.
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
# A longer string is a sentence, not a name.
_LONGEST_NAME = 6
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_BLANK_LINE = re.compile(r"\n\s*\n")
# Marks that belong to words of some scripts, and to signs.
_JOINERS = "\u200c\u200d"
# How many words of the quote replace a subject that is not in the text.
_SUBJECT_WORDS = 8


class Context:
    """A document's title, author and participants. They are the same for all its passages."""

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
    """Checks claims about one passage."""

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
        """The name as written in the passage, or else in the context; None if it is in neither."""
        if claimed not in self._names:
            self._names[claimed] = self._find(claimed)
        return self._names[claimed]

    def _find(self, claimed: str) -> str | None:
        if not self._words.issuperset(words_of(claimed)):
            return None  # rejects most false names without searching every participant
        for source in (self._passage, *self._context.sources):
            if (aligned := source.find(claimed)) and not _BLANK_LINE.search(aligned.quote):
                return " ".join(aligned.quote.split())
        first, blank, last = claimed.rpartition(" ")
        if not blank:
            return None
        # "Chen, Alice" in a list of people is Alice Chen.
        for source in (self._passage, *self._context.sources):
            if (aligned := source.find(f"{last}, {first}")) and "," in aligned.quote:
                standing, _, before = " ".join(aligned.quote.split()).partition(",")
                return f"{before.strip()} {standing}"
        return None

    def actor(self, claimed: str) -> str | None:
        """The name, if it can be an actor: no pronoun, no sentence."""
        words = words_of(claimed)
        letter = len(claimed) == 1 and claimed != "I"  # some transcripts name speakers so
        if len(words) > _LONGEST_NAME or (STOPWORDS.issuperset(words) and not letter):
            return None
        return self.name(claimed)

    def actors(self, claimed: Iterable[Actor]) -> tuple[Actor, ...]:
        named = ((self.actor(actor.ref), actor.role) for actor in claimed)
        return tuple(Actor(name, role) for name, role in named if name is not None)

    def subject(self, claimed: Subject, quote: str) -> Subject:
        """The subject as written in the text; or else as the extractor words it, if all its words
        stand in the text; or else the first words of the quote."""
        written = self.name(claimed.ref)
        if written is None and claimed.ref.isprintable() and self._contains_all_words(claimed.ref):
            written = " ".join(claimed.ref.split())
        if written is not None:
            return Subject(claimed.type, written)
        return Subject(SubjectType.OTHER, " ".join(quote.split()[:_SUBJECT_WORDS]))

    def _contains_all_words(self, phrase: str) -> bool:
        words = [word for word in words_of(phrase) if word not in STOPWORDS]
        return bool(words) and all(word in self._words for word in words)

    def entity(self, claimed: Entity) -> Entity | None:
        """The entity with those aliases that stand in the text and belong to the name, by their
        form or because the text equates them."""
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

    def narrative(self, wording: str, quote: str, *times: datetime | None) -> str | None:
        """The narrative, or None if the text does not support it. `times`: the times of the
        event."""
        wording = " ".join(_without_controls(wording).split())
        dates = _words_of_dates(self._context.date, *times)
        for sentence in _SENTENCE_END.split(wording):
            if not self._is_supported(sentence, dates):
                return None
        words = words_of(wording)
        if not words:
            return None
        if _has_negation(words_of(quote)) and not _has_negation(words):
            return None
        if self._says_the_opposite(words) or _in_another_order(wording, quote):
            return None
        return wording

    def _says_the_opposite(self, words: list[str]) -> bool:
        added = {word[:_STEM] for word in words if not self._knows(word)}
        return any(
            (added & one and self._stems & other) or (added & other and self._stems & one)
            for one, other in _OPPOSITES
        )

    def _is_supported(self, sentence: str, dates: set[str]) -> bool:
        written = find_words(sentence, 0, len(sentence))
        content = supported = 0
        for word in written:
            [folded] = words_of(word) or [""]
            has = folded in dates or self._knows(folded)
            if not has and self._must_stand(word, folded):
                return False
            if folded and folded not in STOPWORDS and folded not in _TELLING:
                content += len(folded)
                supported += len(folded) if has else 0
        return supported >= _ENOUGH * content

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
        """Whether the text must contain this word: names, numbers and negations are never mere
        wording. A capital at the start of a sentence may be a name's."""
        if folded in STOPWORDS or folded in _TELLING:
            return False
        return bool(burden(folded)) or word[0].isupper()


def _without_controls(text: str) -> str:
    """The text without characters that change the writing direction or are invisible."""
    return "".join(c for c in text if c.isprintable() or c.isspace() or c in _JOINERS)


def _has_negation(words: list[str]) -> bool:
    return any(burden(word) == "not" for word in words)


def _in_another_order(wording: str, quote: str) -> bool:
    """ "Bob pays Ann" where the quote has "Ann pays Bob". With "by" it may say the same."""
    if any(mark in f"{wording}{quote}" for mark in ":|"):
        return False  # a heading or a table, whose order says nothing
    names = [word for word in find_words(wording, 0, len(wording)) if word[0].isupper()]
    places = [quote.find(name) for name in dict.fromkeys(names)]
    positions = [place for place in places if place >= 0]
    return positions != sorted(positions) and " by " not in wording


def _words_of_dates(*dates: datetime | None) -> set[str]:
    """Words in which these dates may be written: the extractor resolves a relative date against the
    document's."""
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
