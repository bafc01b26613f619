"""A source text, and the location of a model's quote in it."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import regex as re

from memory_core.extraction.alignment.edits import Edit, Phrase, find_edits
from memory_core.extraction.alignment.fragments import (
    FragmentFailure,
    find_fragments,
    split_fragments,
)
from memory_core.extraction.alignment.index import WordIndex
from memory_core.extraction.alignment.lexicon import burden
from memory_core.extraction.alignment.occurrence import Preference, find_preferred
from memory_core.extraction.alignment.quote_shortening import shorten
from memory_core.extraction.alignment.words import (
    UNSPACED_CHARACTER,
    edge_mark,
    fold_words,
    is_quotation_mark,
    word_pattern,
    words_in,
)

# A shorter quote that occurs only inside a word ("he" in "the") was not meant.
MIN_CUT_QUOTE_CHARS = 12
# How far to search for the ends of a word, or for the marks around it.
_MAX_WORD_CHARS = 64
_MAX_EDGE_CHARS = 16

# Only the most preferred of very many equally good edits are compared.
_MAX_WEIGHED_EDITS = 20

_SENTENCE_BREAK = re.compile(r"[.!?]\S*\s|[。！？]|\n\s*\n|\n\s*[-*+#>|]")
_MARKUP = frozenset("*_`~")


class MatchKind(StrEnum):
    """How a quote matched: from equal characters to all words but one."""

    EXACT = "exact"
    NORMALISED = "normalised"
    ELLIPSIS = "ellipsis"
    FUZZY = "fuzzy"


class RejectionReason(StrEnum):
    EMPTY = "empty"
    NOT_FOUND = "not_found"
    TOO_SHORT = "too_short"
    INSIDE_WORD = "inside_word"
    MEANING_CHANGED = "meaning_changed"
    TOO_MANY_FRAGMENTS = "too_many_fragments"
    FRAGMENT_NOT_FOUND = "fragment_not_found"
    FRAGMENTS_OUT_OF_ORDER = "fragments_out_of_order"
    FRAGMENTS_TOO_FAR = "fragments_too_far"


_FRAGMENT_REJECTIONS = {
    FragmentFailure.TOO_FEW_WORDS: RejectionReason.TOO_SHORT,
    FragmentFailure.TOO_MANY: RejectionReason.TOO_MANY_FRAGMENTS,
    FragmentFailure.MISSING: RejectionReason.FRAGMENT_NOT_FOUND,
    FragmentFailure.OUT_OF_ORDER: RejectionReason.FRAGMENTS_OUT_OF_ORDER,
    FragmentFailure.TOO_FAR: RejectionReason.FRAGMENTS_TOO_FAR,
}


@dataclass(frozen=True, slots=True)
class Alignment:
    """`quote == text[start_char:end_char]`, in code points: the source's own words."""

    start_char: int
    end_char: int
    quote: str
    kind: MatchKind


@dataclass(frozen=True, slots=True)
class Rejection:
    reason: RejectionReason
    detail: str


@dataclass(frozen=True, slots=True)
class _Quote:
    """A model's quote, parsed: its words, and the marks before and after them."""

    text: str
    spans: list[tuple[int, int]]
    folded: str

    @property
    def head(self) -> str:
        """The marks before the first word, in order of distance from it."""
        return self.text[: self.spans[0][0]][::-1]

    @property
    def tail(self) -> str:
        return self.text[self.spans[-1][1] :]


