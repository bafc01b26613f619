"""Text of documents on a terminal: it must contain no control sequences and no rich markup."""

import json
import re
from typing import Any

from rich.markup import escape

from memory_core.text.printable import single_line, visible

_LONGEST = 4_000
_SPACE = re.compile(r"\s+")
_ENDS_SENTENCE = re.compile(r"[.!?…][\"'”’)\]]*(?=\s|$)|\n\s*\n")
# Characters that JSON allows and a terminal may obey: C1 controls, and direction marks.
_SPEAKS_TO_TERMINALS = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def shown(text: str | None) -> str:
    """The text on one line, as rich markup that shows it literally."""
    return escape(single_line(text or "", _LONGEST))


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def joined(text: str | None) -> str:
    """The same for text next to other text: white space at its ends is kept as one space."""
    return _SPACE.sub(" ", visible(text or ""))


def sentence_around(before: str, quote: str, after: str) -> tuple[str, str]:
    """The parts of the sentence before and after the quote, as far as they are known."""
    ends = list(_ENDS_SENTENCE.finditer(before))
    if ends:
        start = before[ends[-1].end() :].lstrip()
    else:
        start = f"… {before.lstrip()}" if before.strip() else ""
    if _ENDS_SENTENCE.search(quote.rstrip()[-2:]):
        return start, ""
    end = _ENDS_SENTENCE.search(after)
    return start, after[: end.end()].rstrip() if end else f"{after.rstrip()} …"


def as_json(answer: Any) -> str:
    """Equal for a parser, and harmless on a terminal."""
    text = json.dumps(answer, ensure_ascii=False, indent=2, default=str)
    return _SPEAKS_TO_TERMINALS.sub(lambda mark: f"\\u{ord(mark[0]):04x}", text)
