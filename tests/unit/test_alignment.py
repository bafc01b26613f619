"""A quote is stored only where it stands: the right span, the right kind, or a reason why not."""

import random
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.extraction.alignment import (
    MAX_QUOTE_CHARS,
    Alignment,
    MatchKind,
    Rejection,
    RejectionReason,
    SourceText,
    shorten,
)
from memory_core.extraction.alignment.index import WordIndex
from memory_core.extraction.alignment.words import find_words, fold_words, word_pattern
from memory_core.extraction.model import MAX_QUOTE_WORDS
from tests.alignments import located, rejected, salad

MINUTES = (
    "# Minutes\n\n"
    "On Monday, **Alice** will deliver the “billing” report to Bob by\n"
    '  Friday — not later. He said: "We\'ll pay $10,000 for it."\n\n'
    "The commitment was accepted, I think... Then they left for lunch."
)


# --- what counts as the same ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quote", "stored", "kind"),
    [
        # The source's very characters, markers and all.
        ("**Alice** will deliver", "**Alice** will deliver", MatchKind.EXACT),
        # Markdown dropped.
        ("Alice will deliver", "Alice** will deliver", MatchKind.NORMALISED),
        # Typographic marks, a dash, a line break; the full stop comes along.
        (
            'the "billing" report to bob by friday - not later.',
            "the “billing” report to Bob by\n  Friday — not later.",
            MatchKind.NORMALISED,
        ),
        # The source's quotation marks are kept when the model quotes them.
        ("“We'll pay $10,000 for it.”", '"We\'ll pay $10,000 for it."', MatchKind.NORMALISED),
        # A pair the source does not have is the model's own.
        ('"the commitment was accepted"', "The commitment was accepted", MatchKind.NORMALISED),
        # Another mark at the end than the source's.
        ("the commitment was accepted!", "The commitment was accepted", MatchKind.NORMALISED),
        # A heading, quoted with its marker but in capitals.
        ("# MINUTES", "# Minutes", MatchKind.NORMALISED),
        # An ellipsis at the end leaves nothing out in between.
        ("On Monday...", "On Monday", MatchKind.NORMALISED),
        # An ellipsis that stands in the source.
        ("accepted, I think… Then they", "accepted, I think... Then they", MatchKind.NORMALISED),
        # A quote that breaks off inside a word is completed.
        ("The commitment was acc", "The commitment was accepted", MatchKind.NORMALISED),
        # Words left out.
        ("On Monday … deliver the billing", None, MatchKind.ELLIPSIS),
        # One word put differently, in the middle and at the end.
        ("Alice will ship the billing report", None, MatchKind.FUZZY),
        (
            "The commitment was accepted I believe",
            "The commitment was accepted, I think",
            MatchKind.FUZZY,
        ),
        # A word before the sentence is not taken for the last of the sentence before.
        ("So then they left for lunch.", "Then they left for lunch.", MatchKind.FUZZY),
    ],
)
def test_the_sources_own_text_is_stored(quote: str, stored: str | None, kind: MatchKind) -> None:
    span = located(MINUTES, quote)

    assert span.kind is kind
    if stored is not None:
        assert span.quote == stored


