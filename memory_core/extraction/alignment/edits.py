"""Edits: a quote that differs from its source in one word."""

from collections.abc import Iterator
from dataclasses import dataclass

from memory_core.extraction.alignment.lexicon import STOPWORDS, burden
from memory_core.extraction.alignment.occurrence import Preference, places
from memory_core.extraction.alignment.words import UNSPACED_CHARACTER

# A quote of fewer words would match phrases that occur everywhere.
MIN_WORDS = 5
# Two characters of a script without spaces make about one word.
UNSPACED_CHARACTERS_PER_WORD = 2
# The unchanged words must carry meaning: "at the end of the" does not.
MIN_TELLING_WORDS = 1
# A model does not quote this much on purpose, and one changed word of so long a quote proves
# little.
MAX_WORDS = 200
# "govuk-integration-artefact" is three words here, but one word to a model that changes or omits
# it.
MAX_COMPOUND_WORDS = 6
# How much longer than the quoted words the words of the source may be.
_MAX_EXTRA_CHARS = 96


@dataclass(frozen=True, slots=True)
class Phrase:
    """The folded words of a quote. Words without a blank between them have the same group."""

    words: tuple[str, ...]
    groups: tuple[int, ...]

    def __getitem__(self, part: slice) -> "Phrase":
        return Phrase(self.words[part], self.groups[part])

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def long_enough(self) -> bool:
        """Whether the quote without one word is still long enough to be unambiguous."""
        unspaced = sum(1 for word in self.words if UNSPACED_CHARACTER.match(word))
        spaced = len(set(self.groups)) - unspaced
        return spaced + unspaced // UNSPACED_CHARACTERS_PER_WORD >= MIN_WORDS

    @property
    def middle(self) -> int:
        """A word boundary with a blank near the middle, or the middle itself."""
        half = len(self.words) // 2
        for place in range(half, len(self.words)):
            if self.groups[place] != self.groups[place - 1]:
                return place
        return half

    @property
    def first_group_size(self) -> int:
        return self.groups.count(self.groups[0])


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of folded text that equals the quote except for one word.

    `quoted` is the quote's word, `standing` the source's, at `place`. One of them is empty where a
    word was only added or only omitted.
    """

    start: int
    end: int
    place: int
    quoted: tuple[str, ...]
    standing: tuple[str, ...]

    @property
    def changes_meaning(self) -> bool:
        return _burdens(self.quoted) != _burdens(self.standing)


def _burdens(words: tuple[str, ...]) -> list[str]:
    return [heavy for word in words if (heavy := burden(word))]


def find_edits(folded: str, phrase: Phrase, preference: Preference) -> list[Edit]:
    """All stretches that differ from the phrase by one substituted, added or missing word.

    One edit leaves one half of the quote unchanged. So each occurrence of either half is tried, and
    the other half is compared word by word from there.
    """
    if len(phrase.words) > MAX_WORDS:
        return []
    first, second = phrase[: phrase.middle], phrase[phrase.middle :]
    edits = {
        *_edits_after(folded, first, second, preference),
        *_edits_before(folded, first, second, preference),
    }
    return [edit for edit in edits if _telling(phrase, edit)]


def _telling(phrase: Phrase, edit: Edit) -> bool:
    unchanged = set(phrase.words) - set(edit.quoted) - STOPWORDS
    return len(unchanged) >= MIN_TELLING_WORDS


def _edits_after(
    folded: str, intact: Phrase, edited: Phrase, preference: Preference
) -> Iterator[Edit]:
    """Edits in the second half, where the first half is unchanged."""
    needle = f" {intact.text} "
    next_word = f"{edited.words[0]} "
    rest = edited[edited.first_group_size :].text
    reach = len(edited.text) + _MAX_EXTRA_CHARS
    for begin in places(folded, needle, preference):
        after = begin + len(needle)
        # Either the next word matches, or it is the edited word and the rest follows nearby.
        if not (folded.startswith(next_word, after) or rest in folded[after : after + reach]):
            continue
        standing = _words_between(folded, after, folded.find(" ", after + reach))
        for kept, quoted, changed, used in _one_edit(edited, standing):
            place = after + len(" ".join(standing[:kept])) + (kept > 0)
            end = after + len(" ".join(standing[:used])) if used else after - 1
            yield Edit(begin + 1, end, place, quoted, changed)


def _edits_before(
    folded: str, edited: Phrase, intact: Phrase, preference: Preference
) -> Iterator[Edit]:
    """Edits in the first half, where the second half is unchanged."""
    needle = f" {intact.text} "
    last_word = f" {edited.words[-1]}"
    mirrored = edited[::-1]
    rest = edited[: -mirrored.first_group_size].text
    reach = len(edited.text) + _MAX_EXTRA_CHARS
    for begin in places(folded, needle, preference):
        low = max(0, begin - reach)
        if not (folded.endswith(last_word, 0, begin) or rest in folded[low:begin]):
            continue
        standing = _words_between(folded, folded.rfind(" ", 0, low) + 1, begin)[::-1]
        for kept, quoted, changed, used in _one_edit(mirrored, standing):
            place = begin - len(" ".join(standing[: kept + len(changed)])) if used else begin + 1
            start = begin - len(" ".join(standing[:used])) if used else begin + 1
            yield Edit(start, begin + len(needle) - 1, place, quoted[::-1], changed[::-1])


def _words_between(folded: str, start: int, end: int) -> list[str]:
    stretch = folded[start:end] if end >= 0 else folded[start:]
    return stretch.split()


def _one_edit(
    quoted: Phrase, standing: list[str]
) -> Iterator[tuple[int, tuple[str, ...], tuple[str, ...], int]]:
    """Ways to turn the quoted words into the first of the source's words by one edit.

    Yields the number of equal words before the edit, the differing words on either side, and the
    number of source words used in all.
    """
    kept = 0
    for word, other in zip(quoted.words, standing, strict=False):
        if word != other:
            break
        kept += 1
    for removed in range(_group_size_at(quoted, kept) + 1):
        rest = list(quoted.words[kept + removed :])
        for added in range(min(MAX_COMPOUND_WORDS, len(standing) - kept) + 1):
            used = kept + added + len(rest)
            if (removed or added) and standing[kept + added : used] == rest:
                changed = tuple(standing[kept : kept + added])
                yield kept, quoted.words[kept : kept + removed], changed, used


def _group_size_at(phrase: Phrase, place: int) -> int:
    """The number of words from here on without a blank between them."""
    size = 0
    while (
        size < MAX_COMPOUND_WORDS
        and place + size < len(phrase.words)
        and phrase.groups[place + size] == phrase.groups[place]
    ):
        size += 1
    return size
