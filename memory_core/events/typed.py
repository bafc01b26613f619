"""What people type, as Postgres is asked for it: in sentences, or with operators.

With operators ("quotes", -exclusion, OR) a query is taken to the letter. Without, it is a
sentence, of which half of the words will do.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from memory_core.database import Session

# With more words than this, two of them in common will do.
_MOST_WORDS_COMBINED = 5

_QUOTED = re.compile(r'"[^"]*\w[^"]*"')
_EXCLUDED = re.compile(r'(?<!\S)-(?=["\w])')
_EITHER = re.compile(r"(?<=\S)\s+OR\s+(?=\S)")
# In a question "or" is a word like any other.
_EITHER_OUTSIDE_QUESTIONS = re.compile(
    r"(?<=\S)\s+or\s+(?=\S)(?!.*\?\s*$)", re.IGNORECASE | re.DOTALL
)
_LOOSE_HYPHEN = re.compile(r"(?<!\S)-+(?!\S)")


@dataclass(frozen=True, slots=True)
class Asked:
    """`words`: the tsquery that an event must match; "" when there is nothing to look for."""

    words: str
    # What it excludes must not come back by its meaning.
    to_the_letter: bool = False
    # Its words one by one, for ranking.
    each_word: Sequence[str] = ()


def has_operators(text: str) -> bool:
    operators = (_QUOTED, _EXCLUDED, _EITHER, _EITHER_OUTSIDE_QUESTIONS)
    return any(operator.search(text) for operator in operators)


async def understand(session: Session, text: str) -> Asked:
    # Postgres would take a hyphen between words for an exclusion.
    text = _LOOSE_HYPHEN.sub(" ", text)
    parsed = await session.one("parse_query", query=text, typed=list(dict.fromkeys(text.split())))
    assert parsed is not None
    each_word = list(dict.fromkeys(_word(*lexemes) for lexemes in parsed["words"]))
    strict: str = parsed["strict"]
    if strict and has_operators(text):
        return Asked(strict, True, each_word)
    return Asked(_enough_of(each_word), each_word=each_word)


def _enough_of(words: list[str]) -> str:
    """A tsquery that wants half of the words: people ask in sentences."""
    wanted = (len(words) + 1) // 2 if len(words) <= _MOST_WORDS_COMBINED else 2
    bracketed = [f"({word})" for word in words]
    return " | ".join(" & ".join(some) for some in combinations(bracketed, wanted) if some)


def _word(whole: list[str], parts: list[str]) -> str:
    """One word as it was typed, or its parts: "follow-up" is also found as "follow up"."""
    readings = [parts] if parts and set(parts) <= set(whole) else [whole, parts]
    return " | ".join(" & ".join(map(_quoted, lexemes)) for lexemes in readings if lexemes)


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"
