"""Output of answers about events on a terminal."""

from typing import Any

from rich.markup import escape
from rich.syntax import Syntax
from rich.text import Text

from mcp_server.cli import terminal_tables
from mcp_server.cli.command_wording import in_commands
from mcp_server.cli.extraction_progress import read_progress
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.safe_text import joined, sentence_around, shown
from mcp_server.cli.session import Answer, OpenMemory, with_memory
from mcp_server.cli.terminal_tables import Column
from memory_core.kernel.short_ids import short
from memory_core.text.printable import single_line, visible

_CONTEXT_CHARS = 300
_QUOTE_CHARS = 1_000
_STATUS_STYLE = {"done": "green", "overdue": "red", "open": "yellow"}


def search(arguments: dict[str, Any], *, full: bool, as_json: bool) -> None:
    answer, why_empty = _ask("event_search", arguments, "events")
    if _printed_otherwise(answer, why_empty, as_json=as_json):
        return
    terminal_tables.show_note(answer["note"])
    show_events(answer["events"], full=full)
    _count(len(answer["events"]), answer["total"], answer)


def show(event_id: str, *, as_json: bool) -> None:
    async def work(memory: OpenMemory) -> Answer:
        arguments = {"event_id": await memory.event(event_id), "context_chars": _CONTEXT_CHARS}
        return await memory.ask("event_get", arguments)

    event = with_memory(work)
    if _as_json(event, as_json):
        return
    out = terminal_tables.console()
    out.print(f"[bold cyan]{event['category']}[/] [bold]{shown(event['narrative'])}[/]")
    made_by = f"{event['extractor']} {event['prompt_version']}, asked for by"
    for name, value in (
        ("id", event["event_id"]),
        ("when", (event["event_time"] or "")[:10] or "no date given"),
        *([("due", event["due"]["time"][:10])] if "due" in event else []),
        ("who", _roles(event) or "–"),
        ("document", f"{event['title'] or 'Untitled'} ({event['artifact_uid']})"),
        ("revision", f"{event['revision_id']}{'' if event['is_latest'] else ' (superseded)'}"),
        ("confidence", f"{event['confidence']:.2f}"),
        ("made by", f"{made_by} {event['requested_by']}"),
    ):
        out.print(f"{name:<12}{shown(value)}", soft_wrap=True)
    for item in event["evidence"]:
        before, after = sentence_around(
            item["text_before"] or "", item["quote"], item["text_after"] or ""
        )
        sentence = Text(f"\n{joined(before)}", style="dim")
        sentence.append(joined(item["quote"]), style="bold yellow not dim")
        sentence.append(joined(after))
        out.print(sentence, soft_wrap=not out.is_terminal)
        out.print(
            f"[dim]{item['match_kind']}, characters {item['start_char']}–{item['end_char']}[/]"
        )


def diff(which: str, older: str | None, newer: str | None, *, full: bool, as_json: bool) -> None:
    async def work(memory: OpenMemory) -> Answer:
        uid = await memory.document(which)
        return await memory.ask(
            "event_diff",
            {
                "artifact_uid": uid,
                "from_revision": await memory.revision(uid, older),
                "to_revision": await memory.revision(uid, newer),
            },
        )

    answer = with_memory(work)
    if _as_json(answer, as_json):
        return
    out = terminal_tables.console()
    out.print(f"[bold]{answer['from_revision']} → {answer['to_revision']}[/]")
    if answer["explanation"]:
        out.print(f"[yellow]{shown(in_commands(answer['explanation']))}[/]", soft_wrap=True)
    for title, style in (("added", "green"), ("removed", "red"), ("kept", "dim")):
        if answer[title]:
            out.print(f"\n[{style}]{title} ({len(answer[title])})[/]")
            show_events(answer[title], full=full, document=False)
    for item in answer["changed"]:
        out.print(f"\n[yellow]changed[/] {shown(item['after']['narrative'])}", soft_wrap=True)
        for change in item["changes"]:
            out.print(
                f"  {change['field']}: {shown(str(change['before']))} → "
                f"{shown(str(change['after']))}",
                soft_wrap=True,
            )
    out.print()
    if out.is_terminal:
        out.print(Syntax(visible(answer["text_diff"]), "diff", word_wrap=True))
    else:
        print(visible(answer["text_diff"]))


