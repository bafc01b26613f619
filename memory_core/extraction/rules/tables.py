"""Tables that assign: people and roles, tasks with owners and dates, risks, decisions."""

from collections.abc import Iterator

from memory_core.extraction.model import ActorRole, Category
from memory_core.extraction.rules import confidence, sentence_labels
from memory_core.extraction.rules.blocks import Table
from memory_core.extraction.rules.drafts import EventDraft, role_of
from memory_core.extraction.rules.entries import status_category
from memory_core.extraction.rules.markup import plain
from memory_core.extraction.rules.people import Roster, listed
from memory_core.extraction.rules.word_lists import phrases
from memory_core.text import timed_patterns as re

_RULE = re.compile(r":?-{1,}:?$")
# The kinds of columns, by their headings.
_KINDS = ("person", "owner", "role", "task", "when", "status", "risk", "decision")
_COLUMNS = {head: kind for kind in _KINDS for head in phrases("columns", kind)}
_MAX_ROWS = 500
_IS_DONE = re.compile(r"\W*(?:done|complete|closed|shipped|✅)", re.IGNORECASE)

Cells = tuple[tuple[int, int], ...]


def find(text: str, table: Table, roster: Roster) -> Iterator[EventDraft]:
    rows = [row for row in table.rows[:_MAX_ROWS] if not _is_rule(text, row)]
    if not rows:
        return
    heads = [plain(text[a:b]).lower() for a, b in rows[0]]
    head = ["role" if words.startswith("role ") else _COLUMNS.get(words) for words in heads]
    if any(kind and kind != "status" for kind in head):
        for row in rows[1:]:
            yield from _row(text, head, row, roster)
    elif max(len(row) for row in rows) == 2:
        for row in rows:
            yield from _field(text, row, roster)


def _is_rule(text: str, row: Cells) -> bool:
    return all(_RULE.match(text[a:b]) or a == b for a, b in row)


def _row(text: str, head: list[str | None], row: Cells, roster: Roster) -> Iterator[EventDraft]:
    cells = {
        name: span
        for name, span in zip(head, row, strict=False)
        if name is not None and span[0] < span[1]
    }
    who = cells.get("owner") or cells.get("person") or (0, 0)
    owners = [roster.resolve(person.name) for person in listed(plain(text[slice(*who)]))]
    actors = tuple((name, ActorRole.OWNER) for name in owners)
    span = (row[0][0], max(end for _, end in row))
    when = text[slice(*cells.get("when", (0, 0)))]
    status = text[slice(*cells.get("status", (0, 0)))]
    if "task" in cells and (_IS_DONE.match(when) or _IS_DONE.match(status)):
        body = f"{text[slice(*cells['task'])]} (done)"
        yield EventDraft(
            Category.EXECUTION,
            confidence.SECTION,
            *span,
            cells["task"],
            actors,
            "entry",
            body,
            body,
        )
    elif "task" in cells and (owners or when):
        body = text[slice(*cells["task"])]
        wording = f"{body}, by {when}" if when else body
        yield EventDraft(
            Category.COMMITMENT, confidence.SECTION, *span, cells["task"], actors, "promise",
            wording, body, extra={"when": when},
        )  # fmt: skip
    elif "risk" in cells or "decision" in cells:
        kind, style = (Category.QUALITY_RISK, "entry")
        if "risk" not in cells:
            kind, style = (Category.DECISION, "decision")
        cell = cells.get("risk") or cells["decision"]
        body = text[slice(*cell)]
        yield EventDraft(kind, confidence.SECTION, *span, cell, actors, style, body, body)
    elif "role" in cells:
        role = plain(text[slice(*cells["role"])])
        for name in owners:
            yield EventDraft(
                Category.STAKEHOLDER, confidence.SECTION, *span, (span[0], cells["role"][1]),
                ((name, role_of(role)),), "listed_role", role, person=name,
            )  # fmt: skip


def _field(text: str, row: Cells, roster: Roster) -> Iterator[EventDraft]:
    """A row of a table without a head: "| Approver | Dana |" reads like "Approver: Dana"."""
    if len(row) < 2 or row[1][0] >= row[1][1]:
        return
    label, value = plain(text[slice(*row[0])]), text[slice(*row[1])]
    span = (row[0][0], row[1][1])
    if label.lower() == "status":
        if category := status_category(value, text):
            yield EventDraft(category, confidence.SECTION, *span, span, style="status", body=value)
    elif role := sentence_labels.role_label(label + ":"):
        for person in listed(plain(value)):
            name = roster.resolve(person.name)
            actors = ((name, sentence_labels.ROLE_LABELS[role[0]]),)
            yield EventDraft(
                Category.STAKEHOLDER, confidence.LABELLED, *span, row[1], actors, "role", role[0],
                person=name,
            )  # fmt: skip
