"""Words of documents on a terminal: harmless, whole, and each quote in its sentence."""

import json
from collections.abc import Callable

import pytest

from mcp_server.cli.safe_text import as_json, joined, sentence_around, shown
from memory_core.text.printable import single_line, visible

HOSTILE = "a\x1b[31mred\x1b]0;title\x07 \x9b2Jb\u202ec\u200bd"


@pytest.mark.parametrize("clean", [shown, joined, visible, lambda text: single_line(text, 100)])
def test_nothing_that_a_terminal_obeys_is_left(clean: Callable[[str], str]) -> None:
    assert not any(mark in clean(HOSTILE) for mark in "\x1b\x07\x9b\u202e\u200b")


def test_markup_of_a_document_is_its_text() -> None:
    assert shown("[red]x[/red]\n  y") == "\\[red]x\\[/red] y"


def test_spaces_at_the_joints_stay() -> None:
    assert joined("said \n\t ") + joined("yes") + joined(" to it") == "said yes to it"


def test_json_is_the_same_for_who_parses_it() -> None:
    text = as_json({"quote": HOSTILE})

    assert json.loads(text) == {"quote": HOSTILE}
    assert not any(mark in text for mark in "\x1b\x9b\u202e")


@pytest.mark.parametrize(
    ("before", "quote", "after", "shown_before", "shown_after"),
    [
        ("It rained. Alice said ", "we charge", " from May on. Then", "Alice said ",
         " from May on."),
        ("It rained.\n\n", "We charge.", " Then they left.", "", ""),
        ("cut off here ", "we charge", " and so on", "… cut off here ", " and so on …"),
        ("", "We charge", "!", "", "!"),
        ('He said "no." She said ', "we charge", '."\nBye.', "She said ", '."'),
    ],
)  # fmt: skip
def test_a_quote_in_its_sentence(
    before: str, quote: str, after: str, shown_before: str, shown_after: str
) -> None:
    assert sentence_around(before, quote, after) == (shown_before, shown_after)
