"""Quotes: the exact words of the text, at most 25 of them."""

from memory_core.extraction.model import MAX_QUOTE_WORDS, ProposedQuote
from memory_core.text import timed_patterns as re

_WORD = re.compile(r"\S+")
# Marks that belong to the markup or the previous clause, not to the quote.
_LEADING = re.compile(r"[\s*_~>|,;:\-–—•]+")
_TRAILING = " \t\r\n|,;:*_~"
# A clause may be cut here without changing its meaning.
_BREAK = re.compile(r"[,;:)]$|[.!?]$")
# A "word" of this length is data, not language.
_MAX_CHARS = 400


def cut(text: str, start: int, end: int, key: tuple[int, int]) -> ProposedQuote | None:
    """Quote `text[start:end]`, cut to the words around `key`, the span that tells the event."""
    start, end = _trim(text, start, end)
    spans = [m.span() for m in _WORD.finditer(text, start, end)]
    if not spans:
        return None
    if len(spans) > MAX_QUOTE_WORDS:
        spans = _window(text, spans, key)
    start, end = _trim(text, spans[0][0], spans[-1][1])
    if end - start > _MAX_CHARS or start >= end:
        return None
    return ProposedQuote(text[start:end], start, end)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    lead = _LEADING.match(text, start, end)
    start = lead.end() if lead else start
    while end > start and (text[end - 1] in _TRAILING or text[end - 1].isspace()):
        end -= 1
    return start, end


def _window(text: str, spans: list[tuple[int, int]], key: tuple[int, int]) -> list[tuple[int, int]]:
    """25 words that contain the key: from the start of the sentence if it is near, else from the
    last break before the key, up to the last break that keeps most of the window."""
    first = next((i for i, (_, end) in enumerate(spans) if end > key[0]), 0)
    last = max((i for i, (start, _) in enumerate(spans) if start < key[1]), default=first)
    begin = 0
    if last >= MAX_QUOTE_WORDS:
        breaks = [i + 1 for i in range(first) if _BREAK.search(text[spans[i][0] : spans[i][1]])]
        near = [i for i in breaks if last - i < MAX_QUOTE_WORDS]
        begin = near[0] if near else min(first, len(spans) - 1)
    window = spans[begin : begin + MAX_QUOTE_WORDS]
    for size in range(len(window), MAX_QUOTE_WORDS * 2 // 3, -1):
        stop, ended = window[size - 1]
        if ended >= key[1] and _BREAK.search(text[stop:ended]):
            return window[:size]
    return window
