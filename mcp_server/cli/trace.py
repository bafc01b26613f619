"""`mcp-memory trace`: what happened to a document, who asked, where time and money went."""

from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from mcp_server.cli import terminal_tables
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.safe_text import shown
from mcp_server.cli.session import OpenMemory, with_operator
from memory_core.telemetry.trace_tree import (
    JOBS_SHOWN,
    Node,
    all_jobs_shown,
    find_subject,
    read_tree,
)

_GOOD = frozenset({"ok", "DONE"})


def run(subject: str, *, as_json: bool) -> None:
    async def work(memory: OpenMemory) -> list[Node]:
        runtime = memory.runtime
        async with runtime.database.session() as session:
            wanted = await find_subject(session, subject)
        return await read_tree(runtime.database, wanted, runtime.settings.prices)

    nodes = with_operator(work)
    if as_json:
        print(json_text({"trees": [node.as_json() for node in nodes]}))
        return
    out = terminal_tables.console()
    for node in nodes:
        out.print(_tree_of(node))
    if not all_jobs_shown(nodes):
        out.print(f"The first {JOBS_SHOWN} jobs are shown.")


def _tree_of(node: Node) -> Tree:
    tree = Tree(_line(node))
    for child in node.children:
        tree.children.append(_tree_of(child))
    return tree


def _line(node: Node) -> Text:
    outcome = f"[green]{node.outcome}[/]" if node.outcome in _GOOD else f"[red]{node.outcome}[/]"
    parts = [f"[bold]{_name(node)}[/]", outcome, *_measures(node), *_about(node)]
    return Text.from_markup("  ".join(parts))


def _name(node: Node) -> str:
    name = escape(shown(node.name))
    return name if node.kind in ("chunk", "model") else f"{node.kind} {name}"


def _measures(node: Node) -> list[str]:
    measures = [f"{node.at:%Y-%m-%d %H:%M:%S}Z"] if node.at else []
    if node.seconds is not None:
        measures.append(f"{node.seconds:.3f} s")
    if node.tokens:
        measures.append(f"{node.tokens:,} tokens")
    if node.dollars is not None:
        measures.append(f"${node.dollars:.4f}")
    return measures


def _about(node: Node) -> list[str]:
    details = node.details
    if node.kind == "call":
        return [f"[dim]by {escape(shown(details['principal']))}, {details['transport']}[/]"]
    if node.kind == "run":
        return [f"[dim]attempt {details['attempt']}[/]"]
    if node.kind != "job":
        return []
    lines = [f"[dim]{details['artifact_uid']} {escape(shown(details['title'] or ''))}[/]"]
    if details["waited_seconds"] is not None:
        lines.append(f"[dim]waited {details['waited_seconds']:.1f} s[/]")
    return lines
