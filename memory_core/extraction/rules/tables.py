"""Tables that assign: people and roles, tasks with owners and dates, risks, decisions."""

import re
from collections.abc import Iterator

from memory_core.extraction.model import ActorRole, Category
from memory_core.extraction.rules import confidence, labels
from memory_core.extraction.rules.blocks import Table
from memory_core.extraction.rules.drafts import Draft, role_of
from memory_core.extraction.rules.entries import status_category
from memory_core.extraction.rules.markup import plain
from memory_core.extraction.rules.people import Roster, is_name, listed

_RULE = re.compile(r":?-{1,}:?$")
# What the head of a column says about its cells.
_COLUMNS: dict[str, tuple[str, ...]] = {
    "person": ("person", "name", "who", "member", "people", "contact"),
    "owner": ("owner", "owners", "assignee", "assigned to", "responsible", "lead", "dri"),
    "role": ("role", "roles", "responsibility", "responsibilities", "position"),
    "task": (
        "action", "actions", "action item", "task", "tasks", "milestone", "deliverable", "todo",
        "to do", "what", "item", "next step",
    ),
    "when": (
        "due", "date", "due date", "deadline", "target", "target date", "when", "by", "eta",
    ),
    "risk": ("risk", "risks", "concern", "issue", "blocker", "problem"),
    "decision": ("decision", "decisions", "resolution"),
}  # fmt: skip
_MAX_ROWS = 500
_IS_DONE = re.compile(r"\W*(?:done|complete|closed|shipped|✅)", re.IGNORECASE)

Cells = tuple[tuple[int, int], ...]


def find(text: str, table: Table, roster: Roster) -> Iterator[Draft]:
    rows = [row for row in table.rows[:_MAX_ROWS] if not _is_rule(text, row)]
    if not rows:
        return
    head = [_column(text[a:b]) for a, b in rows[0]]
    if any(head):
        for row in rows[1:]:
            yield from _row(text, head, row, roster)
    elif max(len(row) for row in rows) == 2:
        for row in rows:
            yield from _field(text, row, roster)


def _is_rule(text: str, row: Cells) -> bool:
    return all(_RULE.match(text[a:b]) or a == b for a, b in row)


def _column(head: str) -> str | None:
    words = plain(head).lower()
    for name, heads in _COLUMNS.items():
        if words in heads or (name == "role" and words.startswith("role ")):
            return name
    return None


def _row(text: str, head: list[str | None], row: Cells, roster: Roster) -> Iterator[Draft]:
    cells = {
        name: span
        for name, span in zip(head, row, strict=False)
        if name is not None and span[0] < span[1]
    }
    owners = _people(text, cells.get("owner") or cells.get("person"), roster)
    span = (row[0][0], max(end for _, end in row))
    if "task" in cells and (owners or "when" in cells) and not _IS_DONE.match(_when(text, cells)):
        yield _task(text, cells, span, owners)
    elif "risk" in cells:
        yield _entry(text, Category.QUALITY_RISK, cells["risk"], span, owners)
    elif "decision" in cells:
        yield _entry(text, Category.DECISION, cells["decision"], span, owners)
    elif "role" in cells and owners:
        yield from _role(text, cells["role"], span, owners)


def _when(text: str, cells: dict[str, tuple[int, int]]) -> str:
    return text[slice(*cells["when"])] if "when" in cells else ""


def _people(text: str, cell: tuple[int, int] | None, roster: Roster) -> list[str]:
    if cell is None:
        return []
    return [roster.resolve(p.name) for p in listed(plain(text[cell[0] : cell[1]]))]


def _task(
    text: str, cells: dict[str, tuple[int, int]], span: tuple[int, int], owners: list[str]
) -> Draft:
    body = text[slice(*cells["task"])]
    when = _when(text, cells)
    actors = tuple((name, ActorRole.OWNER) for name in owners)
    return Draft(
        Category.COMMITMENT, confidence.SECTION, *span, cells["task"], actors, "promise",
        f"{body}, by {when}" if when else body, body, extra={"when": when},
    )  # fmt: skip


def _entry(
    text: str, category: Category, cell: tuple[int, int], span: tuple[int, int], owners: list[str]
) -> Draft:
    body = text[slice(*cell)]
    style = "decision" if category is Category.DECISION else "entry"
    actors = tuple((name, ActorRole.OWNER) for name in owners)
    return Draft(category, confidence.SECTION, *span, cell, actors, style, body, body)


def _role(
    text: str, cell: tuple[int, int], span: tuple[int, int], owners: list[str]
) -> Iterator[Draft]:
    role = plain(text[slice(*cell)])
    for name in owners:
        yield Draft(
            Category.STAKEHOLDER, confidence.SECTION, *span, (span[0], cell[1]),
            ((name, role_of(role)),), "listed_role", role, person=name,
        )  # fmt: skip


def _field(text: str, row: Cells, roster: Roster) -> Iterator[Draft]:
    """A row of a table without head: "| Approver | Dana |" reads like "Approver: Dana"."""
    if len(row) < 2 or row[1][0] >= row[1][1]:
        return
    label = plain(text[slice(*row[0])])
    span = (row[0][0], row[1][1])
    value = text[slice(*row[1])]
    if label.lower() == "status":
        if category := status_category(value):
            yield Draft(category, confidence.SECTION, *span, span, style="status", body=value)
        return
    role = labels.role_label(label + ":")
    if role is None:
        return
    for person in listed(plain(value)):
        if is_name(person.name):
            name = roster.resolve(person.name)
            actors = ((name, labels.ROLE_LABELS[role[0]]),)
            yield Draft(
                Category.STAKEHOLDER, confidence.LABELLED, *span, row[1], actors, "role", role[0],
                person=name,
            )  # fmt: skip