@pytest.mark.parametrize(
    ("quote", "reason"),
    [
        # Nothing, or nothing but marks.
        ("", RejectionReason.EMPTY),
        (" \n\t", RejectionReason.EMPTY),
        ("...", RejectionReason.EMPTY),
        ("“ ”", RejectionReason.EMPTY),
        ("\u200b\u00ad", RejectionReason.EMPTY),
        # Tiny, and only part of a word.
        ("Th", RejectionReason.INSIDE_WORD),
        ("ommitmen", RejectionReason.INSIDE_WORD),
        # Four words allow no edit.
        ("they left for dinner", RejectionReason.TOO_SHORT),
        # Invented.
        ("The moon is made of green cheese", RejectionReason.NOT_FOUND),
        # A number cut short, changed, added; a negation added, dropped.
        ("We'll pay $10", RejectionReason.MEANING_CHANGED),
        ("He said: We'll pay $12,000 for it", RejectionReason.MEANING_CHANGED),
        ("Alice will deliver the two billing reports", RejectionReason.NOT_FOUND),
        ("Alice will deliver the second billing report", RejectionReason.MEANING_CHANGED),
        ("Alice will not deliver the billing report", RejectionReason.MEANING_CHANGED),
        ("to Bob by Friday later. He said", RejectionReason.MEANING_CHANGED),
        # Fragments in the wrong order, one missing, too few words to tell.
        ("for lunch … Alice will deliver", RejectionReason.FRAGMENTS_OUT_OF_ORDER),
        ("Alice will deliver … the moon", RejectionReason.FRAGMENT_NOT_FOUND),
        ("the … was … for", RejectionReason.TOO_SHORT),
        ("a … b … c … d … e … f … g", RejectionReason.TOO_MANY_FRAGMENTS),
    ],
)
def test_anything_else_is_rejected_with_a_reason(quote: str, reason: RejectionReason) -> None:
    assert rejected(MINUTES, quote) is reason


def test_fragments_must_stand_near_each_other() -> None:
    text = f"We decided on Monday {'to think about it again ' * 40}that the price stays."

    reason = rejected(text, "We decided on Monday … the price stays")

    assert reason is RejectionReason.FRAGMENTS_TOO_FAR


def test_the_shortest_stretch_that_holds_the_fragments_is_taken() -> None:
    text = "We will see about that. We will deliver the report by Friday."

    span = located(text, "We will … report by Friday")

    assert span.quote == "We will deliver the report by Friday"


def test_a_long_ellipsis_span_is_cut_to_25_words() -> None:
    gap = " ".join(f"filler{letter}" for letter in string.ascii_lowercase[:20])
    text = f"We decided today that {gap} prices will stay the same."

    span = located(text, "We decided today … prices will stay the same")

    assert span.kind is MatchKind.ELLIPSIS
    assert len(span.quote.split()) == MAX_QUOTE_WORDS


def test_one_changed_word_may_be_a_compound() -> None:
    text = "A binary file is created in the **acme-staging-artefact** bucket every night."

    assert located(text, "A binary file is created in the bucket every night.").quote == text
    assert located(text, "A binary file is created in the main bucket every night.").quote == text


def test_a_short_quote_prefers_a_whole_word() -> None:
    assert located("the other thing he did", "he").start_char == 16


