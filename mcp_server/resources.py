"""Resources: documents and events by address, for clients that attach rather than call."""

import re
from collections.abc import Awaitable, Callable
from functools import partial

from mcp_types import ListResourcesResult, PaginatedRequestParams, Resource

from mcp_server.failures import protocol_error
from mcp_server.tool import MemoryServer
from memory_core.artifacts import stored_artifacts
from memory_core.events import stored_events as events
from memory_core.events.stored_events import QuoteInContext
from memory_core.events.timeline import timeline
from memory_core.kernel import ids
from memory_core.kernel.errors import InvalidInput, MemoryFault
from memory_core.runtime import Runtime
from memory_core.search.event_filters import EventFilters

_CONTEXT_CHARS = 200
_TIMELINE_EVENTS = 100
# Documents per page of the list.
_LISTED = 100
_CURSOR_DIGITS = 12
_SPACE = re.compile(r"\s+")


def register(server: MemoryServer, runtime: Runtime) -> None:
    @server.resource(
        "memory://artifact/{artifact_uid}", title="A document, latest", mime_type="text/plain"
    )
    async def latest_artifact(artifact_uid: str) -> str:
        """The full text of a document's latest revision, exactly as ingested."""
        return await _answer(runtime, lambda: _text(runtime, artifact_uid, None))

    @server.resource(
        "memory://artifact/{artifact_uid}/{revision_id}",
        title="A document, one revision",
        mime_type="text/plain",
    )
    async def artifact_revision(artifact_uid: str, revision_id: str) -> str:
        """The full text of one revision, exactly as ingested."""
        return await _answer(runtime, lambda: _text(runtime, artifact_uid, revision_id))

    @server.resource(
        "memory://event/{event_id}", title="An event with its proof", mime_type="text/markdown"
    )
    async def event(event_id: str) -> str:
        """One event, each quote in its surroundings."""
        return await _answer(runtime, lambda: _event(runtime, event_id))

    @server.resource(
        "memory://timeline/{artifact_uid}",
        title="A document's events in time order",
        mime_type="text/markdown",
    )
    async def artifact_timeline(artifact_uid: str) -> str:
        """The events of a document's latest revision, day by day, with their quotes."""
        return await _answer(runtime, lambda: _timeline(runtime, artifact_uid))

    server.serve("resources/list", PaginatedRequestParams, partial(_list, runtime))


async def _list(runtime: Runtime, _: object, asked: PaginatedRequestParams) -> ListResourcesResult:
    """Documents, the last changed first."""
    try:
        await runtime.open()
        begin = _offset(asked.cursor)
        page = await stored_artifacts.list_documents(runtime, limit=_LISTED, offset=begin)
    except MemoryFault as fault:
        raise protocol_error(fault) from fault
    end = begin + len(page.documents)
    return ListResourcesResult(
        resources=[
            Resource(
                uri=f"memory://artifact/{one.artifact_uid}",
                name=one.title or one.artifact_uid,
                description=f"{one.artifact_type} from {one.source_system}",
                mime_type="text/plain",
            )
            for one in page.documents
        ],
        next_cursor=str(end) if end < page.total else None,
    )


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < _CURSOR_DIGITS):
        raise InvalidInput("That cursor is not one of this list.", details={"parameter": "cursor"})
    return int(cursor)


async def _answer(runtime: Runtime, read: Callable[[], Awaitable[str]]) -> str:
    try:
        await runtime.open()
        return await read()
    except MemoryFault as fault:
        raise protocol_error(fault) from fault


async def _text(runtime: Runtime, artifact_uid: str, revision_id: str | None) -> str:
    ids.refuse_impossible("artifact_uid", artifact_uid)
    ids.refuse_impossible("revision_id", revision_id or "")
    stored = await stored_artifacts.get_revision(
        runtime, artifact_uid=artifact_uid, revision_id=revision_id
    )
    return stored.content or ""


async def _event(runtime: Runtime, event_id: str) -> str:
    detail = await events.get_event(runtime, ids.parse_uuid("event_id", event_id), _CONTEXT_CHARS)
    row = detail.event
    when = row.event_time.date().isoformat() if row.event_time else "no date given"
    lines = [
        f"# {row.category}: {row.narrative}",
        "",
        f"- when: {when}",
        *([f"- due: {row.due_time.date().isoformat()}"] if row.due_time else []),
        f"- who: {', '.join(a['ref'] + ' (' + a['role'] + ')' for a in row.actors_json) or '–'}",
        f"- document: {row.title or row.artifact_uid}, revision {row.revision_id}",
        f"- confidence: {row.confidence:.2f}",
    ]
    for item in detail.evidence:
        lines += [
            "",
            _quoted(item),
            f"> (characters {item.start_char}–{item.end_char}, {item.match_kind})",
        ]
    return "\n".join(lines)


def _quoted(item: QuoteInContext) -> str:
    """In one paragraph: a separate line would end the Markdown quotation."""
    before, after = item.text_before or "", item.text_after or ""
    return "> …" + _SPACE.sub(" ", f"{before}**{item.quote}**{after}") + "…"


async def _timeline(runtime: Runtime, artifact_uid: str) -> str:
    ids.refuse_impossible("artifact_uid", artifact_uid)
    # Raises NotFound if there is no such document.
    await stored_artifacts.list_revisions(runtime, artifact_uid)
    entries = await timeline(
        runtime, None, EventFilters(artifact_uid=artifact_uid), limit=_TIMELINE_EVENTS
    )
    lines = []
    for day in entries.days:
        lines += ["", f"## {day.day.isoformat() if day.day else 'No date given'}", ""]
        for row in day.events:
            proof = entries.evidence[row.event_id]
            quote = f" — “{_SPACE.sub(' ', proof[0].quote)}”" if proof else ""
            lines.append(f"- **{row.category}** {row.narrative}{quote}")
    return "\n".join(lines).strip() or "No events."
