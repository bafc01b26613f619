"""What people type: which of it is an operator."""

import pytest

from memory_core.events.typed import has_operators


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
    ],
)
def test_sentences(text: str) -> None:
    assert not has_operators(text)
