"""How well search finds single sessions and messages, compared with plain BM25.

There are no labelled chats here, so the sample meetings are cut up. Conversations: each meeting as
sessions of about 2,600 characters; questions and sentences of their answers ask for the session.
Chats: sentences of an answer are a person's short messages, and the stretch of the meeting that
they are about is the assistant's long one; the question asks for the short messages. The weights of
excerpts were chosen on texts made in the same way: expect a little less elsewhere.
"""

import asyncio
import json
import logging
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.bench_quality import (
    SAMPLE,
    Bm25,
    Chunk,
    Compared,
    Span,
    chunks_of,
    document,
    fill,
    row_of,
    words_of,
)
from memory_core.artifacts.document import Document
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.search.passage_filters import Filters
from memory_core.search.passages import artifact_search, hybrid_search
from stack.connection import connected, joined_runtime

_SESSION_CHARS = 2_600
_ANSWER_CHARS = 1_800
_PIECE_CHARS = 1_200
_BUDGET = 12_000
_HITS = 20
_QUESTIONS = 300
_MEETINGS_OF_A_CHAT = 3
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class Asked:
    question: str
    gold: list[tuple[str, Span]]  # documents with the places that answer


@dataclass(frozen=True, slots=True)
class World:
    documents: list[Document]
    asked: list[Asked]


def labelled() -> list[dict[str, Any]]:
    path = SAMPLE / "labels" / "qmsum_train.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def _gold_turns(meeting: dict[str, Any], query: dict[str, Any]) -> list[int]:
    last = len(meeting["turns"]) - 1
    return [turn for a, b in query["turn_spans"] for turn in range(a, min(b, last) + 1)]


def _line(text: str, turn: Span) -> Span:
    end = text.find("\n", turn[1])
    return text.rfind("\n", 0, turn[0]) + 1, len(text) if end < 0 else end + 1


def conversations(meetings: list[dict[str, Any]]) -> World:
    dice = random.Random(5)
    documents, asked = [], []
    for meeting in meetings:
        text, lines = meeting["text"], [_line(meeting["text"], t) for t in meeting["turns"]]
        places: dict[int, tuple[str, Span]] = {}
        begun, goal, number = 0, 0.0, 0
        for turn, (start, end) in enumerate(lines):
            if start - begun >= goal:
                begun, goal, number = start, _SESSION_CHARS * dice.uniform(0.5, 1.5), number + 1
            spoken = meeting["turns"][turn]
            name = f"{meeting['meeting']} {number}"
            places[turn] = name, (spoken[0] - begun, spoken[1] - begun)
            if turn + 1 == len(lines) or lines[turn + 1][0] - begun >= goal:
                documents.append(document(name, text[begun:end]))
        for query in meeting["queries"]:
            turns = _gold_turns(meeting, query)
            sentences = [query["query"], *_SENTENCE.split(query["answer"])]
            if len(turns) <= 40:
                gold = [places[turn] for turn in turns]
                asked += [Asked(s[:300], gold) for s in sentences if len(s.split()) > 6]
    return World(documents, dice.sample(asked, min(_QUESTIONS, len(asked))))


def chats(meetings: list[dict[str, Any]]) -> World:
    dice = random.Random(3)
    documents, asked = [], []
    for first in range(0, len(meetings), _MEETINGS_OF_A_CHAT):
        name, text = f"chat {first}", ""
        for meeting in meetings[first : first + _MEETINGS_OF_A_CHAT]:
            for query in meeting["queries"]:
                gold = []
                for message, answer in _exchange(meeting, query, dice):
                    start = len(text) + len("User: ")
                    gold.append((name, (start, start + len(message))))
                    text += f"User: {message}\n\nAssistant: {answer}\n\n"
                asked.append(Asked(query["query"], gold))
        documents.append(document(name, text))
    return World(documents, asked)


