"""Output of passages and documents on a terminal."""

import re
import sys
import textwrap
from typing import Any

from rich.markup import escape
from rich.text import Text

from mcp_server.cli import safe_text, terminal_tables
from mcp_server.cli.extraction_progress import ExtractionProgress, read_progress
from mcp_server.cli.safe_text import counted, shown
from mcp_server.cli.session import Answer, OpenMemory, with_memory
from mcp_server.cli.terminal_tables import Column
from memory_core.artifacts import stored_artifacts
from memory_core.artifacts.document import ArtifactType
from memory_core.kernel.database import columns
from memory_core.kernel.errors import InvalidInput
from memory_core.kernel.short_ids import short
from memory_core.text.excerpt import excerpt
from memory_core.text.printable import visible

_EXCERPT_CHARS = 300
_BEGINNING_CHARS = 600
_EVENTS_SHOWN = 20


def search(arguments: dict[str, Any], *, full: bool, as_json: bool) -> None:
    async def work(memory: OpenMemory) -> tuple[Answer, ExtractionProgress | None]:
        if arguments["artifact_uid"]:
            arguments["artifact_uid"] = await memory.document(arguments["artifact_uid"])
        answer = await memory.ask("hybrid_search", {**arguments, "full_chunks": full})
        return answer, None if answer["results"] else await read_progress(memory.runtime)

    answer, progress = with_memory(work)
    if as_json:
        print(safe_text.as_json(answer))
        return
    out = terminal_tables.console()
    if progress is not None:
        out.print(progress.why_no_passages())
    terminal_tables.show_note(answer["note"])
    for number, hit in enumerate(answer["results"], start=1):
        out.print(f"[bold]{number}. {shown(_name(hit))}[/]  [dim]{_source_of(hit)}[/]")
        if full:
            text = visible(hit["text"]).strip()
        else:
            text = visible(excerpt(hit["text"], arguments["query"], _EXCERPT_CHARS))
        out.print(_marked(_indented(text, out.width), arguments["query"]), soft_wrap=True)
        out.print()


def documents(
    words: str, kind: str | None, source: str | None, *, limit: int, offset: int, as_json: bool
) -> None:
    if kind is not None and kind not in list(ArtifactType):
        allowed = ", ".join(one.value for one in ArtifactType)
        raise InvalidInput(f"--type {kind} is no type: choose one of {allowed}.")

    async def work(memory: OpenMemory) -> tuple[stored_artifacts.DocumentPage, ExtractionProgress]:
        page = await stored_artifacts.list_documents(
            memory.runtime,
            words=words,
            artifact_type=kind,
            source_system=source,
            limit=limit,
            offset=offset,
        )
        return page, await read_progress(memory.runtime)

    page, progress = with_memory(work)
    if as_json:
        listed = [columns(row) for row in page.documents]
        for row in listed:
            del row["total"]
        print(safe_text.as_json({"documents": listed, "total": page.total}))
        return
    out = terminal_tables.console()
    if not page.documents:
        out.print((progress.documents and "No document matches.") or progress.why_no_passages())
        return
    terminal_tables.show(
        [
            Column("id"), Column("type"), Column("changed"), Column("events", right=True),
            Column("title", ratio=3), Column("from", ratio=2),
        ],
        (
            [
                short(row.artifact_uid),
                row.artifact_type,
                f"{row.latest_since:%Y-%m-%d}",
                _events(row.event_count, row.job_status),
                shown(row.title or "–"),
                shown(row.source_id or row.source_system),
            ]
            for row in page.documents
        ),
    )  # fmt: skip
    out.print(f"[dim]{len(page.documents)} of {page.total:,}[/]")


def document(
    which: str, revision: str | None, *, text_only: bool, full: bool, as_json: bool
) -> None:
    async def work(memory: OpenMemory) -> tuple[Answer, Answer, Answer]:
        uid = await memory.document(which)
        revision_id = await memory.revision(uid, revision)
        answer = await memory.ask("artifact_get", {"artifact_uid": uid, "revision_id": revision_id})
        if text_only:
            return answer, {}, {}
        history = await memory.ask("artifact_history", {"artifact_uid": uid})
        events = await memory.ask(
            "event_list_for_revision",
            {"artifact_uid": uid, "revision_id": answer["revision_id"], "include_evidence": True},
        )
        return answer, history, events

    answer, history, events = with_memory(work)
    if text_only and not as_json:
        sys.stdout.write(answer["content"])
        return
    if as_json:
        rest = {"revisions": history["revisions"], "events": events["events"]} if history else {}
        print(safe_text.as_json({**answer, **rest}))
        return
    _show_document(answer, history["revisions"], events, full=full)