class SourceText:
    """A text in which many quotes are located. Its index is built when first needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _index(self) -> WordIndex:
        return WordIndex(self.text)

    def locate(
        self,
        quote: str,
        *,
        bounds: tuple[int, int] | None = None,
        hint: tuple[int, int] | None = None,
    ) -> Alignment | Rejection:
        """The source's own text for a quote, at most 25 words of it, or the reason why there is
        none.

        `bounds` and `hint` (a chunk's span and the model's own offsets) only decide between equally
        good occurrences: inside the bounds before outside, then nearest to the hint, then the
        first.
        """
        wanted = _take_apart(quote)
        if wanted is None:
            return Rejection(RejectionReason.EMPTY, "the quote holds no word")
        low, high = bounds or (0, len(self.text))
        preference = Preference(low, high, hint[0] if hint else None)
        stands = wanted.text in self.text
        if stands and (exact := self._exact(wanted, preference)):
            return exact
        folded_preference = self._folded(preference)
        if normalised := self._normalised(wanted, folded_preference):
            return normalised
        if stands:
            return self._cut_inside_words(wanted, preference)
        # A quote with an ellipsis must match exactly otherwise: it may not also differ in a word.
        return self._ellipsis(wanted, folded_preference) or self._fuzzy(wanted, folded_preference)

    def find(self, words: str) -> Alignment | None:
        """The first place with exactly these words: no word is completed, skipped or replaced."""
        wanted = _take_apart(words)
        if wanted is None:
            return None
        anywhere = Preference(0, len(self.text), None)
        exact = self._exact(wanted, anywhere) if wanted.text in self.text else None
        return exact or self._normalised(wanted, self._folded(anywhere))

    def _exact(self, wanted: _Quote, preference: Preference) -> Alignment | None:
        def parts_no_word(place: int) -> bool:
            end = place + len(wanted.text)
            return not self._word_around(place) and not self._word_around(end)

        place = find_preferred(self.text, wanted.text, preference, parts_no_word)
        if place < 0:
            return None
        return self._alignment((place, place + len(wanted.text)), MatchKind.EXACT)

    def _normalised(self, wanted: _Quote, preference: Preference) -> Alignment | None:
        place = find_preferred(self._index.folded, f" {wanted.folded} ", preference)
        if place < 0:
            return None
        span = self._with_marks((place + 1, place + 1 + len(wanted.folded)), wanted)
        # `_exact` gives up after a number of occurrences inside words, so this may be an exact
        # match.
        identical = self.text[slice(*span)] == wanted.text
        return self._alignment(span, MatchKind.EXACT if identical else MatchKind.NORMALISED)

    def _cut_inside_words(self, wanted: _Quote, preference: Preference) -> Alignment | Rejection:
        """A quote that begins or ends inside a word. The word is completed where that cannot change
        the meaning."""
        start = find_preferred(self.text, wanted.text, preference)
        end = start + len(wanted.text)
        if len(wanted.text) < MIN_CUT_QUOTE_CHARS:
            return Rejection(RejectionReason.INSIDE_WORD, "found only inside a word")
        first, last = self._word_around(start), self._word_around(end)
        for cut in (first, last):
            # "We pay $10" is not what "We pay $10,000" says.
            if cut and burden(fold_words([self.text[slice(*cut)]])):
                return Rejection(RejectionReason.MEANING_CHANGED, "the quote cuts a number short")
        span = (first[0] if first else start, last[1] if last else end)
        return self._alignment(span, MatchKind.NORMALISED)

    def _ellipsis(self, wanted: _Quote, preference: Preference) -> Alignment | Rejection | None:
        pieces = [words_in(piece).findall(piece) for piece in split_fragments(wanted.text)]
        fragments = [fold_words(words) for words in pieces if words]
        if len(fragments) < 2:
            return None
        span = find_fragments(self._index.folded, fragments, preference)
        if isinstance(span, FragmentFailure):
            return Rejection(_FRAGMENT_REJECTIONS[span], f"{len(fragments)} parts: {span.value}")
        return self._alignment(self._with_marks(span, wanted), MatchKind.ELLIPSIS)

    def _fuzzy(self, wanted: _Quote, preference: Preference) -> Alignment | Rejection:
        phrase = _phrase(wanted)
        if not phrase.long_enough:
            return Rejection(
                RejectionReason.TOO_SHORT, "not found as it is, and too short to allow an edit"
            )
        edits = find_edits(self._index.folded, phrase, preference)
        edits = [edit for edit in edits if self._stands_as_one_word(edit)]
        if not edits:
            return Rejection(RejectionReason.NOT_FOUND, "more than one word differs")
        nearest = sorted(edits, key=lambda edit: (*preference.rank(edit.start, edit.end), edit.end))
        same_meaning = [edit for edit in nearest if not edit.changes_meaning]
        if not same_meaning:
            standing, quoted = " ".join(nearest[0].standing), " ".join(nearest[0].quoted)
            return Rejection(
                RejectionReason.MEANING_CHANGED,
                f"the source has {standing!r} where the quote has {quoted!r}",
            )

        def likelihood(edit: Edit) -> tuple[bool, int]:
            outside, _, _ = preference.rank(edit.start, edit.end)
            return outside, self._strain(edit, phrase)

        best = min(same_meaning[:_MAX_WEIGHED_EDITS], key=likelihood)
        return self._alignment(self._with_marks((best.start, best.end), wanted), MatchKind.FUZZY)

    def _stands_as_one_word(self, edit: Edit) -> bool:
        """Whether the source's words in place of the quote's word contain no blank."""
        if len(edit.standing) < 2:
            return True
        end = edit.place + len(" ".join(edit.standing))
        word = self.text[slice(*self._index.source_span(edit.place, end))]
        return len(word.split()) == 1 and not UNSPACED_CHARACTER.search(word)

    def _strain(self, edit: Edit, phrase: Phrase) -> int:
        """How unlikely this edit is, compared with another edit at the same place.

        An edited first or last word may replace its neighbour in the source, or be an addition. The
        neighbour is more likely, unless it belongs to another sentence.
        """
        standing = self._index.folded[edit.start : edit.end].split(" ")
        if (standing[0], standing[-1]) == (phrase.words[0], phrase.words[-1]):
            return 0
        if not edit.standing:
            return 2
        if edit.place == edit.start:
            inner_edge = edit.place + len(" ".join(edit.standing))
        else:
            inner_edge = edit.place - 1
        # Both positions are the blank between the edited word and its neighbour.
        gap_start = self._index.source_span(edit.start, inner_edge)[1]
        gap_end = self._index.source_span(inner_edge + 1, edit.end)[0]
        return 3 if _SENTENCE_BREAK.search(self.text, gap_start, gap_end) else 1

    def _folded(self, preference: Preference) -> Preference:
        """The same preference, in positions of the folded text (of the blank before a word)."""

        def position(offset: int) -> int:
            return self._index.folded_position(max(0, offset))

        pivot = preference.pivot
        return Preference(
            position(preference.low) - 1,
            position(preference.high),
            None if pivot is None else position(pivot) - 1,
        )

    def _with_marks(self, folded_span: tuple[int, int], wanted: _Quote) -> tuple[int, int]:
        """The source's span, extended by the marks around it that the quote also has."""
        start, end = self._index.source_span(*folded_span)
        head, tail = wanted.head, wanted.tail
        wrapped = is_quotation_mark(head[-1:]) and is_quotation_mark(tail[-1:])
        if wrapped:
            head, tail = head[:-1], tail[:-1]
        if head:
            start -= _shared_marks(self.text[max(0, start - _MAX_EDGE_CHARS) : start][::-1], head)
        if tail:
            end += _shared_marks(self.text[end : end + _MAX_EDGE_CHARS], tail)
        # Quotation marks around the whole quote are the model's own, unless the source has both.
        before, after = self.text[max(0, start - 1) : start], self.text[end : end + 1]
        if wrapped and is_quotation_mark(before) and is_quotation_mark(after):
            return start - 1, end + 1
        return start, end

    def _word_around(self, offset: int) -> tuple[int, int] | None:
        """The word that a cut at this offset would split, if any."""
        text = self.text
        if offset <= 0 or offset >= len(text):
            return None
        if text[offset - 1].isspace() or text[offset].isspace():
            return None
        low = max(0, offset - _MAX_WORD_CHARS)
        # After a blank, words are split as in the whole text.
        low = max(low, *(text.rfind(blank, low, offset) + 1 for blank in " \n"))
        for word in word_pattern().finditer(text, low, offset + _MAX_WORD_CHARS):
            if word.end() > offset:
                return word.span() if word.start() < offset else None
        return None

    def _alignment(self, span: tuple[int, int], kind: MatchKind) -> Alignment:
        start, end = shorten(self.text, *span)
        return Alignment(start, end, self.text[start:end], kind)


def _take_apart(quote: str) -> _Quote | None:
    text = quote.strip()
    spans = [match.span() for match in words_in(text).finditer(text)]
    if not spans:
        return None
    return _Quote(text, spans, fold_words([text[start:end] for start, end in spans]))


def _phrase(wanted: _Quote) -> Phrase:
    groups: list[int] = []
    group, previous_end = 0, 0
    for start, end in wanted.spans:
        gap = wanted.text[previous_end:start]
        if not gap or len(f"-{gap}-".split()) > 1 or UNSPACED_CHARACTER.match(wanted.text, start):
            group += 1
        groups.append(group)
        previous_end = end
    return Phrase(tuple(wanted.folded.split(" ")), tuple(groups))


def _shared_marks(standing: str, quoted: str) -> int:
    """How many marks next to a word the quote has as well, both in order of distance from the
    word."""
    marks = [edge_mark(c) for c in quoted[:_MAX_EDGE_CHARS] if not c.isspace()]
    shared = 0
    for count, character in enumerate(standing, start=1):
        mark = edge_mark(character)
        if mark and mark in marks:
            del marks[: marks.index(mark) + 1]
            shared = count
        elif not (character in _MARKUP or character.isspace()):
            break
    return shared