def timeline(arguments: dict[str, Any], *, full: bool, as_json: bool) -> None:
    answer, why_empty = _ask("timeline", arguments, "days")
    if _printed_otherwise(answer, why_empty, as_json=as_json):
        return
    events = [event for day in answer["days"] for event in day["events"]]
    if full:
        show_events(events, full=True)
    else:
        firsts = {day["events"][0]["event_id"]: day["day"] or "no date" for day in answer["days"]}
        terminal_tables.show(
            [Column("when"), Column("id"), Column("kind"), Column("what", 5), Column("in", 2)],
            (
                [
                    firsts.get(event["event_id"], ""),
                    short(event["event_id"]),
                    f"{event['category']} due" if event.get("due") else event["category"],
                    shown(event["narrative"]),
                    shown(_document(event)),
                ]
                for event in events
            ),
        )
    _count(len(events), answer["total"], answer)


def commitments(arguments: dict[str, Any], *, full: bool, as_json: bool) -> None:
    answer, why_empty = _ask("commitment_list", arguments, "commitments")
    if _printed_otherwise(answer, why_empty, as_json=as_json):
        return
    items = answer["commitments"]
    if full:
        for item in items:
            due = f"due {item['due'][:10]}" if item["due"] else "no due date"
            _show_whole(item["promised"], f"{_status(item)}  {due}")
            if item["fulfilled_by"]:
                terminal_tables.console().print("  [green]done by[/]")
                _show_whole(item["fulfilled_by"])
    else:
        terminal_tables.show(
            [
                *(Column("id"), Column("status"), Column("due"), Column("who", 2)),
                *(Column("promised", 4), Column("in", 2)),
            ],
            (
                [
                    short(item["promised"]["event_id"]),
                    _status(item),
                    (item["due"] or "")[:10],
                    shown(_names(item["promised"])),
                    shown(item["promised"]["narrative"]),
                    shown(_document(item["promised"])),
                ]
                for item in items
            ),
        )
    _count(len(items), answer["total"], answer)


def people(arguments: dict[str, Any], *, full: bool, as_json: bool) -> None:
    answer, why_empty = _ask("stakeholder_map", arguments, "stakeholders")
    if _printed_otherwise(answer, why_empty, as_json=as_json):
        return
    stakeholders = answer["stakeholders"]
    out = terminal_tables.console()
    if full:
        for person in stakeholders:
            also = f" (also {', '.join(person['aliases'])})" if person["aliases"] else ""
            out.print(
                f"[bold]{shown(person['name'] + also)}[/]  {shown(_roles_with_counts(person))}"
            )
            show_events(person["examples"], full=False)
            out.print()
    else:
        terminal_tables.show(
            [
                *(Column("name", 3), Column("events", right=True), Column("last")),
                *(Column("roles", 3), Column("in", 3)),
            ],
            (
                [
                    shown(person["name"]),
                    str(person["events"]),
                    (person["last_time"] or "")[:10],
                    shown(_roles_with_counts(person)),
                    shown(_document(person["examples"][0])),
                ]
                for person in stakeholders
            ),
        )
    over = f", in {answer['events_considered']:,} events"
    out.print(f"[dim]{len(stakeholders)} of {answer['total']:,}{over}[/]")


def show_events(events: list[Answer], *, full: bool, document: bool = True) -> None:
    if full:
        for event in events:
            _show_whole(event)
    else:
        event_rows(events, document=document)


def event_rows(events: list[Answer], *, document: bool = True) -> None:
    """One line per event."""
    columns = [Column("id"), Column("when"), Column("kind"), Column("what", 5)]
    if document:
        columns.append(Column("in", 2))
    terminal_tables.show(
        columns,
        (
            [
                short(event["event_id"]),
                _day(event),
                event["category"],
                shown(event["narrative"]),
                shown(_document(event)),
            ][: len(columns)]
            for event in events
        ),
    )


