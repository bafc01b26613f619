"""The tree of everything that happened to a document, a job or a call: tool call → job → run →
chunk → model call."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from memory_core.kernel.database import Database, Session
from memory_core.kernel.errors import NotFound
from memory_core.kernel.prices import Price
from memory_core.kernel.short_ids import find_artifact_uid

JOBS_SHOWN = 200
CALLS_SHOWN = 1_000
_TRACE = re.compile(r"[0-9a-f]{32}")

NodeKind = Literal["call", "job", "run", "chunk", "model"]


@dataclass(frozen=True, slots=True)
class TracedJob:
    job_id: UUID
    artifact_uid: str
    revision_id: str
    status: str
    requested_by: str | None
    trace_id: str | None
    requested_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    last_error_code: str | None
    title: str | None


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A row of the audit: one call of a tool."""

    task_id: UUID | None
    principal: str
    transport: str
    trace_id: str | None
    span_id: str | None
    parent_span_id: str | None
    tool_name: str
    error: str | None
    tokens_used: int
    cost_dollars: float
    created_at: datetime
    seconds: float | None


@dataclass(frozen=True, slots=True)
class TracedTransition:
    job_id: UUID
    ts: datetime
    next_status: str
    detail: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class TracedModelCall:
    job_id: UUID
    run_id: str | None
    attempt: int | None
    chunk_index: int | None
    kind: str
    model: str
    outcome: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    called_at: datetime


@dataclass(slots=True)
class Node:
    kind: NodeKind
    name: str
    at: datetime | None = None
    seconds: float | None = None
    outcome: str = "ok"
    tokens: int = 0  # sum over this node and all below it
    dollars: float | None = None  # None: none of the models has a price
    details: dict[str, Any] = field(default_factory=dict)
    children: list["Node"] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "at": self.at,
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "outcome": self.outcome,
            "tokens": self.tokens,
            "dollars": None if self.dollars is None else round(self.dollars, 6),
            **self.details,
            "children": [child.as_json() for child in self.children],
        }


@dataclass(frozen=True, slots=True)
class TraceSubject:
    """What the tree is about: exactly one of the three."""

    trace_id: str | None = None
    job_id: UUID | None = None
    artifact_uid: str | None = None


async def find_subject(session: Session, text: str) -> TraceSubject:
    """Find a trace by its 32 digits, a job by its id, or a document by its uid or the first
    characters of it."""
    text = text.strip().lower()
    is_trace = _TRACE.fullmatch(text) is not None
    if is_trace and await session.value(bool, "known_trace", trace_id=text):
        return TraceSubject(trace_id=text)
    try:
        return TraceSubject(job_id=UUID(text.removeprefix("job_")))
    except ValueError:
        pass
    if not text.startswith(("uid_", "art_")):
        raise NotFound(
            f"{text[:60]!r} is no trace, no job and no document. Give 32 digits of a trace, "
            "job_… or uid_…."
        )
    return TraceSubject(artifact_uid=await find_artifact_uid(session, text))


async def read_tree(
    database: Database, subject: TraceSubject, prices: dict[str, Price]
) -> list[Node]:
    async with database.session() as session:
        jobs = await session.rows(
            TracedJob,
            "traced_jobs",
            trace_id=subject.trace_id,
            job_id=subject.job_id,
            artifact_uid=subject.artifact_uid,
            limit=JOBS_SHOWN,
        )
        traces = {row.trace_id for row in jobs} | {subject.trace_id}
        calls = await session.rows(
            TracedCall, "traced_calls", trace_ids=[t for t in traces if t], limit=CALLS_SHOWN
        )
        job_ids = [row.job_id for row in jobs]
        transitions = await session.rows(TracedTransition, "traced_transitions", job_ids=job_ids)
        asked = await session.rows(TracedModelCall, "traced_model_calls", job_ids=job_ids)
    if not jobs and not calls:
        raise NotFound("Nothing is known of it (any more): the audit is kept for AUDIT_DAYS.")
    nodes = [(row, _job(row, transitions, asked, prices)) for row in jobs]
    return _below_calls(calls, nodes)


def _below_calls(calls: list[TracedCall], jobs: list[tuple[TracedJob, Node]]) -> list[Node]:
    """Nest jobs under the calls that requested them, and calls under the calls that made them."""
    nodes = {row.span_id: _call(row) for row in calls}
    roots: list[Node] = []
    for row in calls:
        parent = nodes.get(row.parent_span_id)
        (parent.children if parent is not None else roots).append(nodes[row.span_id])
    for job, node in jobs:
        asker = _requesting_call(job, calls)
        (nodes[asker.span_id].children if asker is not None else roots).append(node)
    for root in roots:
        _add_up(root)
    return roots