def _show_document(
    document: Answer, revisions: list[Answer], events: Answer, *, full: bool
) -> None:
    from mcp_server.cli.command_wording import in_commands
    from mcp_server.cli.event_tables import event_rows

    out = terminal_tables.console()
    out.print(f"[bold]{shown(document['title'] or 'Untitled')}[/]")
    for name, value in (
        ("id", document["artifact_uid"]),
        (
            "revision",
            f"{document['revision_id']}{'' if document['is_latest'] else ' (superseded)'}",
        ),
        ("type", document["artifact_type"]),
        ("from", f"{document['source_system']} {document['source_id']}".strip()),
        ("address", document["source_url"]),
        ("written", (document["source_ts"] or "")[:16].replace("T", " ")),
        ("author", document["author"]),
        ("participants", ", ".join(document["participants"])),
        ("size", f"{document['token_count']:,} tokens, {document['chunk_count'] or 1} chunks"),
    ):
        if value:
            out.print(f"{name:<13}{shown(value)}", soft_wrap=True)
    if len(revisions) > 1:
        out.print(f"\n[bold]{len(revisions)} revisions[/]")
        terminal_tables.show(
            [Column("revision"), Column("stored"), Column("events", right=True), Column("")],
            (
                [
                    short(row["revision_id"]),
                    row["ingested_at"][:16].replace("T", " "),
                    _events(row["event_count"], row["job_status"]),
                    "latest" if row["is_latest"] else "",
                ]
                for row in revisions
            ),
        )
    out.print(f"\n[bold]{counted(events['total'], 'event')}[/]")
    if not events["events"]:
        out.print(escape(in_commands(events["explanation"])))
    else:
        event_rows(events["events"][: None if full else _EVENTS_SHOWN], document=False)
        more = events["total"] - _EVENTS_SHOWN
        if more > 0 and not full:
            out.print(f"[dim]… and {more} more: --full shows all[/]")
    out.print("\n[bold]Text[/]")
    text = visible(document["content"])
    beginning = text if full or len(text) <= _BEGINNING_CHARS else text[:_BEGINNING_CHARS] + " …"
    out.print(Text(beginning), soft_wrap=True)
    if beginning is not text:
        out.print(f"[dim]mcp-memory documents show {short(document['artifact_uid'])} --text "
                  "prints all of it[/]")  # fmt: skip


def _events(number: int, status: str | None) -> str:
    """How many events, or why that is not known yet."""
    if status == "DONE":
        return str(number)
    states = {
        "FAILED": "[red]failed[/]",
        "CANCELED": "[dim]canceled[/]",
        "PROCESSING": "[dim]at work[/]",
    }
    return states.get(status or "", "[dim]waiting[/]")


def _name(hit: Answer) -> str:
    if hit["kind"] == "memory":
        return f"memory: {hit['memory_type']}"
    return str(hit["title"] or "Untitled")


def _source_of(hit: Answer) -> str:
    if hit["kind"] == "memory":
        return str(hit["memory_id"])
    parts = [short(hit["artifact_uid"]), hit["artifact_type"], (hit["source_ts"] or "")[:10]]
    return escape(", ".join(filter(None, parts)))


def _indented(text: str, width: int) -> str:
    lines = [
        part
        for line in text.splitlines()
        for part in textwrap.wrap(line, max(width - 3, 20), break_on_hyphens=False) or [""]
    ]
    return "\n".join(f"   {line}".rstrip() for line in lines)


def _marked(text: str, query: str) -> Text:
    """The text with the words of the query highlighted."""
    marked = Text(text)
    words = [re.escape(word) for word in re.findall(r"\w+", query) if len(word) > 2]
    if words:
        marked.highlight_regex(rf"(?i)\b(?:{'|'.join(words)})", style="bold yellow")
    return marked