def _show_whole(event: Answer, heading: str = "") -> None:
    out = terminal_tables.console()
    title = heading or _day(event) or "no date"
    out.print(f"[bold]{short(event['event_id'])}[/]  [cyan]{event['category']}[/]  {title}")
    out.print(f"  {shown(event['narrative'])}", soft_wrap=True)
    if quote := _quote(event):
        out.print(f"  [dim]{quote}[/]", soft_wrap=True)
    whence = f"{_document(event)} ({short(event['artifact_uid'])})"
    out.print(f"  [dim]{shown(' · '.join(filter(None, [_roles(event), whence])))}[/]\n",
              soft_wrap=True)  # fmt: skip


def _ask(tool: str, arguments: dict[str, Any], items: str) -> tuple[Answer, str | None]:
    """The answer, and the reason if it has none of these items."""

    async def work(memory: OpenMemory) -> tuple[Answer, str | None]:
        given = dict(arguments)
        if given.get("artifact_uid"):
            given["artifact_uid"] = await memory.document(given["artifact_uid"])
        answer = await memory.ask(tool, given)
        if answer[items]:
            return answer, None
        progress = await read_progress(memory.runtime, given.get("artifact_uid"))
        return answer, progress.why_no_events()

    return with_memory(work)


def _printed_otherwise(answer: Answer, why_empty: str | None, *, as_json: bool) -> bool:
    """Print everything that is not a table: JSON, a question about the name, or why there is no
    answer. Returns whether it printed."""
    if as_json:
        print(json_text(answer if why_empty is None else {**answer, "why_empty": why_empty}))
    elif not _ambiguous(answer) and why_empty is not None:
        _say_why(answer, why_empty)
    return as_json or why_empty is not None


def _say_why(answer: Answer, why_empty: str) -> None:
    out = terminal_tables.console()
    if answer.get("actor_names") == []:
        out.print("No event has a person of that name. `mcp-memory people` shows the names.")
    out.print(f"[yellow]{escape(why_empty)}[/]", soft_wrap=True)


def _ambiguous(answer: Answer) -> bool:
    """Whether the search did not run because the name may mean several people."""
    candidates = answer.get("actor_candidates") or []
    named = bool(answer.get("actor_names"))
    if candidates:
        names = ", ".join(_candidate(person) for person in candidates)
        asked = "May be the same person:" if named else "Who is meant?"
        terminal_tables.console().print(
            f"[yellow]{asked}[/] {shown(names)}. Ask again with one of them.", soft_wrap=True
        )
    return bool(candidates) and not named


def _candidate(person: Answer) -> str:
    said = f", says {person['said_in']}" if person["said_in"] else ""
    return f"{person['actor']} ({person['events']}{said})"


def _count(shown_now: int, total: int | None, answer: Answer) -> None:
    """Print the number of results, and the names if an actor was given."""
    names = answer.get("actor_names")
    whose = f", of {shown(', '.join(names))}" if names else ""
    of = f" of {total:,}" if total is not None else ", and there are more"
    terminal_tables.console().print(f"[dim]{shown_now}{of}{whose}[/]")


def _as_json(answer: Answer, wanted: bool) -> bool:
    if wanted:
        print(json_text(answer))
    return wanted


def _status(item: Answer) -> str:
    return f"[{_STATUS_STYLE[item['status']]}]{item['status']}[/]"


def _document(event: Answer) -> str:
    return str(event["title"] or short(event["artifact_uid"]))


def _day(event: Answer) -> str:
    """A promise is listed by its due day, and marked as due."""
    if due := event.get("due"):
        return f"due {due['time'][:10]}"
    return (event["event_time"] or "")[:10]


def _names(event: Answer) -> str:
    return ", ".join(actor["ref"] for actor in event["actors"])


def _roles(event: Answer) -> str:
    return ", ".join(f"{actor['ref']} ({actor['role']})" for actor in event["actors"])


def _roles_with_counts(person: Answer) -> str:
    return ", ".join(f"{role} {count}" for role, count in person["roles"].items())


def _quote(event: Answer) -> str:
    """Its first quote, unless the narrative contains it."""
    evidence = event["evidence"] or []
    if not evidence or _bare(evidence[0]["quote"]) == _bare(event["narrative"]):
        return ""
    return f"“{shown(evidence[0]['quote'])}”"


def _bare(text: str) -> str:
    return single_line(text, _QUOTE_CHARS).rstrip(".!? ").casefold()