def _requesting_call(job: TracedJob, calls: list[TracedCall]) -> TracedCall | None:
    """The call that requested a job: the one whose answer names it, or the first of its trace."""
    of_trace = [call for call in calls if call.trace_id == job.trace_id]
    naming = [call for call in of_trace if call.task_id == job.job_id]
    return next(iter(naming or of_trace), None)


def _call(row: TracedCall) -> Node:
    return Node(
        "call",
        row.tool_name,
        at=row.created_at,
        seconds=row.seconds,
        outcome=row.error or "ok",
        tokens=row.tokens_used,
        dollars=row.cost_dollars or None,
        details={
            "trace_id": row.trace_id,
            "principal": row.principal,
            "transport": row.transport,
        },
    )


def _job(
    row: TracedJob,
    transitions: list[TracedTransition],
    asked: list[TracedModelCall],
    prices: dict[str, Price],
) -> Node:
    mine = [t for t in transitions if t.job_id == row.job_id]
    calls = [call for call in asked if call.job_id == row.job_id]
    end = row.finished_at
    return Node(
        "job",
        str(row.job_id),
        at=row.requested_at,
        seconds=(end - row.requested_at).total_seconds() if end else None,
        outcome=row.status,
        details={
            "artifact_uid": row.artifact_uid,
            "revision_id": row.revision_id,
            "title": row.title,
            "trace_id": row.trace_id,
            "requested_by": row.requested_by,
            "error": row.last_error_code,
            "waited_seconds": _waited(row),
        },
        children=_runs(mine, calls, prices),
    )


def _waited(row: TracedJob) -> float | None:
    if row.started_at is None:
        return None
    return round((row.started_at - row.requested_at).total_seconds(), 3)


def _runs(
    transitions: list[TracedTransition], calls: list[TracedModelCall], prices: dict[str, Price]
) -> list[Node]:
    """An attempt begins when a run claims the job, and ends with the next transition."""
    runs = []
    for this, following in zip(transitions, [*transitions[1:], None], strict=True):
        if this.next_status != "PROCESSING":
            continue
        detail = this.detail or {}
        made = [
            call
            for call in calls
            if (call.run_id, call.attempt) == (detail.get("run"), detail.get("attempt"))
        ]
        runs.append(
            Node(
                "run",
                str(detail.get("run")),
                at=this.ts,
                seconds=(following.ts - this.ts).total_seconds() if following else None,
                outcome=_end(following),
                details={"attempt": detail.get("attempt"), "generation": detail.get("generation")},
                children=_chunks(made, prices),
            )
        )
    return runs


def _end(following: TracedTransition | None) -> str:
    if following is None:
        return "PROCESSING"
    status, error = following.next_status, (following.detail or {}).get("error")
    return f"{error} → {status}" if error and status != "DONE" else status


def _chunks(calls: list[TracedModelCall], prices: dict[str, Price]) -> list[Node]:
    by_chunk: dict[int | None, list[TracedModelCall]] = {}
    for call in calls:
        by_chunk.setdefault(call.chunk_index, []).append(call)
    return [
        Node(
            "chunk",
            "events of all chunks" if index is None else f"chunk {index}",
            at=group[0].called_at,
            seconds=sum(call.seconds for call in group),
            children=[_model_call(call, prices) for call in group],
        )
        for index, group in sorted(by_chunk.items(), key=_chunks_first)
    ]


def _chunks_first(item: tuple[int | None, Any]) -> tuple[bool, int]:
    return item[0] is None, item[0] or 0


def _model_call(row: TracedModelCall, prices: dict[str, Price]) -> Node:
    price = prices.get(row.model)
    prompt, completion = row.prompt_tokens, row.completion_tokens
    return Node(
        "model",
        f"{row.kind} by {row.model}",
        at=row.called_at,
        seconds=row.seconds,
        outcome=row.outcome,
        tokens=prompt + completion,
        dollars=price.of(prompt, completion) if price else None,
    )


def _add_up(node: Node) -> None:
    for child in node.children:
        _add_up(child)
    node.tokens += sum(child.tokens for child in node.children)
    node.dollars = _sum([node.dollars, *(child.dollars for child in node.children)])


def _sum(costs: Iterable[float | None]) -> float | None:
    prices = [cost for cost in costs if cost is not None]
    return sum(prices) if prices else None


def all_jobs_shown(nodes: list[Node]) -> bool:
    return sum(_count(node) for node in nodes) < JOBS_SHOWN


def _count(node: Node) -> int:
    return (node.kind == "job") + sum(map(_count, node.children))