# --- Unicode --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "quote", "stored"),
    [
        pytest.param("The ofﬁce opens", "the office opens", "The ofﬁce opens", id="ligature"),
        pytest.param("take ½ of it", "Take 1/2 of it", "take ½ of it", id="fraction"),
        pytest.param("by Acme™ now", "BY ACMETM", "by Acme™", id="trade-mark-at-the-end"),
        pytest.param("in der Straße dort", "DER STRASSE", "der Straße", id="sharp-s"),
        pytest.param("in İstanbul today", "in istanbul", "in İstanbul", id="dotted-capital-i"),
        pytest.param("ΟΔΟΣ είναι", "οδος ΕΊΝΑΙ", "ΟΔΟΣ είναι", id="final-sigma"),
        pytest.param("un cafe\u0301 noir", "un café", "un cafe\u0301", id="decomposed-source"),
        pytest.param("un café noir", "Un cafe\u0301", "un café", id="decomposed-quote"),
        pytest.param("ﻣﺮﺣﺒﺎ يا صديق", "مرحبا يا", "ﻣﺮﺣﺒﺎ يا", id="arabic-presentation-forms"),
        pytest.param("שלום, עולם טוב", "שלום עולם", "שלום, עולם", id="right-to-left"),
        pytest.param(
            "a \u202bbidi\u202c word", "A bidi word", "a \u202bbidi\u202c word", id="bidi"
        ),
        pytest.param(
            "co\u00adoperate now", "Cooperate now", "co\u00adoperate now", id="soft-hyphen"
        ),
        pytest.param("yes 👍🏽 done", "YES 👍🏽 done", "yes 👍🏽 done", id="emoji-with-skin-tone"),
        pytest.param("Great job👍👍", "great job👍", "Great job👍", id="emoji-after-a-word"),
        pytest.param("👨‍👩‍👧 came home", "👨‍👩‍👧 Came", "👨‍👩‍👧 came", id="joined-emoji"),
        pytest.param("❤️ it", "❤ IT", "❤️ it", id="variation-selector"),
        pytest.param("one\r\ntwo\r\nthree", "One two", "one\r\ntwo", id="crlf"),
        pytest.param("nul\0here it is", "Nul here", "nul\0here", id="nul"),
        pytest.param("我们决定使用它。好", "决定使用", "决定使用", id="han-inside-a-run"),
        pytest.param("共５００円です", "500円", "５００円", id="full-width-digits"),
        pytest.param("नमस्ते दुनिया वाह", "नमस्ते दुनिया", "नमस्ते दुनिया", id="devanagari"),
        pytest.param(
            "\U0001d400\U0001d401 math", "AB math", "\U0001d400\U0001d401 math", id="astral"
        ),
        pytest.param("lone \ud800 half", "Lone \ud800 half", "lone \ud800 half", id="surrogate"),
    ],
)
def test_unicode_is_matched_by_whole_characters(text: str, quote: str, stored: str) -> None:
    assert located(text, quote).quote == stored


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        pytest.param("un cafe\u0301", "cafe", id="base-without-its-mark"),
        pytest.param("नमस्ते", "नमस", id="inside-a-syllable"),
        pytest.param("the ofﬁce", "of", id="before-a-ligature"),
        pytest.param("👨‍👩‍👧", "👨", id="part-of-a-joined-emoji"),
        pytest.param("in 10,000 years", "10", id="part-of-a-number"),
    ],
)
def test_no_character_or_word_is_parted(text: str, quote: str) -> None:
    assert rejected(text, quote) is RejectionReason.INSIDE_WORD


def test_scripts_without_spaces_allow_an_edit_only_in_longer_quotes() -> None:
    text = "会议上我们决定从下个月开始使用新的系统来管理文件。"

    assert located(text, "我们决定从下个月起始使用新的系统").kind is MatchKind.FUZZY
    assert rejected(text, "我们确定从下") is RejectionReason.TOO_SHORT
    assert rejected(text, "我们不决定从下个月开始使用") is RejectionReason.MEANING_CHANGED


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=string.printable, max_size=200))
def test_ascii_words_are_found_the_same_way_by_both_patterns(text: str) -> None:
    assert find_words(text, 0, len(text)) == word_pattern().findall(text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.integers(1, 300))
