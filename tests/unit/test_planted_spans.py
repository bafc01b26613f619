"""The planted-span oracle: a quote that was planted in a random text is found where it stands."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.extraction.alignment import (
    MatchKind,
    RejectionReason,
)
from tests.alignments import located, rejected, salad


def exact(words: list[str], rng: random.Random) -> str:
    return " ".join(words)


def whitespace(words: list[str], rng: random.Random) -> str:
    blanks = ["  ", "\n", "\r\n", "\t", "\u00a0", " \u2028"]
    return "".join(word + rng.choice(blanks) for word in words)


def upper_case(words: list[str], rng: random.Random) -> str:
    return " ".join(words).upper() + "!"


def wrapped(words: list[str], rng: random.Random) -> str:
    opening, closing = rng.choice(['""', "''", "“”", "«»", "‘’", "„“"])
    return f"{opening}{' '.join(words)}{closing}"


def invisible(words: list[str], rng: random.Random) -> str:
    marks = ["\u00ad", "\u200b", "\u2060", "\ufeff"]
    return " ".join(word[:2] + rng.choice(marks) + word[2:] for word in words)


def emphasis(words: list[str], rng: random.Random) -> str:
    place = rng.randrange(len(words))
    return " ".join(f"**{word}**" if i == place else word for i, word in enumerate(words))


def ellipsis(words: list[str], rng: random.Random) -> str:
    left = rng.randint(2, len(words) - 3)
    right = rng.randint(left + 1, len(words) - 2)
    mark = rng.choice(["...", "…", "[...]", "[…]", "(...)"])
    return f"{' '.join(words[:left])} {mark} {' '.join(words[right:])}"


def substituted(words: list[str], rng: random.Random) -> str:
    place = rng.randrange(len(words))
    return " ".join([*words[:place], "paraphrase", *words[place + 1 :]])


def added(words: list[str], rng: random.Random) -> str:
    place = rng.randint(1, len(words) - 1)
    return " ".join([*words[:place], "addition", *words[place:]])


def missing(words: list[str], rng: random.Random) -> str:
    place = rng.randint(1, len(words) - 2)
    return " ".join([*words[:place], *words[place + 1 :]])


@pytest.mark.parametrize(
    ("noise", "kind"),
    [
        (exact, MatchKind.EXACT),
        (whitespace, MatchKind.NORMALISED),
        (upper_case, MatchKind.NORMALISED),
        (wrapped, MatchKind.NORMALISED),
        (invisible, MatchKind.NORMALISED),
        (emphasis, MatchKind.NORMALISED),
        (ellipsis, MatchKind.ELLIPSIS),
        (substituted, MatchKind.FUZZY),
        (added, MatchKind.FUZZY),
        (missing, MatchKind.FUZZY),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), long_text=st.booleans())
def test_planted_span_is_found_where_it_was_planted(
    noise: Callable[[list[str], random.Random], str], kind: MatchKind, seed: int, long_text: bool
) -> None:
    rng = random.Random(seed)
    words = salad(rng, 900 if long_text else 60)
    first = rng.randint(0, len(words) - 25)
    planted = words[first : first + rng.randint(6, 24)]
    blanks = [rng.choice([" ", " ", "\n", "\r\n  "]) for _ in words]
    before = "".join(w + b for w, b in zip(words[:first], blanks, strict=False))
    after = " ".join(words[first + len(planted) :])
    text = f"{before}{' '.join(planted)} {after}"

    span = located(text, noise(planted, rng))

    assert (span.start_char, span.quote) == (len(before), " ".join(planted))
    assert span.kind is kind


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), changes=st.integers(2, 6))
def test_a_quote_with_more_than_one_word_changed_is_rejected(seed: int, changes: int) -> None:
    rng = random.Random(seed)
    words = salad(rng, 80)
    quote = words[30:42]
    # With words in between that stand; two neighbours might be read as one changed compound.
    for place in rng.sample(range(0, 12, 2), changes):
        quote[place] = f"invented{'abcdefghijkl'[place]}"

    assert rejected(" ".join(words), " ".join(quote)) is RejectionReason.NOT_FOUND


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_two_half_sentences_spliced_are_rejected(seed: int) -> None:
    rng = random.Random(seed)
    words = salad(rng, 120)
    sentences = [words[start : start + 12] for start in range(0, 120, 12)]
    first, second = rng.sample(range(10), 2)
    splice = sentences[first][:6] + sentences[second][6:]
    text = " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)

    assert rejected(text, " ".join(splice)) is RejectionReason.NOT_FOUND
