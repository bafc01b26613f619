"""Words as alignment compares them: what counts as a word, and when two are equal.

Punctuation, quotation marks, dashes and Markdown markers separate words and are not compared.
Whatever changes a number or a name ("-5", "1.5", "10%", "$5", "C++", "don't", "snake_case") belongs
to the word.
"""

from functools import cache
from itertools import groupby
from unicodedata import category, normalize

import regex as re

# Each of these is the inside of a `re` character class.
_APOSTROPHES = "'\u2018\u2019\u201b\u02bc\uff07"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d-"
_CURRENCY = "$\u00a2-\u00a5\u20a0-\u20cf\uff04\uffe1\uffe5"
# Scripts written without spaces: Thai, Lao, Burmese, Khmer, kana and Han.
_UNSPACED = (
    "\u0e01-\u0e4e\u0e81-\u0ecd\u0edc-\u0edf\u1000-\u103f\u1050-\u109d\u1780-\u17d3"
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003fffd"
)
# Invisible characters, or hints where to break a line: soft hyphen, zero width, direction.
_INVISIBLE = (
    "\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufff8\U000e0000-\U000e00ff"
)
_VARIATION_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_EMOJI = "\U0001f000-\U0001faff"
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_FLAG_LETTERS = "\U0001f1e6-\U0001f1ff"

# Code points that must be classified one by one. Every other range has only letters, or none.
_MIXED_CODES = (range(0x3400), range(0xA000, 0xAC00), range(0xFB00, 0x10000))
# Symbols that NFKC spells with letters or digits (™ → TM, ㎏ → kg, Ⓐ → A): part of a word.
_SPELLED_SYMBOLS = re.compile(r"[\u2100-\u214f\u2460-\u24ff\u3300-\u33ff]")
# Rules, blocks and geometric bullets are decoration; all other symbols carry meaning.
_DECORATION = re.compile(r"[\u2500-\u25ff]")


@cache
def _classes() -> dict[str, str]:
    roles = {"mark": "", "symbol": _EMOJI, "between": "", "letter": ""}
    for codes in _MIXED_CODES:
        for role, run in groupby(codes, lambda code: _role(chr(code))):
            members = list(run)
            roles[role] += f"\\u{members[0]:04x}-\\u{members[-1]:04x}"
    others = roles["between"] + roles["mark"] + roles["symbol"] + _INVISIBLE + _UNSPACED
    return roles | {"letter": rf"^\s{others}"}


def _role(character: str) -> str:
    kind = category(character)
    if kind.startswith("M"):
        return "mark"
    if kind[0] in "PZ" or kind in ("Cc", "Sc", "Sm", "Sk") or _DECORATION.match(character):
        return "between"
    if kind == "So" and not _SPELLED_SYMBOLS.match(character):
        return "symbol"
    return "letter"


def _spaced_word(letters: str, apostrophes: str, dashes: str, invisible: str) -> str:
    """A word of a script with spaces: runs of letters, joined by characters that do not separate
    words."""
    sign = rf"(?:[+{dashes}]?[{_CURRENCY}]?(?=\d))?"
    joint = rf"(?:[{apostrophes}]|_++|(?<=\d)[.,:/\u2044](?=\d)|[{dashes}](?=\d){invisible})"
    suffix = rf"(?:(?<=\d)[%{_CURRENCY}]|\+\+|\#)?"
    # Most words end at a blank, where no other alternative needs to be tried.
    return rf"{sign}{letters}(?:(?!\s)(?:{joint}{letters})*+{suffix})?"


def _ascii_word() -> str:
    return _spaced_word(r"[A-Za-z0-9]++", apostrophes="'", dashes="-", invisible="")


def _word() -> str:
    letter, marks = f"[{_classes()['letter']}]", f"[{_classes()['mark']}]*+"
    # A base letter and its marks are never split. ASCII comes first because it is fastest.
    letters = f"(?:[A-Za-z0-9]++{marks}|{letter}{marks})++"
    invisible = f"[{_INVISIBLE}]"
    spaced = _spaced_word(letters, _APOSTROPHES, _DASHES, f"|{invisible}++")
    # Scripts without spaces have no visible words: each of their characters counts as one.
    one_character = f"[{_UNSPACED}]{marks}"
    # An emoji with its skin tone, several joined into one, or a flag.
    symbol = (
        f"(?:[{_FLAG_LETTERS}]{{2}}|[{_classes()['symbol']}])[{_classes()['mark']}{_SKIN_TONES}]*+"
    )
    return rf"{spaced}|{one_character}|{symbol}(?:\u200d{symbol})*+"


@cache
def word_pattern() -> "re.Pattern[str]":
    """Compiled on first use: classifying all characters takes a tenth of a second."""
    return re.compile(_word())


_ASCII_WORD = re.compile(_ascii_word())


def words_in(text: str) -> "re.Pattern[str]":
    """The pattern for the words of this text. An ASCII text gets a faster pattern with the same
    matches."""
    return _ASCII_WORD if text.isascii() else word_pattern()


UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")

_IGNORED = re.compile(f"[{_INVISIBLE}{_VARIATION_SELECTORS}]+")
_EQUIVALENT = str.maketrans(
    dict.fromkeys(_APOSTROPHES, "'") | dict.fromkeys(_DASHES, "-") | {"\u2044": "/"}
)


def find_words(text: str, start: int, end: int) -> list[str]:
    """The words in `text[start:end]`, as written."""
    stretch = text[start:end]
    words: list[str] = words_in(stretch).findall(stretch)
    return words


def fold_words(words: list[str]) -> str:
    """The folded words, joined by single spaces, one for each given word."""
    joined = " ".join(words)
    if joined.isascii():
        return joined.lower()
    folded = _fold(joined)
    if folded.count(" ") == len(words) - 1:
        return folded
    # Some characters decompose into several words (ﷺ). They stay one word here, as in the source.
    return " ".join("".join(_fold(word).split()) or word for word in words)


def _fold(text: str) -> str:
    # Decomposed, because then each character folds independently of its neighbours.
    text = normalize("NFKD", _IGNORED.sub("", text)).casefold()
    # 'İ' folds to 'i' and a dot that no other spelling of the word has.
    return normalize("NFKD", text).replace("i\u0307", "i").translate(_EQUIVALENT)


_QUOTATION_MARKS = "\"'`´«»‹›\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f「」『』＂＇"
_SAME_MARK = str.maketrans(
    dict.fromkeys(_QUOTATION_MARKS, '"') | dict.fromkeys(_DASHES, "-") | {"…": "."}
)


def is_quotation_mark(character: str) -> bool:
    return character != "" and character in _QUOTATION_MARKS


def edge_mark(character: str) -> str:
    """The folded form of a punctuation mark; empty for word characters and blanks."""
    if words_in(character).match(character) or character.isspace():
        return ""
    return normalize("NFKC", character.translate(_SAME_MARK)).strip()