def test_every_word_of_the_index_leads_back_to_its_source(piece: str, times: int) -> None:
    text = piece * times
    index = WordIndex(text)
    words = list(re.finditer(r"[^ ]+", index.folded))
    for word in words[:: 1 + len(words) // 50]:
        start, end = index.source_span(*word.span())
        assert fold_words([text[start:end]]) == word.group()
        assert index.folded_position(start) == word.start()


# --- ties -----------------------------------------------------------------------------------------

THRICE = "We agreed to wait here. Yes. We agreed to wait here. No. We agreed to wait here."
PLACES = [match.start() for match in re.finditer("We agreed", THRICE)]
LAST = len(THRICE)


@pytest.mark.parametrize(
    "quote",
    ["We agreed to wait here", "WE AGREED TO WAIT HERE", "We agreed … wait here."],
    ids=["exact", "normalised", "ellipsis"],
)
@pytest.mark.parametrize(
    ("bounds", "hint", "place"),
    [
        # Nothing known: the first.
        (None, None, 0),
        # The only one inside the bounds.
        ((25, 54), None, 1),
        # Bounds go before the hint.
        ((25, 54), (PLACES[2], LAST), 1),
        # The nearest to the hint, before or after it.
        (None, (PLACES[1] - 3, 30), 1),
        (None, (PLACES[1] + 3, 30), 1),
        (None, (LAST, LAST), 2),
        # A hint between two that are both inside the bounds.
        ((25, LAST), (PLACES[2] - 1, LAST), 2),
        # Nothing inside the bounds: the bounds say nothing.
        ((24, 27), (PLACES[2], LAST), 2),
        # Nonsense does no harm.
        ((-50, 10**9), (10**9, -1), 2),
        ((40, 10), (-7, -7), 0),
    ],
)
def test_ties_are_broken_by_bounds_then_hint_then_order(
    quote: str, bounds: tuple[int, int] | None, hint: tuple[int, int] | None, place: int
) -> None:
    span = SourceText(THRICE).locate(quote, bounds=bounds, hint=hint)

    assert isinstance(span, Alignment)
    assert span.start_char == PLACES[place]


def test_ties_between_edited_occurrences_are_broken_alike() -> None:
    text = "They agreed to wait for Alice. Yes. They agreed to wait for Alice. No."
    second = text.rindex("They")

    assert located(text, "They decided to wait for Alice").start_char == 0
    assert located(text, "They decided to wait for Alice", hint=(40, 60)).start_char == second
    assert located(text, "They decided to wait for Alice", bounds=(33, 68)).start_char == second


def test_a_better_match_outside_the_bounds_wins_over_a_worse_one_inside() -> None:
    text = "alice will do it. Alice will do it."

    assert located(text, "Alice will do it", bounds=(0, 17)).start_char == 18


# --- whatever the input ---------------------------------------------------------------------------

NASTY = st.sampled_from(
    ["…", "...", "[...]", "“", '"', "'", "**", "\u0301", "\u200d", "\u00ad", "ﷺ", "ﬁ", "½", "İ",
     "ß", "👍🏽", "👨‍👩‍👧", "我", "ไทย", "\0", "\r\n", "\u2028", "-5", "1.5", "don't", "not"]
)  # fmt: skip
MIXED_TEXT = st.lists(
    st.one_of(NASTY, st.text(max_size=4), st.sampled_from([" ", " ", "word ", "the "])),
    max_size=60,
).map("".join)


def assert_sound(text: str, found: Alignment | Rejection) -> None:
    if isinstance(found, Rejection):
        return
    assert 0 <= found.start_char < found.end_char <= len(text)
    assert text[found.start_char : found.end_char] == found.quote
    assert found.quote == found.quote.strip()
    assert 1 <= len(found.quote.split()) <= MAX_QUOTE_WORDS
    assert len(found.quote) <= MAX_QUOTE_CHARS


@settings(max_examples=300, deadline=None)
@given(text=MIXED_TEXT, quote=MIXED_TEXT, hint=st.integers(-5, 300), low=st.integers(-5, 300))
def test_any_quote_in_any_text_gives_a_sound_span_or_a_reason(
    text: str, quote: str, hint: int, low: int
) -> None:
    source = SourceText(text)
    assert_sound(text, source.locate(quote))
    assert_sound(text, source.locate(quote, bounds=(low, low + 40), hint=(hint, hint + 3)))


@settings(max_examples=300, deadline=None)
@given(text=MIXED_TEXT, data=st.data())
def test_a_part_of_the_text_is_never_aligned_elsewhere_than_an_equal_part(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    part = text[start:end].strip()

    span = SourceText(text).locate(text[start:end], hint=(start, end))

    assert_sound(text, span)
    if isinstance(span, Alignment) and span.kind is MatchKind.EXACT:
        assert span.quote in part
    if isinstance(span, Rejection):
        # Only what is no whole word, or no word at all, is refused.
        assert span.reason in {
            RejectionReason.EMPTY,
            RejectionReason.INSIDE_WORD,
            RejectionReason.MEANING_CHANGED,
        }


LONG = 20_000
MONOTONOUS = ["a " * LONG, "a" * LONG, "word " * LONG, "我们" * LONG, "a'" * LONG, "-" * LONG]


@pytest.mark.parametrize("text", MONOTONOUS, ids=lambda text: text[:5])
@pytest.mark.parametrize(
    "quote",
    [
        pytest.param("a " * 10_000, id="ten-thousand-words"),
        pytest.param("a " * 30 + "b", id="repeated-word"),
        pytest.param("a…" * 5_000, id="ellipsis-bomb"),
        pytest.param("a a … a a … a b", id="ellipsis-among-equals"),
        pytest.param("word word word words word word", id="edit-among-equals"),
        pytest.param("b" + "a" * LONG, id="naive-search-worst-case"),
        pytest.param('"' * LONG + "a" + '"' * LONG, id="quotation-marks"),
    ],
)
def test_adversarial_quotes_end_soundly(text: str, quote: str) -> None:
    source = SourceText(text)
    assert_sound(text, source.locate(quote))
    assert_sound(text, source.locate(quote, bounds=(5_000, 6_000), hint=(5_500, 5_600)))


# --- shorten --------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(text=MIXED_TEXT, data=st.data(), max_words=st.integers(1, 30))
def test_shorten_keeps_a_part_within_its_limits(
    text: str, data: st.DataObject, max_words: int
) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))

    first, last = shorten(text, start, end, max_words=max_words)

    kept, words = text[first:last], text[start:end].split()
    assert start <= first <= last <= end
    assert len(kept.split()) == min(len(words), max_words) or len(text[start:end]) > MAX_QUOTE_CHARS
    assert kept == kept.strip()
    assert shorten(text, start, end, max_words=max_words) == (first, last)
    assert shorten(text, first, last, max_words=max_words) == (first, last)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("abcdefg", min_size=1, max_size=9), min_size=26, max_size=80))
