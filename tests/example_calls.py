"""One call of every tool that works and one that is refused, over the demo corpus.

`examples()` yields a call and wants to be sent its answer: later calls use ids of earlier answers.
The caller may be synchronous or not, and use any transport.
"""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

UNKNOWN_UID = "uid_0000000000000000"
NOTE = "Decision: we launch in May. Alice Chen will draft the plan by Friday.\n"


@dataclass(frozen=True, slots=True)
class Example:
    tool: str
    arguments: Json
    # Arguments of a call that fails, and the code that it fails with.
    refused: Json
    code: str = "VALIDATION_ERROR"


Story = Generator[Example, Json, None]


def examples(file: Path | None = None) -> Story:
    """`file`: one that may be imported by its path, where that tool is offered."""
    yield from _memories()
    yield from _documents(file)
    yield from _events()
    yield Example("embedding_health", {}, {"verbose": True})


def _memories() -> Story:
    stored = yield Example(
        "memory_store",
        {"content": "Prefers answers in French", "type": "preference", "confidence": 0.9},
        {"content": "Prefers tea", "type": "taste", "confidence": 0.9},
    )
    yield Example(
        "memory_search", {"query": "which language?", "limit": 1}, {"query": "x", "limit": 500}
    )
    yield Example("memory_list", {"type": "preference"}, {"offset": -1})
    yield Example(
        "memory_delete",
        {"memory_id": stored["memory_id"]},
        {"memory_id": "mem_0000000000000000"},
        "NOT_FOUND",
    )
    turn = {"conversation_id": "planning", "role": "user", "turn_index": 0}
    said = {**turn, "content": "Hello"}
    yield Example("history_append", said, {**said, "role": "robot"})
    conversation = {"conversation_id": "planning"}
    yield Example("history_get", conversation, {**conversation, "limit": 99})
    yield Example("history_delete", conversation, {"conversation_id": "no such"}, "NOT_FOUND")


def _documents(file: Path | None) -> Story:
    note = {"artifact_type": "note", "source_system": "obsidian", "source_id": "notes/kickoff.md"}
    ingested = yield Example(
        "artifact_ingest",
        {**note, "title": "Kickoff", "ts": "2026-03-02T10:00:00Z", "content": NOTE},
        {**note, "ts": "yesterday", "content": NOTE},
    )
    yield Example(
        "artifact_history",
        {"artifact_uid": ingested["artifact_uid"]},
        {"artifact_uid": UNKNOWN_UID},
        "NOT_FOUND",
    )
    yield Example(
        "artifact_delete",
        {"artifact_uid": ingested["artifact_uid"]},
        {"artifact_uid": UNKNOWN_UID},
        "NOT_FOUND",
    )
    answer = yield Example(
        "artifact_search",
        {"query": "pricing outcome", "artifact_type": "email", "limit": 1},
        {"query": "pricing", "artifact_type": "letter"},
    )
    yield Example(
        "artifact_get",
        {"artifact_uid": answer["results"][0]["artifact_uid"]},
        {"artifact_uid": UNKNOWN_UID},
        "NOT_FOUND",
    )
    question = {"query": "why did we drop SMS codes?"}
    yield Example("hybrid_search", {**question, "limit": 1}, {**question, "limit": 99})
    if file is not None:
        imported = yield Example(
            "artifact_ingest_file", {"path": str(file)}, {"path": "/etc/hostname"}
        )
        yield Example(
            "artifact_delete",
            {"artifact_uid": imported["created"][0]["artifact_uid"]},
            {},
        )


def _events() -> Story:
    answer = yield Example(
        "event_search",
        {"query": "pricing model", "category": "Decision", "limit": 1},
        {"category": "Rumour"},
    )
    [event] = answer["events"]
    yield Example(
        "event_get",
        {"event_id": event["event_id"], "context_chars": 80},
        {"event_id": "evt_abc123"},
        "NOT_FOUND",
    )
    document = {"artifact_uid": event["artifact_uid"]}
    unknown = {"artifact_uid": UNKNOWN_UID}
    yield Example("event_list_for_revision", document, unknown, "NOT_FOUND")
    yield Example("job_status", document, unknown, "NOT_FOUND")
    yield Example("job_list", {"status": "DONE", "limit": 1}, {"cursor": "the next one"})
    waiting = yield Example("event_reextract", {**document, "force": True}, {})
    job = {"job_id": waiting["job_id"]}
    yield Example("job_cancel", job, {"job_id": "job_abc123"}, "NOT_FOUND")
    yield Example("event_reextract", document, unknown, "NOT_FOUND")
    scope = yield Example("artifact_search", {"query": "Lantern beta scope", "limit": 1}, {})
    yield Example(
        "event_diff",
        {"artifact_uid": scope["results"][0]["artifact_uid"]},
        unknown,
        "NOT_FOUND",
    )
    yield Example("stakeholder_map", {"query": "authentication redesign", "limit": 1}, {"limit": 0})
    yield Example(
        "commitment_list",
        {"actor": "Alice Chen", "due_to": "2026-03-31", "limit": 1},
        {"status": "forgotten"},
    )
    yield Example("timeline", {"query": "beta", "limit": 2}, {"time_from": "soon"})
