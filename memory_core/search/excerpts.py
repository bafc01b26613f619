"""What is shown of what was found: the part that answers, or whole chunks."""

from bisect import bisect_left, bisect_right
from dataclasses import replace

from memory_core.search.passage import MemoryRecord, Passage, ShortText, passage_of
from memory_core.search.ranking import FoundWindow
from memory_core.search.windows import WINDOW_CHARS, Window
from memory_core.text.turns import turn_starts
from memory_core.text.units import Span, units

# Of a part that an earlier excerpt has shown mostly, a shorter rest is not worth a hit.
_LEAST_REST = 40


class _Shown:
    """Chunks overlap: what an earlier hit has shown is left out of a later one."""

    def __init__(self) -> None:
        self._spans: dict[str, list[Span]] = {}

    def rest(self, uid: str, start: int, end: int) -> Span:
        """What is not shown yet; empty if all is."""
        for first, last in self._spans.get(uid, ()):
            if first <= start < last:
                start = last
            if first < end <= last:
                end = first
            if start < first and last < end:
                start, end = max((start, first), (last, end), key=lambda span: span[1] - span[0])
        return start, max(start, end)

    def has_room(self, uid: str, now: Span, grown: Span) -> bool:
        """Whether an excerpt may grow: it stays short, and what is added was not shown."""
        if grown[1] - grown[0] > WINDOW_CHARS:
            return False
        first, last = (now[1], grown[1]) if grown[0] == now[0] else (grown[0], now[0])
        return all(end <= first or last <= start for start, end in self._spans.get(uid, ()))

    def add(self, uid: str, start: int, end: int) -> None:
        self._spans.setdefault(uid, []).append((start, end))


def excerpts(ranked: list[FoundWindow], limit: int) -> list[Passage]:
    """The last of them is the best memory that has words of the query, where none is among them: a
    long document with the same words in many places would hide all memories."""
    shown = _Shown()
    passages: list[Passage] = []
    for found in ranked:
        if len(passages) == limit:
            break
        if (passage := _excerpt(found, shown)) is not None:
            passages.append(passage)
    if any(passage.kind == "memory" for passage in passages):
        return passages
    memories = (
        found for found in ranked if isinstance(found.row, MemoryRecord) and found.window.words > 0
    )
    if (best := next(memories, None)) is None or (memory := _excerpt(best, shown)) is None:
        return passages
    return [*passages[: limit - 1], memory]


def whole_chunks(ranked: list[FoundWindow]) -> list[Passage]:
    shown = _Shown()
    passages = []
    for found in ranked:
        whole = _whole(found)
        if whole.start_char is None or whole.artifact_uid is None or whole.end_char is None:
            passages.append(whole)
            continue
        start, end = shown.rest(whole.artifact_uid, whole.start_char, whole.end_char)
        if start < end:
            shown.add(whole.artifact_uid, start, end)
            offset = whole.start_char
            passages.append(_cut(whole, start - offset, end - offset, found.window))
    return passages


def _whole(found: FoundWindow) -> Passage:
    assert not isinstance(found.row, ShortText), "events are shown by themselves"
    return passage_of(found.row, found.score, found.sources)


def _excerpt(found: FoundWindow, shown: _Shown) -> Passage | None:
    """The window, with what stands around it as far as there is room; None if it is shown."""
    whole = _whole(found)
    window = found.window
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
    """What follows a short message and what precedes it say what it is about. Whole units are
    added on both sides in turn, none that was shown already."""
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
    """A part of a passage; offsets are those inside it."""
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
