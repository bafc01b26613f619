"""What an alignment must be, wherever a test makes one."""

import random
import string

from memory_core.extraction.alignment import (
    Alignment,
    Rejection,
    RejectionReason,
    SourceText,
)


def located(text: str, quote: str, **ties: tuple[int, int]) -> Alignment:
    span = SourceText(text).locate(quote, **ties)
    assert isinstance(span, Alignment), span
    assert text[span.start_char : span.end_char] == span.quote
    return span


def rejected(text: str, quote: str) -> RejectionReason:
    span = SourceText(text).locate(quote)
    assert isinstance(span, Rejection), span
    assert span.detail
    return span.reason


SPELLINGS = (
    string.ascii_lowercase,
    "абвгдежзиклмнопрст",
    "äöüßéèñçøåœ",
    "अआइईउकखगचजट",
    "אבגדהוזחט",
)


def salad(rng: random.Random, count: int) -> list[str]:
    """Made-up words of several scripts; none is a number, a negation or twice the same."""
    words: dict[str, None] = {}
    while len(words) < count:
        letters = rng.choices(SPELLINGS, weights=[8, 2, 2, 1, 1])[0]
        words["".join(rng.choices(letters, k=rng.randint(4, 9)))] = None
    return list(words)
