"""The rules extractor: deterministic, without model, key or network."""

import asyncio
from datetime import datetime

from memory_core.extraction.ledger import Ledger
from memory_core.extraction.model import DocumentContext, Proposal, ProposedEvent, RejectedEvent
from memory_core.extraction.rules import (
    attendance,
    blocks,
    entities,
    guards,
    manner,
    sentences,
    tables,
)
from memory_core.extraction.rules.blocks import Block, TextLayout
from memory_core.extraction.rules.event_writer import EventWriter, distinct
from memory_core.extraction.rules.finder import Finder
from memory_core.extraction.rules.markup import mask
from memory_core.text.chunk import Chunk

# Raise the number with every change that can alter a proposal: extractions are cached under it.
VERSION = "6-rules"
_MAX_LINK = 300
# After this many timed-out sentences, the rest of the text is skipped.
_PATIENCE = 5
_SHOWN = 120


class RulesExtractor:
    """The default extractor: the same text always gives the same proposal."""

    name = "rules"
    model = "rules"
    version = VERSION

    async def extract(
        self,
        chunk: Chunk,
        context: DocumentContext,
        *,
        answers_since: datetime | None = None,
        ledger: Ledger,
    ) -> Proposal:
        await asyncio.sleep(0)  # the work is all CPU: let other tasks run in between
        return propose(chunk.text, context, opens=chunk.index == 0)

    async def recall(
        self, chunk: Chunk, context: DocumentContext, *, version: str, model: str
    ) -> Proposal | None:
        """There is no cache: extracting again costs nothing."""
        return None


def propose(text: str, context: DocumentContext, *, opens: bool = True) -> Proposal:
    """Events and entities of one text; offsets are code points of `text`. `opens`: the text is the
    beginning of the document. Sentences that time out are skipped and reported."""
    skipped: list[RejectedEvent] = []
    try:
        layout = blocks.read(text, context)
        masked = mask(text)
        events = distinct(_events(text, masked, layout, context, opens, skipped))
        named = entities.find(text, masked, layout.roster, events)
    except TimeoutError:
        return Proposal(rejections=(_skipped(text),))
    return Proposal(events, named, tuple(skipped))


def _skipped(passage: str) -> RejectedEvent:
    return RejectedEvent("RULE_TIMED_OUT", f"took too long to read: {passage[:_SHOWN]!r}")


def _events(
    text: str, masked: str, layout: TextLayout, context: DocumentContext, opens: bool,
    skipped: list[RejectedEvent],
) -> list[ProposedEvent]:  # fmt: skip
    style = manner.of(context, layout.headings)
    writer = EventWriter(text, layout.roster, style, context.title, layout.title)
    finder = Finder(text, layout.roster, style)
    lines_end = context.artifact_type in manner.TALK
    events: list[ProposedEvent | None] = []
    for block in layout.blocks:
        read = _sentences(text, masked, block, lines_end)
        if any(guards.addresses_model(sentence.words) for sentence in read):
            continue
        for i, sentence in enumerate(read):
            try:
                for draft in finder.find(sentence, block, first=i == 0):
                    events.append(writer.event(draft, block.section, block.anchor, block))
            except TimeoutError:
                skipped.append(_skipped(sentence.words))
                if len(skipped) > _PATIENCE:
                    raise
    for table in layout.tables:
        for draft in tables.find(text, table, layout.roster):
            events.append(writer.event(draft, table.section, table.anchor, None))
    met = list(attendance.find(text, layout.blocks, layout.roster))
    if opens and not met and context.artifact_type == "transcript":
        met = list(attendance.of_speakers(text, layout.blocks, context.participants))
    for draft in met:
        first = next(b for b in layout.blocks if draft.start < b.end)
        events.append(writer.event(draft, first.section, first.anchor, None))
    return [event for event in events if event is not None]


def _sentences(text: str, masked: str, block: Block, lines_end: bool) -> list[sentences.Sentence]:
    spans = sentences.split(masked, block.start, block.end, block.spoken, lines_end)
    return [
        sentences.read(masked, *_whole_links(text, start, end, block), block.spoken)
        for start, end in spans
    ]


def _whole_links(text: str, start: int, end: int, block: Block) -> tuple[int, int]:
    """A sentence that begins or ends with a link is quoted with the whole link."""
    if start > block.start and text[start - 1] == "[":
        start -= 1
    if text.startswith(("](", "]["), end, block.end):
        mark = ")" if text[end + 1] == "(" else "]"
        closing = text.find(mark, end + 2, min(block.end, end + _MAX_LINK))
        end = closing + 1 if closing >= 0 else end
    return start, end
