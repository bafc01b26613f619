"""Building blocks for the patterns of the other modules.

Every pattern of this package is either applied to a sentence, which `sentences` keeps below a fixed
length, or is anchored at the start of a line with bounded repeats. So no input can make a match
take more than linear time in the length of the text.
"""

import sys

# The standard library has no \p{Lu}. These are the upper-case letters of the Latin, Greek and
# Cyrillic blocks; almost no other script has case.
UPPER = "[" + "".join(chr(c) for c in range(0x41, 0x530) if chr(c).isupper()) + "]"
LETTER = r"[^\W\d_]"

# The repeats are possessive: a name is matched whole or not at all. CPython before 3.11.5 gets
# possessive repeats of groups wrong; plain ones are only slower there.
_WHOLE = "+" if sys.version_info >= (3, 11, 5) else ""
# An apostrophe may be part of a name ("O'Neill"), but not in "We've" or "Ann's".
_CLITIC = r"(?:ve|s|ll|d|re|m|t)\b"
NAME_WORD = rf"(?<![\w@]){UPPER}(?:{LETTER}|(?:[.\-]|'(?!{_CLITIC}))(?={LETTER})){{0,30}}{_WHOLE}"
HANDLE = rf"@[A-Za-z0-9][\w\-]{{0,38}}{_WHOLE}(?:\.[\w\-]{{1,38}}{_WHOLE})?{_WHOLE}"
# One to three capitalised words ("Ann L." keeps its initial), or a handle.
NAME = (
    rf"(?:{HANDLE}|{NAME_WORD}"
    rf"(?: (?:{UPPER}\.(?= )|(?:(?:van|von|de|da|del|der|la|bin|al) )?{NAME_WORD})){{0,2}}{_WHOLE})"
)
NAMES = rf"{NAME}(?:(?:, and | (?:and|&|\+) |, |/){NAME}){{0,5}}{_WHOLE}"


def words(*alternatives: str) -> str:
    """An alternation of the given space-separated words, longest first."""
    flat = sorted(word_set(*alternatives), key=len, reverse=True)
    return "(?:" + "|".join(flat) + ")"


def word_set(*groups: str) -> frozenset[str]:
    """The given space-separated words as a set."""
    return frozenset(w for group in groups for w in group.split())


# Parts of an organisation that act as one: "Engineering and design synced".
DEPARTMENT = (
    r"(?i:engineering|design|product|sales|marketing|legal|finance|support|operations|security|"
    r"research|compliance|procurement|qa|hr|customer success|data science)"
)
DEPARTMENTS = (
    rf"{DEPARTMENT}(?:, {DEPARTMENT}){{0,4}},? (?:(?i:and)|&) (?:(?i:the) )?{DEPARTMENT}"
    r"(?: (?i:teams?))?"
)
