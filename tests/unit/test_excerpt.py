"""The part of a passage that answers a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.text.excerpt import excerpt

FILLER = "Nothing of interest happened on that day. " * 20


def test_a_short_passage_is_shown_whole_on_one_line() -> None:
    assert excerpt("One.\n\n  Two.", "anything", 100) == "One. Two."


@pytest.mark.parametrize("question", ["why did we drop SMS codes?", "dropping an SMS code"])
def test_the_sentence_with_most_words_of_the_question_comes_first(question: str) -> None:
    answer = "SMS codes were dropped because they arrive late."
    text = f"{FILLER}Codes are fine. {FILLER}{answer} {FILLER}"

    assert excerpt(text, question, 120).startswith(f"… {answer}")


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("设备发生了爆炸事故。", "爆炸事故"),
        ("来月の会議は東京都庁です。", "東京の会議"),
        ("หมาของเราชื่อแดง", "หมา"),
    ],
)
def test_without_spaces_between_words_the_sentence_with_the_characters_is_shown(
    answer: str, question: str
) -> None:
    filler = "今天没有什么有意思的事。" * 30

    assert answer in excerpt(f"{filler}{answer}{filler}", question, 60)
    assert answer in excerpt(f"{filler} {answer}{filler}", question, 60)


def test_sentences_that_share_the_words_between_them_are_kept_together() -> None:
    text = f"{FILLER}We had SMS codes. They were dropped in May. {FILLER}"

    assert "We had SMS codes. They were dropped in May." in excerpt(text, "drop SMS codes", 90)


def test_of_one_long_sentence_the_part_with_the_words_is_shown() -> None:
    text = "and so on " * 100 + "the carrier was late " + "and so forth " * 100

    assert "the carrier was late" in excerpt(text, "late carrier", 80)


@given(st.text(max_size=600), st.text(max_size=40), st.integers(20, 200))
def test_it_is_one_line_of_about_that_length_and_of_the_text_itself(
    text: str, question: str, length: int
) -> None:
    shown = excerpt(text, question, length)

    assert len(shown) <= length + 4
    assert "\n" not in shown
    bare = shown.removeprefix("… ").removesuffix(" …")
    assert bare in " ".join(text.split())