def test_shorten_begins_and_ends_at_words(words: list[str]) -> None:
    text = " ".join(words)
    start, end = shorten(text, 0, len(text))
    kept = text[start:end].split()
    assert any(words[i : i + 25] == kept for i in range(len(words)))


def test_shorten_keeps_what_tells_most() -> None:
    filler = "and so it was that they were there and then it was as it had been before "
    telling = "On 12 May 2024 Alice Johnson promised Contoso to migrate 300 servers by October."
    text = filler * 3 + telling + " " + filler * 3

    start, end = shorten(text, 0, len(text))

    assert telling in text[start:end]


def test_shorten_prefers_to_begin_with_a_sentence() -> None:
    sentence = " ".join(["Wordy"] + ["wordy"] * 24) + ". "
    text = "wordy wordy wordy wordy. " + sentence + "wordy wordy wordy."

    start, end = shorten(text, 0, len(text))

    assert text[start:end] == sentence.strip()


def test_shorten_bounds_text_without_blanks_and_parts_no_character() -> None:
    text = "我\u0301" * 1_000

    start, end = shorten(text, 0, len(text))

    assert 0 < end - start <= MAX_QUOTE_CHARS
    assert text[end] == "我"


def test_shorten_needs_room_for_a_word() -> None:
    with pytest.raises(ValueError, match="max_words"):
        shorten("one two", 0, 7, max_words=0)


def test_a_long_exact_quote_is_stored_shortened() -> None:
    rng = random.Random(7)
    words = salad(rng, 200)
    span = located(" ".join(words), " ".join(words[20:120]))

    assert span.kind is MatchKind.EXACT
    assert span.quote in " ".join(words[20:120])
    assert len(span.quote.split()) == MAX_QUOTE_WORDS
