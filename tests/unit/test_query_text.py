"""What people type: which of it is an operator, and how any two of many words are asked for."""

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.search.query_text import has_operators, two_of


@pytest.mark.parametrize(
    "text",
    [
        '"auth redesign"',
        'who said "per seat"?',
        "pricing -customers",
        "-pricing",
        'pricing -"small customers"',
        "soup OR beta",
        "soup or beta",
        "Alice OR Bob?",
        "-猫",
        "who decided OR postponed the whole programme of the year",
    ],
)
def test_operators(text: str) -> None:
    assert has_operators(text)


@pytest.mark.parametrize(
    "text",
    [
        "what did we decide about the follow-up meeting?",
        "decisions since 2026-03-15",
        "$5.00/seat",
        "beta - deadline",
        "beta -",
        "- beta",
        "beta -- deadline",
        '"unclosed',
        '""',
        '5" screens',
        "Did Alice or Bob approve the budget?",
        "or",
        "order of the orchard",
        "auth redesign — who?",
        "a & b | c",
        "who decided to postpone or cancel the fallback",
        "git commit -m message",
        "kubectl get pods -n kube-system",
        "-5 degrees",
    ],
)
def test_sentences(text: str) -> None:
    assert not has_operators(text)


def matches(tsquery: str, text: set[str]) -> bool:
    expression = re.sub(r"w\d+", lambda word: str(word[0] in text), tsquery)
    return bool(eval(expression.replace("&", " and ").replace("|", " or ")))


@given(st.integers(2, 8), st.sets(st.integers(0, 9)))
def test_any_two_of_the_words_match(many: int, present: set[int]) -> None:
    words = [f"w{number}" for number in range(many)]
    text = {f"w{number}" for number in present}

    assert matches(two_of(words), text) == (len(text & set(words)) >= 2)


@pytest.mark.parametrize("many", [2, 3, 8])
def test_asking_for_two_words_takes_fewer_than_all_pairs(many: int) -> None:
    leaves = len(re.findall(r"w\d+", two_of([f"w{number}" for number in range(many)])))

    assert leaves <= many * (many - 1).bit_length()
    assert many < 4 or leaves < 2 * len(list(combinations(range(many), 2)))


@pytest.mark.parametrize("words", [[], ["w0"]])
def test_there_are_no_two_of_fewer(words: list[str]) -> None:
    assert two_of(words) == ""
