"""`make demo`: the whole product on a temporary data dir, as a new user would see it."""

import asyncio
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
from mcp import Client
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mcp_server.cli.configuration import read_settings
from mcp_server.cli.safe_text import counted
from mcp_server.failures import error_in
from memory_core.kernel import ids, tls
from memory_core.kernel.database import Database
from memory_core.kernel.errors import MemoryFault, StackFault
from memory_core.kernel.shipped_files import shipped
from memory_core.kernel.short_ids import short
from memory_core.text.excerpt import excerpt
from stack.process import StackProcess
from stack.stack_state import StackState

EXTRACTION_SECONDS = 180.0
_SHOWN_PER_CATEGORY = 3
_POLL_SECONDS = 0.25
# The best passage is long enough to answer the question; the others are only a preview.
_PASSAGE_CHARS = (800, 240, 240)


@dataclass(frozen=True, slots=True)
class ShownEvent:
    category: str
    event_time: datetime | None
    due_time: datetime | None
    narrative: str
    quote: str
    title: str | None


@dataclass(frozen=True, slots=True)
class FinishedRun:
    run_id: str
    revisions: int
    events: int


def run() -> None:
    demo = Demo(Console(), read_settings().data_dir / "demo")
    demo.run()


class Demo:
    def __init__(self, console: Console, data_dir: Path) -> None:
        self._console = console
        self._data_dir = data_dir
        self._seconds: dict[str, float] = {}

    def run(self) -> None:
        shutil.rmtree(self._data_dir, ignore_errors=True)
        offline = {"EXTRACTOR": "rules", "EMBEDDER": "local", "LOG_LEVEL": "WARNING"}
        local = {"AUTH": "none", "MCP_HOST": "127.0.0.1", "DAGSTER_HOST": "127.0.0.1"}
        stack = StackProcess(self._data_dir, {**offline, **local})
        self._heading("1. Starting Postgres, Chroma, Dagster and the MCP server")
        try:
            with self._timed("start the stack"):
                state = stack.start()
            asyncio.run(self._show(state))
        finally:
            with self._timed("stop everything"):
                stack.stop()
        self._show_times()

    async def _show(self, state: StackState) -> None:
        assert state.mcp_url is not None
        assert state.postgres_dsn is not None
        self._console.print(f"[green]✓[/] MCP server at {state.mcp_url}")
        self._console.print(f"[green]✓[/] Dagster UI at {state.dagster_url}")
        self._heading("2. Ingesting the sample documents over MCP")
        async with Client(state.mcp_url) as client:
            with self._timed("ingest"):
                await self._ingest(client)
            self._heading("3. Extracting events (Dagster, rules extractor, no key needed)")
            with self._timed("extract events"):
                await self._wait(state.mcp_url)
            await self._show_events(state)
            self._heading("5. Asking the memory, as an assistant would")
            with self._timed("five questions"):
                await self._ask(client)
            await self._show_search(client)

    async def _ingest(self, client: Client) -> None:
        table = Table("document", "type", "status", "chunks", box=None, header_style="bold")
        for entry in json.loads((shipped("demo") / "manifest.json").read_text(encoding="utf-8")):
            # Read as bytes, because line endings are part of a document.
            content = (shipped("demo") / entry.pop("file")).read_bytes().decode()
            answer = await client.call_tool("artifact_ingest", {**entry, "content": content})
            result = _expect(answer)
            pieces = str(result["num_chunks"]) if result["is_chunked"] else "1"
            table.add_row(entry["title"], entry["artifact_type"], result["status"], pieces)
        self._console.print(table)

    async def _wait(self, mcp_url: str) -> None:
        health = mcp_url.removesuffix("/mcp") + "/health"
        deadline = time.monotonic() + EXTRACTION_SECONDS
        async with httpx.AsyncClient(
            timeout=10, trust_env=False, verify=tls.verify(health)
        ) as client:
            while time.monotonic() < deadline:
                queue = (await client.get(health)).json()["queue"]
                if not queue["pending"] and not queue["processing"]:
                    self._console.print(
                        f"[green]✓[/] {queue['done']} revisions done, {queue['failed']} failed"
                    )
                    return
                await asyncio.sleep(_POLL_SECONDS)
        raise StackFault(
            f"Extraction was not done within {EXTRACTION_SECONDS:.0f} s; "
            f"see {self._data_dir / 'logs'}"
        )

    async def _show_events(self, state: StackState) -> None:
        assert state.postgres_dsn is not None
        database = Database(state.postgres_dsn, max_connections=1, system="the runs of the demo")
        await database.open()
        try:
            async with database.session() as session:
                events = await session.rows(ShownEvent, "latest_events")
                runs = await session.rows(FinishedRun, "extraction_runs")
        finally:
            await database.close()
        for row in runs:
            self._console.print(
                f"[green]✓[/] run {state.dagster_url}/runs/{row.run_id}: "
                f"{counted(row.events, 'event')} from {counted(row.revisions, 'revision')}"
            )
        self._heading(f"4. {len(events)} events of the latest revisions, each with its proof")
        for category, members in groupby(events, key=lambda row: row.category):
            self._show_category(category, list(members))

    def _show_category(self, category: str, rows: list[ShownEvent]) -> None:
        table = Table(
            "when",
            "what",
            "exact quote",
            "in",
            title=f"{category} ({len(rows)})",
            title_justify="left",
            title_style="bold cyan",
            expand=True,
            show_lines=False,
        )
        table.columns[0].width = len("due 2026-01-01")
        for column, ratio in zip(table.columns[1:], (5, 5, 3), strict=True):
            column.ratio = ratio
        for row in rows[:_SHOWN_PER_CATEGORY]:
            quote = " ".join(row.quote.split())
            table.add_row(
                _when(row), escape(row.narrative), f"“{escape(quote)}”", escape(row.title or "")
            )
        self._console.print(table)
        more = len(rows) - _SHOWN_PER_CATEGORY
        if more > 0:
            self._console.print(f"[dim]… and {more} more[/]")

    async def _ask(self, client: Client) -> None:
        question = "What decisions were made about the pricing model?"
        arguments = {"query": "pricing model", "category": "Decision", "limit": 5}
        answer = await self._call(client, question, "event_search", arguments)
        for event in answer["events"]:
            self._quote(event["narrative"], event["evidence"])

        question = "What did Alice commit to deliver by the end of Q1?"
        arguments = {"actor": "Alice", "due_to": "2026-03-31"}
        answer = await self._call(client, question, "commitment_list", arguments)
        for item in answer["commitments"]:
            due = f", due {item['due'][:10]}" if item["due"] else ""
            statement = f"[{item['status']}{due}] {item['promised']['narrative']}"
            self._quote(statement, item["promised"]["evidence"])

        question = "What feedback did we get on the new screens?"
        arguments = {"query": "new screen", "category": "Feedback", "limit": 4}
        answer = await self._call(client, question, "event_search", arguments)
        for event in answer["events"]:
            self._quote(event["narrative"], event["evidence"])

        question = "What changed between the first two revisions of the pricing document?"
        uid = ids.artifact_uid("google_drive", self._pricing_source_id())
        history = _expect(await client.call_tool("artifact_history", {"artifact_uid": uid}))
        first, second = [revision["revision_id"] for revision in history["revisions"]][:2]
        arguments = {"artifact_uid": uid, "from_revision": first, "to_revision": second}
        answer = await self._call(client, question, "event_diff", arguments)
        for change in ("added", "removed"):
            for event in answer[change]:
                self._quote(f"[{change}] {event['narrative']}", event["evidence"])

        question = "Who was involved in the authentication redesign?"
        arguments = {"query": "authentication redesign", "limit": 6}
        answer = await self._call(client, question, "stakeholder_map", arguments)
        for person in answer["stakeholders"]:
            roles = ", ".join(f"{role} {count}×" for role, count in person["roles"].items())
            self._quote(f"{person['name']}: {roles}", person["examples"][0]["evidence"])

    async def _call(
        self, client: Client, question: str, tool: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        self._console.print(f"\n[bold cyan]{question}[/]\n[dim]{escape(f'{tool}({given})')}[/]")
        return _expect(await client.call_tool(tool, arguments))

    def _quote(self, statement: str, evidence: list[dict[str, Any]]) -> None:
        quote = " ".join(evidence[0]["quote"].split())
        self._console.print(f"  • {escape(statement)}\n    [dim]“{escape(quote)}”[/]")

    @staticmethod
    def _pricing_source_id() -> str:
        entries = json.loads((shipped("demo") / "manifest.json").read_text(encoding="utf-8"))
        wanted = (entry for entry in entries if "pricing-model" in entry["file"])
        source_id: str = next(wanted)["source_id"]
        return source_id

    async def _show_search(self, client: Client) -> None:
        question = "why did we drop SMS codes?"
        self._heading(f"6. And the text itself: hybrid_search “{question}”")
        answer = await client.call_tool("hybrid_search", {"query": question, "limit": 3})
        for hit, length in zip(_expect(answer)["results"], _PASSAGE_CHARS, strict=False):
            passage = excerpt(hit["text"], question, length)
            self._console.print(
                f"[bold]{escape(hit['title'] or '')}[/] [dim]{short(hit['artifact_uid'])}[/]\n"
                f"  {escape(passage)}"
            )

    def _show_times(self) -> None:
        self._heading("How long it took")
        for what, seconds in self._seconds.items():
            self._console.print(f"  {what:<18} {seconds:6.1f} s")
        self._console.print(
            "\nNext: [bold]mcp-memory up[/] (in a checkout: make up) keeps a stack running and "
            "says how to connect an MCP client."
        )

    def _heading(self, text: str) -> None:
        self._console.print(f"\n[bold]{text}[/]")

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self._seconds[what] = time.monotonic() - begun


def _when(event: ShownEvent) -> str:
    if event.due_time:
        return f"due {event.due_time.date().isoformat()}"
    return event.event_time.date().isoformat() if event.event_time else ""


def _expect(answer: Any) -> dict[str, Any]:
    if answer.is_error:
        raise MemoryFault(f"a tool failed: {error_in(answer)}")
    content: dict[str, Any] = answer.structured_content
    return content
