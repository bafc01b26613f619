"""Units and windows of a text: they cover it, and the best window is where the words are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.search.windows import WINDOW_CHARS, Highlighter, Window
from memory_core.text.turns import turn_starts
from memory_core.text.units import UNIT_CHARS, units

WEIGHTS = {"otter": 3.0, "river": 2.0, "budget": 4.0}
FILLER = "Nothing of interest was said in this sentence at all. "


def best(text: str, *lexemes: str) -> tuple[str, Window]:
    highlighter = Highlighter(lexemes, {lexeme: WEIGHTS[lexeme] for lexeme in lexemes})
    window = max(highlighter.windows(text), key=lambda item: item.words + item.pairs)
    return text[window.start : window.end], window


@given(st.text(alphabet=st.sampled_from("ab .!?\n\t王。"), max_size=3_000))
def test_units_cover_a_text_without_gaps_and_stay_short(text: str) -> None:
    spans = units(text)

    assert "".join(text[start:end] for start, end in spans) == text
    assert all(0 < end - start <= 2 * UNIT_CHARS for start, end in spans)


@given(st.lists(st.sampled_from(["User: ", "a b. ", "word ", "\n", "王。", "x" * 90]), max_size=80))
def test_units_cover_a_chat_without_gaps_and_stay_short(parts: list[str]) -> None:
    text = "".join(parts)
    spans = units(text, turn_starts(text))

    assert "".join(text[start:end] for start, end in spans) == text
    assert all(0 < end - start <= 2 * UNIT_CHARS for start, end in spans)


def test_a_unit_ends_where_a_message_ends() -> None:
    messages = [f"Ann: message {number} of the chat.\n" for number in range(40)]

    edges = {end for _, end in units("".join(messages))}

    ends, place = set(), 0
    for message in messages:
        place += len(message)
        ends.add(place)
    assert edges <= ends


def test_the_best_window_has_the_words_and_about_its_length() -> None:
    text = FILLER * 40 + "The otters left the river because of the budget. " + FILLER * 40

    shown, _ = best(text, "otter", "river", "budget")

    assert "The otters left the river because of the budget." in shown
    assert len(shown) <= WINDOW_CHARS


@given(st.integers(0, 60), st.integers(0, 60))
def test_a_planted_sentence_is_found_wherever_it_stands(before: int, after: int) -> None:
    planted = "The otter budget was cut."
    text = FILLER * before + planted + " " + FILLER * after

    shown, _ = best(text, "otter", "budget")

    assert planted in shown


@pytest.mark.parametrize(
    "word",
    [
        *("otter", "Otters", "OTTER'S", "otters,", "river-otters", "otter/beaver"),
        *("_otter_", "river_otters", "otter_count", "从Otter到", "我们的otters。"),
    ],
)
def test_a_word_is_recognised_in_its_forms(word: str) -> None:
    _, window = best(f"We saw {word} there.", "otter")

    assert window.words > 0


@pytest.mark.parametrize("word", ["हिन्दी", "கூட்டம்", "নিয়েছি", "cafe\u0301", "ko\u0308ster"])
def test_a_word_is_recognised_with_its_marks(word: str) -> None:
    highlighter = Highlighter([word], {word: 1.0})

    assert max(window.words for window in highlighter.windows(f"{FILLER}{word}, {FILLER}")) > 0


@pytest.mark.parametrize("word", ["other", "ottoman", "potter", ""])
def test_other_words_are_not(word: str) -> None:
    _, window = best(f"We saw {word} there.", "otter")

    assert window.words == 0


def test_capitals_that_become_two_small_letters_do_not_move_offsets() -> None:
    text = FILLER * 20 + "İİİİ İSTANBUL: The OTTER crossed the river.\n" + FILLER * 20

    shown, window = best(text, "otter", "river")

    assert "The OTTER crossed the river." in shown
    assert window.words > 0


def test_neighbours_of_the_query_that_are_neighbours_in_the_text_count_more() -> None:
    _, together = best("The otter budget is fine and the river is far.", "otter", "budget")
    _, apart = best("The otter is fine and the river is far from any budget.", "otter", "budget")

    assert together.pairs > apart.pairs == 0


def test_a_text_without_any_of_the_words_shows_its_beginning() -> None:
    shown, window = best(FILLER * 40, "otter")

    assert (FILLER * 40).startswith(shown)
    assert (window.start, window.words) == (0, 0.0)


def test_an_empty_text_has_no_window() -> None:
    assert Highlighter(["otter"], {"otter": 1.0}).windows("") == []


def test_a_related_word_counts_less_than_the_word_and_only_where_that_is_missing() -> None:
    related = {"price": {"cost": 0.6}}
    plain = Highlighter(["price"], {"price": 2.0})
    highlighter = Highlighter(["price"], {"price": 2.0}, related=related)

    def score(text: str) -> float:
        return max(window.words for window in highlighter.windows(text))

    assert 0 < score("What it will cost is open.") < score("The price is open.")
    both = "The price is what it costs."
    assert score(both) == max(window.words for window in plain.windows(both))


def test_related_words_say_what_they_add_to_the_whole_text() -> None:
    related = {"price": {"cost": 0.6}}
    highlighter = Highlighter(["price"], {"price": 2.0}, related=related)

    assert highlighter.read("It will cost more.").related > 0
    assert highlighter.read("It will cost more than the price.").related == 0


CHAT = [
    "User: We have moved the otter to the river house.\nIt was about time, I think.\n\n",
    "Assistant: " + "An otter needs space. " * 60 + "\n\n",
    "user: ok\n",
    "assistant: Gladly. " + "A budget for the otter is a good idea. " * 20 + "\n",
]


def test_turns_begin_with_a_speaker_or_a_role() -> None:
    text = "".join([*CHAT, "## Assistant\nYes.\n", "[10:30] Ann Lee: No.\n", "Not so: this.\n"])

    starts = turn_starts(text)

    assert [text[start:].split()[0] for start in starts] == [
        "User:", "Assistant:", "user:", "assistant:", "##", "[10:30]",
    ]  # fmt: skip


def test_a_unit_begins_where_a_turn_begins_unless_the_turn_before_is_tiny() -> None:
    text = "".join(CHAT)

    starts = {start for start, _ in units(text, turn_starts(text))}

    assert {0, len(CHAT[0]), len(CHAT[0] + CHAT[1])} <= starts
    assert len("".join(CHAT[:3])) not in starts


def test_a_short_turn_competes_alone_with_the_long_ones_around_it() -> None:
    weights = {"otter": 3.0, "river": 2.0}
    text = "".join(CHAT)

    windows = Highlighter(list(weights), weights, by_turns=True).windows(text)

    alone = next(window for window in windows if (window.start, window.end) == (0, len(CHAT[0])))
    assert all(alone.words > window.words for window in windows if window.start >= alone.end)
    assert (0, len(CHAT[0])) not in {
        (window.start, window.end) for window in Highlighter(list(weights), weights).windows(text)
    }
