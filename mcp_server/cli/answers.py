"""Tool answers on a terminal. The command line asks the very tools that assistants use."""

import asyncio
from typing import Any

from mcp import Client
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from mcp_server.cli.showing import as_json as json_text
from mcp_server.cli.showing import joined, sentence_around, shown
from mcp_server.server import build_server
from memory_core.errors import ErrorCode, MemoryFault
from memory_core.settings import load_settings
from memory_core.text.printable import visible

_CONTEXT_CHARS = 300
_STATUS_STYLE = {"done": "green", "overdue": "red", "open": "yellow", "unknown": "dim"}

Answer = dict[str, Any]


def ask(tool: str, arguments: dict[str, Any]) -> Answer:
    """Call one tool in this process; a structured error becomes ours again."""
    given = {name: value for name, value in arguments.items() if value is not None}
    settings = load_settings(log_level="ERROR")

    async def call() -> Any:
        async with Client(build_server(settings)) as client:
            return await client.call_tool(tool, given)

    result = asyncio.run(call())
    content: Answer = result.structured_content
    if result.is_error:
        raise MemoryFault(content["error"], code=ErrorCode(content["error_code"]))
    return content


def search(arguments: dict[str, Any], *, as_json: bool) -> None:
    answer = ask("event_search", arguments)
    if _as_json(answer, as_json) or _ambiguous(answer):
        return
    console = Console()
    console.print(_table(answer["events"]))
    console.print(f"[dim]{len(answer['events'])} of {answer['total']}{_looked_for(answer)}[/]")


def show(event_id: str, *, as_json: bool) -> None:
    event = ask("event_get", {"event_id": event_id, "context_chars": _CONTEXT_CHARS})
    if _as_json(event, as_json):
        return
    console = Console()
    console.print(f"[bold cyan]{event['category']}[/] [bold]{shown(event['narrative'])}[/]")
    console.print(f"when        {_day(event) or 'no date given'}")
    console.print(f"who         {_actors(event) or '–'}")
    console.print(f"document    {shown(event['title'])} ({event['revision_id']})")
    console.print(f"confidence  {event['confidence']:.2f}")
    console.print(
        f"made by     {event['extractor']} {shown(event['prompt_version'])}, asked for by "
        f"{event['requested_by']}"
    )
    for item in event["evidence"]:
        before, after = sentence_around(
            item["text_before"] or "", item["quote"], item["text_after"] or ""
        )
        sentence = Text(f"\n{joined(before)}", style="dim")
        sentence.append(joined(item["quote"]), style="bold yellow not dim")
        sentence.append(joined(after))
        console.print(sentence)
        console.print(
            f"[dim]{item['match_kind']}, characters {item['start_char']}–{item['end_char']}[/]"
        )


def diff(arguments: dict[str, Any], *, as_json: bool) -> None:
    answer = ask("event_diff", arguments)
    if _as_json(answer, as_json):
        return
    console = Console()
    console.print(f"[bold]{answer['from_revision']} → {answer['to_revision']}[/]")
    if answer["explanation"]:
        console.print(f"[yellow]{shown(answer['explanation'])}[/]")
    for title, style in (("added", "green"), ("removed", "red"), ("kept", "dim")):
        if answer[title]:
            console.print(f"\n[{style}]{title} ({len(answer[title])})[/]")
            console.print(_table(answer[title]))
    for item in answer["changed"]:
        console.print(f"\n[yellow]changed[/] {shown(item['after']['narrative'])}")
        for change in item["changes"]:
            console.print(
                f"  {change['field']}: {shown(str(change['before']))} → "
                f"{shown(str(change['after']))}"
            )
    console.print()
    console.print(Syntax(visible(answer["text_diff"]), "diff", word_wrap=True))


def timeline(arguments: dict[str, Any], *, as_json: bool) -> None:
    answer = ask("timeline", arguments)
    if _as_json(answer, as_json) or _ambiguous(answer):
        return
    console = Console()
    for day in answer["days"]:
        console.print(f"\n[bold]{day['day'] or 'No date given'}[/]")
        for event in day["events"]:
            console.print(f"  [cyan]{event['category']}[/] {shown(event['narrative'])}")
            console.print(f"    [dim]{_quote(event)}[/]")
    console.print(f"[dim]{sum(len(day['events']) for day in answer['days'])} of "
                  f"{answer['total']}{_looked_for(answer)}[/]")  # fmt: skip


def commitments(arguments: dict[str, Any], *, as_json: bool) -> None:
    answer = ask("commitment_list", arguments)
    if _as_json(answer, as_json) or _ambiguous(answer):
        return
    table = Table("status", "due", "who", "promised", "quote", "done by", expand=True)
    for item in answer["commitments"]:
        promised, done = item["promised"], item["fulfilled_by"]
        style = _STATUS_STYLE[item["status"]]
        table.add_row(
            f"[{style}]{item['status']}[/]",
            (item["due"] or "")[:10],
            _actors(promised),
            shown(promised["narrative"]),
            _quote(promised),
            _quote(done) if done else "",
        )
    console = Console()
    console.print(table)
    total = answer["total"] if answer["total"] is not None else "many"
    console.print(f"[dim]{len(answer['commitments'])} of {total}{_looked_for(answer)}[/]")


def _table(events: list[Answer]) -> Table:
    table = Table("when", "category", "what", "quote", "in", expand=True)
    for event in events:
        table.add_row(
            _day(event),
            event["category"],
            shown(event["narrative"]),
            _quote(event),
            shown(event["title"] or event["artifact_uid"]),
        )
    return table


def _ambiguous(answer: Answer) -> bool:
    candidates = answer.get("actor_candidates")
    if candidates:
        names = ", ".join(f"{person['actor']} ({person['events']})" for person in candidates)
        Console().print(f"[yellow]Who is meant?[/] {shown(names)}. Ask again with one of them.")
    return bool(candidates)


def _looked_for(answer: Answer) -> str:
    """Whose events these are, when a name was given."""
    names = answer["actor_names"]
    if names is None:
        return ""
    return f", of {shown(', '.join(names))}" if names else ": nobody is called so"


def _as_json(answer: Answer, wanted: bool) -> bool:
    if wanted:
        print(json_text(answer))
    return wanted


def _day(event: Answer) -> str:
    return (event["event_time"] or "")[:10]


def _actors(event: Answer) -> str:
    return shown(", ".join(f"{actor['ref']} ({actor['role']})" for actor in event["actors"]))


def _quote(event: Answer) -> str:
    evidence = event["evidence"] or []
    return f"“{shown(evidence[0]['quote'])}”" if evidence else ""
