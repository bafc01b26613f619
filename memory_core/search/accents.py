"""Spellings of a word with other accents, or with none: of cafe, café; of Mueller, Müller."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

# Spelled in two ways.
_DIGRAPHS = {"ae": "äæ", "oe": "öœø", "ue": "ü", "ss": "ß", "aa": "å"}
# A word with more letters and accents to choose from gets one accent only.
_MOST_CHOICES = 60


def other_accents(word: str) -> set[str]:
    """A word in lower case with up to two other accents, composed and decomposed."""
    plain = _without_accents(word)
    spellings = {plain, word}
    for pair, letters in _DIGRAPHS.items():
        for letter in letters:
            spellings |= {spelling.replace(pair, letter) for spelling in spellings}
            spellings |= {spelling.replace(letter, pair) for spelling in spellings}
    common, seldom = list(_choices(plain, _COMMON)), list(_choices(plain, _SELDOM))
    pairs = combinations(common, 2) if len(common) <= _MOST_CHOICES else ()
    for accents in (*((one,) for one in common + seldom), *pairs):
        letter_at = dict(accents)
        spellings.add("".join(letter_at.get(at, letter) for at, letter in enumerate(plain)))
    return spellings | {unicodedata.normalize("NFD", spelling) for spelling in spellings}


def _without_accents(word: str) -> str:
    letters = unicodedata.normalize("NFD", word)
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _choices(plain: str, accented: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Which letter of the word may be which one with an accent."""
    for at, letter in enumerate(plain):
        for other in accented.get(letter, ""):
            yield at, other


def _accented(numbers: Iterable[int]) -> dict[str, str]:
    """By letter, the same with accents."""
    accented: dict[str, str] = {}
    for letter in map(chr, numbers):
        plain = _without_accents(letter)
        if letter == letter.lower() and letter != plain and len(plain) == 1 and plain.isalpha():
            accented[plain] = accented.get(plain, "") + letter
    return accented


# Latin, Greek, Cyrillic and Arabic letters.
_COMMON = _accented([*range(0xC0, 0x180), *range(0x370, 0x700)])
_SELDOM = _accented([*range(0x180, 0x250), *range(0x1E00, 0x1F00)])
