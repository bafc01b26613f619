"""The extractor and the grouper that ask a chat model."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memory_core.extraction import prompts
from memory_core.extraction.answer import is_answer, read_answer
from memory_core.extraction.answer_cache import AnswerCache, AnswerKey
from memory_core.extraction.chat_model import ChatModel, Question
from memory_core.extraction.ledger import Ledger
from memory_core.extraction.model import ChunkEvent, DocumentContext, Proposal, RejectedEvent
from memory_core.extraction.prompts import Prompt
from memory_core.extraction.schema import (
    EXTRACTION_NAME,
    EXTRACTION_SCHEMA,
    MERGE_NAME,
    MERGE_SCHEMA,
)
from memory_core.kernel import ids
from memory_core.queue.versions import number
from memory_core.text.chunk import Chunk

# A chunk whose answer is too long is halved; parts shorter than this are not halved again.
_SMALLEST_HALF_CHARS = 200
# One merge question holds about this many events.
_EVENTS_PER_QUESTION = 60
# Limits on the document's context that is sent with every chunk.
_TITLE_CHARS = 300
_NAME_CHARS = 100
_PARTICIPANTS = 60


class OpenAIExtractor:
    name = "openai"

    def __init__(self, chat: ChatModel, cache: AnswerCache, prompt: Prompt | None = None) -> None:
        self.model = chat.model
        self._prompt = prompt or prompts.load("extract")
        self._chat = chat
        self._cache = cache

    @property
    def version(self) -> str:
        return self._prompt.version

    async def extract(
        self,
        chunk: Chunk,
        context: DocumentContext,
        *,
        answers_since: datetime | None = None,
        ledger: Ledger,
    ) -> Proposal:
        async def find(passage: "_Passage") -> tuple[dict[str, Any], bool]:
            return await self._cache.get_or_ask(
                passage.key,
                lambda: self._ask(passage.text, context, ledger),
                answers_since=answers_since,
                ledger=ledger,
            )

        key = self._cache.key(chunk.text, context, self.version, self.model)
        answer, from_cache = await _whole(_Passage(chunk.text, key), find)
        return _proposal(answer, from_cache, self.version)

    async def recall(
        self, chunk: Chunk, context: DocumentContext, *, version: str, model: str
    ) -> Proposal | None:
        async def find(passage: "_Passage") -> tuple[dict[str, Any], bool]:
            if (cached := await self._cache.get(passage.key)) is None:
                raise _Unknown
            return cached, True

        key = self._cache.key(chunk.text, context, version, model)
        try:
            answer, from_cache = await _whole(_Passage(chunk.text, key), find)
        except _Unknown:
            return None
        return _proposal(answer, from_cache, version)

    async def _ask(self, text: str, context: DocumentContext, ledger: Ledger) -> dict[str, Any]:
        question = Question(
            kind="extract",
            schema_name=EXTRACTION_NAME,
            schema=EXTRACTION_SCHEMA,
            system=self._prompt.text,
            messages=(describe(context), text),
            accepts=is_answer,
        )
        reply = await self._chat.ask(question, ledger)
        if reply.outcome == "refusal":
            return {"events": [], "entities": [], "refusal": reply.refusal}
        if reply.outcome == "truncated":
            return {"events": [], "entities": [], "did_not_fit": True}
        # Keep only these keys: only our own code may mark a refusal, a truncation or a part.
        entities = reply.data.get("entities")
        return {
            "events": [_unplaced(event) for event in reply.data["events"]],
            "entities": entities if isinstance(entities, list) else [],
        }


@dataclass(frozen=True, slots=True)
class _Passage:
    """A chunk, or a part of one. Each part is cached separately, so that one failed part does not
    make the others be paid for again."""

    text: str
    key: AnswerKey
    start: int = 0  # its offset in the chunk

    def part(self, start: int, end: int) -> "_Passage":
        whole, _, _ = self.key.chunk_hash.partition(":")
        at = self.start + start
        named = replace(self.key, chunk_hash=f"{whole}:{at}-{self.start + end}")
        return _Passage(self.text[start:end], named, at)


class _Unknown(Exception):
    """The cache has no answer to this question."""


_Find = Callable[[_Passage], Awaitable[tuple[dict[str, Any], bool]]]


async def _whole(passage: _Passage, find: _Find) -> tuple[dict[str, Any], bool]:
    """The answer for a passage, and whether it was cached. An answer that was too long is assembled
    from those of the halves."""
    answer, is_cached = await find(passage)
    if not answer.get("did_not_fit"):
        return answer, is_cached
    length = len(passage.text)
    if length < 2 * _SMALLEST_HALF_CHARS:
        return {"events": [], "entities": [], "truncated": True}, is_cached
    middle = _middle(passage.text)
    joined: dict[str, Any] = {"events": [], "entities": []}
    for start, end in ((0, middle), (middle, length)):
        part, part_is_cached = await _whole(passage.part(start, end), find)
        is_cached = is_cached and part_is_cached
        joined["events"] += [_placed(event, start, end) for event in part["events"]]
        joined["entities"] += part["entities"]
        for mark in ("refusal", "truncated"):
            if part.get(mark):
                joined[mark] = part[mark]
    return joined, is_cached


def _unplaced(event: Any) -> Any:
    if isinstance(event, dict):
        event.pop("part", None)
    return event


def _placed(event: Any, start: int, end: int) -> Any:
    """Turn an event of a part into one of the whole: the same words may stand in both parts."""
    if not isinstance(event, dict):
        return event
    low, high = event.get("part") or (0, end - start)  # set if the part was divided again
    placed = {**event, "part": [start + low, start + high]}
    if isinstance(evidence := event.get("evidence"), dict):
        offsets = {
            name: evidence[name] + start
            for name in ("start_char", "end_char")
            if type(evidence.get(name)) is int
        }
        placed["evidence"] = {**evidence, **offsets}
    return placed


def _proposal(answer: dict[str, Any], from_cache: bool, version: str) -> Proposal:
    proposal = read_answer(answer, number(version))
    rejections = proposal.rejections
    if answer.get("truncated"):
        rejections += (RejectedEvent("TRUNCATED", "the answer for a passage did not fit"),)
    return Proposal(
        proposal.events, proposal.entities, rejections, answer.get("refusal"), from_cache
    )


class OpenAIGrouper:
    """Asks the chat model which events belong together. Answers are cached."""

    def __init__(self, chat: ChatModel, cache: AnswerCache, prompt: Prompt | None = None) -> None:
        self._prompt = prompt or prompts.load("merge")
        self._chat = chat
        self._cache = cache

    @property
    def version(self) -> str:
        return self._prompt.version

    async def group(
        self,
        blocks: list[list[ChunkEvent]],
        *,
        max_calls: int,
        answers_since: datetime | None = None,
        ledger: Ledger,
    ) -> list[list[str]]:
        batches = [
            [event for block in batch for event in block] for batch in _packed(blocks)[:max_calls]
        ]
        ledger.unasked_merges += sum(map(len, blocks)) - sum(map(len, batches))
        questions = [
            json.dumps([_candidate(event) for event in batch], ensure_ascii=False)
            for batch in batches
        ]
        answers = await asyncio.gather(
            *(self._answer(question, answers_since, ledger) for question in questions),
            return_exceptions=True,  # calls in flight are paid for, so their answers are kept
        )
        groups: list[list[str]] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            groups += _groups(answer)
        return groups

    async def _answer(
        self, candidates: str, answers_since: datetime | None, ledger: Ledger
    ) -> dict[str, Any]:
        key = AnswerKey(ids.sha256(candidates), MERGE_NAME, self.version, self._chat.model)
        answer, _ = await self._cache.get_or_ask(
            key, lambda: self._ask(candidates, ledger), answers_since=answers_since, ledger=ledger
        )
        return answer

    async def _ask(self, candidates: str, ledger: Ledger) -> dict[str, Any]:
        question = Question(
            kind="merge",
            schema_name=MERGE_NAME,
            schema=MERGE_SCHEMA,
            system=self._prompt.text,
            messages=(candidates,),
        )
        reply = await self._chat.ask(question, ledger)
        groups = _groups(reply.data) if reply.outcome == "ok" else []
        # Store only ids: a narrative in the cache would outlive the document that it tells of.
        return {"groups": [{"members": members} for members in groups]}


def describe(context: DocumentContext) -> str:
    """The document's context as the model sees it. It is JSON, so no value can imitate another
    field."""
    fields = {
        "document_type": context.artifact_type,
        "title": _one_line(context.title or "", _TITLE_CHARS),
        "author": _one_line(context.author or "", _NAME_CHARS),
        "participants": [
            _one_line(name, _NAME_CHARS) for name in context.participants[:_PARTICIPANTS]
        ],
        "date": f"{context.date:%Y-%m-%d} ({context.date:%A})" if context.date else "",
    }
    return json.dumps({name: value for name, value in fields.items() if value}, ensure_ascii=False)


def _one_line(value: str, limit: int) -> str:
    line = " ".join(value[: 2 * limit].split())
    return line if len(line) <= limit and len(value) <= 2 * limit else f"{line[: limit - 1]}…"


def _middle(text: str) -> int:
    """A position near the middle, after a line break or a space if there is one nearby."""
    half = len(text) // 2
    for mark in ("\n", " "):
        at = text.rfind(mark, half // 2, half)
        if at > 0:
            return at + 1
    return half


def _packed(blocks: list[list[ChunkEvent]]) -> list[list[list[ChunkEvent]]]:
    """Blocks, combined into as few questions as their sizes allow."""
    batches: list[list[list[ChunkEvent]]] = []
    room = 0
    for block in sorted(blocks, key=len, reverse=True):
        block = block[:_EVENTS_PER_QUESTION]
        if len(block) > room:
            batches.append([])
            room = _EVENTS_PER_QUESTION
        batches[-1].append(block)
        room -= len(block)
    return batches


def _candidate(event: ChunkEvent) -> dict[str, Any]:
    return {
        "id": event.id,
        "category": event.category.value,
        "subject": event.subject.ref,
        "actors": [actor.ref for actor in event.actors],
        "time": _moment(event.event_time),
        **({"due": _moment(event.due.time)} if event.due else {}),
        "narrative": event.narrative,
    }


def _moment(time: datetime | None) -> str | None:
    return time.isoformat() if time else None


def _groups(data: Any) -> list[list[str]]:
    groups = data.get("groups")
    members = [
        group.get("members")
        for group in (groups if isinstance(groups, list) else [])
        if isinstance(group, dict)
    ]
    return [
        [member for member in group if isinstance(member, str)]
        for group in members
        if isinstance(group, list)
    ]
