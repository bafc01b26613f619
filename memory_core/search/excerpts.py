"""Excerpts: the shown part of each hit. It is the part that answers, or the whole chunk."""

from bisect import bisect_left, bisect_right
from dataclasses import replace

from memory_core.search.passage import MemoryRecord, Passage, ShortText, passage_of
from memory_core.search.ranking import FoundWindow
from memory_core.search.windows import WINDOW_CHARS, Window
from memory_core.text.turns import turn_starts
from memory_core.text.units import Span, units

# If an earlier excerpt has shown most of a part, a shorter rest is not worth a hit.
_LEAST_REST = 40


class _Shown:
    """What earlier hits have shown: chunks overlap, and later hits leave it out."""

    def __init__(self) -> None:
        self._spans: dict[str, list[Span]] = {}

    def rest(self, uid: str, start: int, end: int) -> Span:
        """The part that is not shown yet; empty if all of it is."""
        for first, last in self._spans.get(uid, ()):
            if first <= start < last:
                start = last
            if first < end <= last:
                end = first
            if start < first and last < end:
                start, end = max((start, first), (last, end), key=lambda span: span[1] - span[0])
        return start, max(start, end)

    def has_room(self, uid: str, now: Span, grown: Span) -> bool:
        """Whether an excerpt may grow: it stays short, and the addition was not shown before."""
        if grown[1] - grown[0] > WINDOW_CHARS:
            return False
        first, last = (now[1], grown[1]) if grown[0] == now[0] else (grown[0], now[0])
        return all(end <= first or last <= start for start, end in self._spans.get(uid, ()))

    def add(self, uid: str, start: int, end: int) -> None:
        self._spans.setdefault(uid, []).append((start, end))


def excerpts(ranked: list[FoundWindow], limit: int) -> list[Passage]:
    """Excerpts of the best windows. If no memory is among them, the last one is the best memory
    with words of the query: otherwise a long document with the same words in many places would hide
    all memories."""
    shown = _Shown()
    passages: list[Passage] = []
    for hit in ranked:
        if len(passages) == limit:
            break
        if (passage := _excerpt(hit, shown)) is not None:
            passages.append(passage)
    if any(passage.kind == "memory" for passage in passages):
        return passages
    memories = (hit for hit in ranked if isinstance(hit.row, MemoryRecord) and hit.window.words > 0)
    if (best := next(memories, None)) is None or (memory := _excerpt(best, shown)) is None:
        return passages
    return [*passages[: limit - 1], memory]


def whole_chunks(ranked: list[FoundWindow]) -> list[Passage]:
    shown = _Shown()
    passages = []
    for hit in ranked:
        whole = _whole(hit)
        if whole.start_char is None or whole.artifact_uid is None or whole.end_char is None:
            passages.append(whole)
            continue
        start, end = shown.rest(whole.artifact_uid, whole.start_char, whole.end_char)
        if start < end:
            shown.add(whole.artifact_uid, start, end)
            offset = whole.start_char
            passages.append(_cut(whole, start - offset, end - offset, hit.window))
    return passages


def _whole(hit: FoundWindow) -> Passage:
    assert not isinstance(hit.row, ShortText), "events are shown by themselves"
    return passage_of(hit.row, hit.score, hit.sources)


def _excerpt(hit: FoundWindow, shown: _Shown) -> Passage | None:
    """The window with the text around it, as far as there is room; None if it was already shown."""
    whole = _whole(hit)
    window = hit.window
    if whole.start_char is None or whole.artifact_uid is None:
        return _cut(whole, window.start, window.end, window)
    offset = whole.start_char
    start, end = shown.rest(whole.artifact_uid, offset + window.start, offset + window.end)
    if end - start < min(_LEAST_REST, window.end - window.start):
        return None
    start, end = _with_surroundings(whole, start, end, shown)
    shown.add(whole.artifact_uid, start, end)
    return _cut(whole, start - offset, end - offset, window)


def _with_surroundings(whole: Passage, start: int, end: int, shown: _Shown) -> Span:
    """The text before and after a short message says what it is about. Whole units are added on
    both sides in turn, except those already shown."""
    uid, offset = whole.artifact_uid or "", whole.start_char or 0
    spans = units(whole.text, turn_starts(whole.text))
    edges = [offset + first for first, _ in spans] + [offset + len(whole.text)]
    before, after = bisect_left(edges, start) - 1, bisect_right(edges, end - 1) + 1
    grows = True
    while grows:
        grows = False
        if after < len(edges) and shown.has_room(uid, (start, end), (start, edges[after])):
            end, after, grows = edges[after], after + 1, True
        if before >= 0 and shown.has_room(uid, (start, end), (edges[before], end)):
            start, before, grows = edges[before], before - 1, True
    return start, end


def _cut(whole: Passage, start: int, end: int, window: Window) -> Passage:
    """A part of a passage; offsets are relative to it."""
    text = whole.text[start:end]
    if whole.start_char is None:
        return replace(whole, text=text)
    offset = whole.start_char
    first, last = max(window.start, start), min(window.end, end)
    return replace(
        whole,
        text=text,
        start_char=offset + start,
        end_char=offset + end,
        highlight=(offset + first, offset + last) if first < last else None,
    )
