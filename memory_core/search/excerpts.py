"""What is shown of what was found: the part that answers, or whole chunks."""

from dataclasses import replace

from memory_core.search.passage import Passage, passage_of
from memory_core.search.ranking import Found
from memory_core.search.windows import Window


def excerpts(ranked: list[Found], limit: int) -> list[Passage]:
    return [_excerpt(found) for found in _with_a_memory(ranked, limit)]


def whole_chunks(ranked: list[Found]) -> list[Passage]:
    """Chunks overlap: what an earlier one has shown already is left out of a later one."""
    shown: dict[str, list[tuple[int, int]]] = {}
    passages = []
    for found in ranked:
        whole = passage_of(found.row, found.score, found.sources)
        if whole.start_char is None or whole.artifact_uid is None or whole.end_char is None:
            passages.append(whole)
            continue
        start, end = whole.start_char, whole.end_char
        for first, last in shown.setdefault(whole.artifact_uid, []):
            if first <= start < last:
                start = last
            if first < end <= last:
                end = first
        if start < end:
            shown[whole.artifact_uid].append((start, end))
            offset = whole.start_char
            passages.append(_cut(whole, start - offset, end - offset, found.window))
    return passages


def _with_a_memory(ranked: list[Found], limit: int) -> list[Found]:
    """The best; the last of them is the best memory that has words of the query, where none is
    among them: a long document with the same words in many places would hide all memories."""
    shown = ranked[:limit]
    if any("memory_id" in found.row for found in shown):
        return shown
    memories = (
        found for found in ranked[limit:] if "memory_id" in found.row and found.window.words > 0
    )
    if (best := next(memories, None)) is None:
        return shown
    return [*shown[: limit - 1], best]


def _excerpt(found: Found) -> Passage:
    whole = passage_of(found.row, found.score, found.sources)
    return _cut(whole, found.window.start, found.window.end, found.window)


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
