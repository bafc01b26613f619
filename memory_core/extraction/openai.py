"""The extractor and the grouper behind a chat model."""

import json
from typing import Any

from memory_core import ids
from memory_core.extraction import prompts
from memory_core.extraction.answer import is_answer, read_answer
from memory_core.extraction.cache import AnswerCache, Key
from memory_core.extraction.chat import ChatModel, Question
from memory_core.extraction.model import CallLog, ChunkEvent, DocumentContext, Proposal, Rejected
from memory_core.extraction.prompts import Prompt
from memory_core.extraction.schema import (
    EXTRACTION_NAME,
    EXTRACTION_SCHEMA,
    MERGE_NAME,
    MERGE_SCHEMA,
)
from memory_core.text.chunk import Chunk

# A chunk whose answer does not fit is halved; below this there is no point in halving again.
_SMALLEST_HALF_CHARS = 200
# One merge question holds about this many events.
_EVENTS_PER_QUESTION = 60


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
        self, chunk: Chunk, context: DocumentContext, *, fresh: bool, log: CallLog
    ) -> Proposal:
        key = self._cache.key(chunk.text, context, self.version, self.model)

        async def ask() -> dict[str, Any]:
            return await self._ask(chunk.text, context, log)

        answer, from_cache = await self._cache.get_or_ask(key, ask, fresh=fresh)
        proposal = read_answer(answer)
        rejections = proposal.rejections
        if answer.get("truncated"):
            rejections += (Rejected("TRUNCATED", "the answer for a passage did not fit"),)
        return Proposal(
            proposal.events, proposal.entities, rejections, answer.get("refusal"), from_cache
        )

    async def _ask(self, text: str, context: DocumentContext, log: CallLog) -> dict[str, Any]:
        """The answer for a passage, put together from halves where it did not fit whole."""
        question = Question(
            kind="extract",
            schema_name=EXTRACTION_NAME,
            schema=EXTRACTION_SCHEMA,
            system=self._prompt.text,
            messages=(describe(context), text),
            accepts=is_answer,
        )
        reply = await self._chat.ask(question, log)
        if reply.outcome == "refusal":
            return {"events": [], "entities": [], "refusal": reply.refusal}
        if reply.outcome == "truncated":
            return await self._ask_halves(text, context, log)
        # Nothing else of it: what marks a refusal or a cut is for us to say.
        entities = reply.data.get("entities")
        return {
            "events": reply.data["events"],
            "entities": entities if isinstance(entities, list) else [],
        }

    async def _ask_halves(
        self, text: str, context: DocumentContext, log: CallLog
    ) -> dict[str, Any]:
        if len(text) < 2 * _SMALLEST_HALF_CHARS:
            return {"events": [], "entities": [], "truncated": True}
        middle = _middle(text)
        joined: dict[str, Any] = {"events": [], "entities": []}
        for half in (text[:middle], text[middle:]):
            part = await self._ask(half, context, log)
            joined["events"] += part["events"]
            joined["entities"] += part["entities"]
            for mark in ("refusal", "truncated"):
                if part.get(mark):
                    joined[mark] = part[mark]
        return joined


class OpenAIGrouper:
    """With a cache, what was answered once is not asked again, unless all is to be `fresh`."""

    def __init__(
        self,
        chat: ChatModel,
        cache: AnswerCache | None = None,
        prompt: Prompt | None = None,
        *,
        fresh: bool = False,
    ) -> None:
        self._prompt = prompt or prompts.load("merge")
        self._chat = chat
        self._cache = cache
        self._fresh = fresh

    @property
    def version(self) -> str:
        return self._prompt.version

    async def group(
        self, blocks: list[list[ChunkEvent]], *, max_calls: int, log: CallLog
    ) -> list[list[str]]:
        groups: list[list[str]] = []
        for batch in _packed(blocks)[:max_calls]:
            candidates = [_candidate(event) for block in batch for event in block]
            answer = await self._answer(json.dumps(candidates, ensure_ascii=False), log)
            groups += _groups(answer)
        return groups

    async def _answer(self, candidates: str, log: CallLog) -> dict[str, Any]:
        async def ask() -> dict[str, Any]:
            return await self._ask(candidates, log)

        if self._cache is None:
            return await ask()
        key = Key(ids.sha256(candidates), MERGE_NAME, self.version, self._chat.model)
        answer, _ = await self._cache.get_or_ask(key, ask, fresh=self._fresh)
        return answer

    async def _ask(self, candidates: str, log: CallLog) -> dict[str, Any]:
        question = Question(
            kind="merge",
            schema_name=MERGE_NAME,
            schema=MERGE_SCHEMA,
            system=self._prompt.text,
            messages=(candidates,),
        )
        reply = await self._chat.ask(question, log)
        told = _groups(reply.data) if reply.outcome == "ok" else []
        # Ids alone are kept: a narrative in the cache would outlive the document it tells of.
        return {"groups": [{"members": members} for members in told]}


def describe(context: DocumentContext) -> str:
    """The document's context, as the model sees it."""
    lines = [f"Document type: {context.artifact_type}"]
    if context.title:
        lines.append(f"Title: {context.title}")
    if context.author:
        lines.append(f"Author: {context.author}")
    if context.participants:
        lines.append(f"Participants: {', '.join(context.participants)}")
    if context.date:
        lines.append(f"Date: {context.date.date().isoformat()} ({context.date:%A})")
    return "\n".join(lines)


def _middle(text: str) -> int:
    """Near the middle, after a line or a space if there is one about."""
    half = len(text) // 2
    for mark in ("\n", " "):
        at = text.rfind(mark, half // 2, half)
        if at > 0:
            return at + 1
    return half


def _packed(blocks: list[list[ChunkEvent]]) -> list[list[list[ChunkEvent]]]:
    """Blocks put together into as few questions as their size allows."""
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
        "time": event.event_time.isoformat() if event.event_time else None,
        "narrative": event.narrative,
    }


def _groups(data: Any) -> list[list[str]]:
    found = data.get("groups")
    members = [
        group.get("members")
        for group in (found if isinstance(found, list) else [])
        if isinstance(group, dict)
    ]
    return [
        [member for member in group if isinstance(member, str)]
        for group in members
        if isinstance(group, list)
    ]
