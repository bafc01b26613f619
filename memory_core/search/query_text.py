"""Query parsing: what a person types becomes a tsquery, as a sentence or with operators.

A query with operators ("quotes", -exclusion, OR) is matched exactly. Otherwise it is a sentence: of
one or two words one is enough, of more any two, and rare words count most. Which words are rare
differs between events and passages.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import regex

from memory_core.kernel.database import Session
from memory_core.search.lexemes import quoted, stem
from memory_core.search.word_statistics import WordCount

# Any two words of a query are enough. For a longer query, any two of its rarest.
_MOST_WORDS = 8
# The approximate number of texts with some of the words that are read. Two words are always
# searched.
_MOST_LOOKED_AT = 150_000
# A text that has more of the rarest words comes first; this many words are compared.
_RANKED_WORDS = 16

_QUOTED = re.compile(r'"[^"]*\w[^"]*"')
_EXCLUDED = re.compile(r'(?<!\S)-(?="|\w\w|[^\W\x00-\x7f])')
_EITHER = re.compile(r"(?<=\S)\s+OR\s+(?=\S)")
# In a sentence "or" is an ordinary word: in a question, and in anything longer than this.
_EITHER_IN_FEW_WORDS = re.compile(r"(?<=\S)\s+or\s+(?=\S)(?!.*\?\s*$)", re.IGNORECASE | re.DOTALL)
_FEW_WORDS = 5
# Hyphens alone, and command-line options.
_LOOSE_HYPHEN = re.compile(r"(?<!\S)(?:-+(?!\S)|-(?=[A-Za-z0-9](?!\w))|--+(?=\w))")
_LEXEME = re.compile(r"'(?:''|[^'])*'")
_LETTERS = re.compile(r"[^\W\d_]+")
# Postgres would take direction marks, soft hyphens and a byte order mark for letters. Persian and
# emoji need their joiners.
_INVISIBLE = regex.compile(r"[\p{Cf}--[\u200c\u200d]]", regex.V1)


@dataclass(frozen=True, slots=True)
class Asked:
    """`words`: the tsquery that must match; "" if there is nothing to search for."""

    words: str
    # True for a query with operators. What it excludes must not return by its meaning.
    to_the_letter: bool = False
    # Its single words, for ranking; if they were counted, the rarest first.
    each_word: Sequence[str] = ()
    # Set if texts without any of the words match as well: the tsquery of the texts that do not
    # match. The matches are then counted by subtraction, since no index finds texts that lack a
    # word.
    all_but: str | None = None
    # All words of the query, including those that no text has.
    every_word: Sequence[str] = ()
    # Lexemes by the stem that Python makes of their word, where it is another one: of "emergency",
    # Postgres 16 makes "emerg", and newer stemmers make "emergenc".
    by_stem: Mapping[str, str] = field(default_factory=dict)

    @property
    def excludes(self) -> bool:
        return self.to_the_letter and "!" in _LEXEME.sub("", self.words)

    @property
    def is_open_ended(self) -> bool:
        return self.all_but is not None

    @property
    def any_word(self) -> str:
        """The tsquery of texts with at least one of the words."""
        return " | ".join(f"({word})" for word in self.each_word)


def visible_text(query: str) -> str:
    """What a query shows, with composed letters. A query that shows nothing stays as it is."""
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", query)) or query


def has_operators(text: str) -> bool:
    operators = [_QUOTED, _EXCLUDED, _EITHER]
    if len(text.split()) <= _FEW_WORDS:
        operators.append(_EITHER_IN_FEW_WORDS)
    return any(operator.search(text) for operator in operators)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query, as Postgres parses it."""

    strict: str
    open_ended: bool
    words: list[list[list[str]]]  # for each word its lexemes, those of its parts, and itself


async def understand(
    session: Session,
    text: str,
    *,
    counting: str = "count_words_of_chunks",
    uncounted: int = 2,
    literally: bool = True,
    alone: int = 0,
    **parameters: Any,
) -> Asked:
    """`counting`: the named query that counts words, with its parameters; up to `uncounted` words
    are not counted. Not `literally`: read as a sentence, whatever operators it has. In a short
    sentence, a word that at most `alone` texts have is enough alone."""
    # Postgres would take a hyphen between words for an exclusion.
    text = _LOOSE_HYPHEN.sub(" ", text)
    parsed = await session.only(
        ParsedQuery, "parse_query", query=text, words=list(dict.fromkeys(text.split()))
    )
    each_word = list(dict.fromkeys(_word(whole, parts) for whole, parts, _ in parsed.words))
    by_stem = _by_stem(parsed)
    strict = parsed.strict
    if literally and strict and has_operators(text):
        all_but = _all_but(strict) if parsed.open_ended else None
        return Asked(strict, True, each_word[:_RANKED_WORDS], all_but, each_word, by_stem)
    if len(each_word) <= uncounted:
        any_word = " | ".join(each_word)
        return Asked(any_word, each_word=each_word, every_word=each_word, by_stem=by_stem)
    rows = await session.rows(WordCount, counting, words=each_word, **parameters)
    rarest = sorted((row for row in rows if row.found), key=lambda row: row.found)
    ranked = [row.word for row in rarest[:_RANKED_WORDS]]
    telling = _telling(rarest)
    short = len(each_word) <= _MOST_WORDS
    rare = [row.word for row in rarest if short and row.found <= alone]
    words = " | ".join(filter(None, [*(f"({word})" for word in rare), two_of(telling)]))
    return Asked(words, each_word=ranked, every_word=each_word, by_stem=by_stem)


def _by_stem(parsed: ParsedQuery) -> dict[str, str]:
    by_stem: dict[str, str] = {}
    for whole, _, [typed] in parsed.words:
        letters = _LETTERS.findall(typed.lower())
        if len(whole) == len(letters) == 1:
            by_stem[stem(letters[0])] = whole[0]
    return {ours: lexeme for ours, lexeme in by_stem.items() if ours != lexeme}


def _word(whole: list[str], parts: list[str]) -> str:
    """One word as typed, or its parts: "follow-up" also matches "follow up"."""
    readings = [parts] if parts and set(parts) <= set(whole) else [whole, parts]
    return " | ".join(" & ".join(map(quoted, lexemes)) for lexemes in readings if lexemes)


def _telling(rarest: list[WordCount]) -> list[str]:
    kept: list[str] = []
    looked_at = 0.0
    for row in rarest[:_MOST_WORDS]:
        looked_at += row.found
        if len(kept) >= 2 and looked_at > _MOST_LOOKED_AT:
            break
        kept.append(row.word)
    return kept


def two_of(words: Sequence[str]) -> str:
    """A tsquery for any two of the words. Two numbers differ in some binary digit: for each digit,
    one word whose number has it and one whose number does not."""
    pairs = []
    for digit in range((max(len(words), 1) - 1).bit_length()):
        sides: tuple[list[str], list[str]] = ([], [])
        for number, word in enumerate(words):
            sides[number >> digit & 1].append(f"({word})")
        pairs.append(" & ".join(f"({' | '.join(side)})" for side in sides))
    return " | ".join(f"({pair})" for pair in pairs)


def _all_but(strict: str) -> str:
    """A text that does not match has at least one of the words."""
    return f"({' | '.join(_LEXEME.findall(strict))}) & !({strict})"