def _exchange(
    meeting: dict[str, Any], query: dict[str, Any], dice: random.Random
) -> Iterator[tuple[str, str]]:
    """Two messages of one to three sentences, each with a long answer."""
    sentences = _SENTENCE.split(query["answer"])
    place = _line(meeting["text"], meeting["turns"][_gold_turns(meeting, query)[0]])[0]
    for _ in range(2):
        many = dice.choice([1, 2, 3])
        message, sentences = " ".join(sentences[:many])[:500], sentences[many:]
        if message:
            length = int(_ANSWER_CHARS * dice.uniform(0.5, 1.6))
            yield message, " ".join(meeting["text"][place : place + length].split())
        place += _ANSWER_CHARS


async def in_conversations(
    runtime: Runtime, plain: Bm25, uids: dict[str, str], world: World
) -> list[Compared]:
    results: dict[int, tuple[list[float], list[float]]] = {1: ([], []), 5: ([], [])}
    for item in world.asked:
        right = {uids[name] for name, _ in item.gold}
        hits = await artifact_search(runtime, item.question, Filters(), limit=5)
        ranked = [hit.artifact_uid for hit in hits]
        plainly = list(dict.fromkeys(uids[chunk.source_id] for chunk in plain.best(item.question)))
        for many, (ours, theirs) in results.items():
            ours.append(float(bool(right & set(ranked[:many]))))
            theirs.append(float(bool(right & set(plainly[:many]))))
    return [Compared(f"right session in the first {many}", *both) for many, both in results.items()]


async def in_chats(runtime: Runtime, pieces: Bm25, uids: dict[str, str], world: World) -> Compared:
    ours, theirs = [], []
    for item in world.asked:
        name = item.gold[0][0]
        hits = await hybrid_search(
            runtime, item.question, Filters(artifact_uid=uids[name]),
            limit=_HITS, include_memory=False,
        )  # fmt: skip
        gold = [span for _, span in item.gold]
        ours.append(_whole([(h.start_char or 0, h.end_char or 0) for h in hits], gold))
        best = pieces.best(item.question, name)[:_HITS]
        theirs.append(_whole([(piece.start, piece.end) for piece in best], gold))
    return Compared(f"short messages in {_BUDGET:,} characters", ours, theirs)


def _whole(spans: list[Span], gold: list[Span]) -> float:
    """Which share of the messages is shown, as far as the budget goes."""
    shown: set[int] = set()
    left = _BUDGET
    for start, end in spans:
        end = min(end, start + left)
        shown.update(range(start, end))
        left -= max(end - start, 0)
    return sum(len(shown & set(range(a, b))) >= 0.9 * (b - a) for a, b in gold) / len(gold)


def _pieces(world: World) -> list[Chunk]:
    return [
        Chunk(item.source_id or "", start, start + _PIECE_CHARS, Counter(words_of(part)))
        for item in world.documents
        for start in range(0, len(item.content), _PIECE_CHARS)
        if (part := item.content[start : start + _PIECE_CHARS])
    ]


async def run(settings: Settings, world: World, table: Table, console: Console) -> None:
    runtime = joined_runtime(settings, unasked="a benchmark looks at what is stored")
    await runtime.open()
    await fill(runtime, world.documents, console)
    chunks, uids = await chunks_of(runtime)
    if len(world.documents) > len(labelled()):
        for compared in await in_conversations(runtime, Bm25(chunks), uids, world):
            table.add_row(*row_of(compared))
    else:
        table.add_row(*row_of(await in_chats(runtime, Bm25(_pieces(world)), uids, world)))
    await runtime.close()


def main() -> None:
    logging.disable(logging.INFO)
    console = Console(width=130)
    meetings = labelled()
    if not meetings:
        console.print(f"No sample meetings in {SAMPLE}: nothing is measured.")
        return
    table = Table("what", "questions", "ours", "BM25", "difference (95 %)")
    for name, world in (("conversations", conversations(meetings)), ("chats", chats(meetings))):
        settings = Settings(  # type: ignore[call-arg]
            _env_file=None,
            data_dir=Path(".data") / f"bench-{name}",
            embedder="local",
            extractor="rules",
        )
        with connected(settings) as resolved:
            asyncio.run(run(resolved, world, table, console))
    console.print(table)


if __name__ == "__main__":
    main()
