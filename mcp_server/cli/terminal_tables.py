"""Tables on a terminal and in a pipe: one line per row, and ids complete at any width."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_UNLIMITED = 20_000


@dataclass(frozen=True, slots=True)
class Column:
    """`ratio`: its share of the free width; None: as wide as its content."""

    name: str
    ratio: int | None = None
    right: bool = False


def console() -> Console:
    """As wide as the terminal. In a pipe nothing is cut, because a script wants all of it."""
    own = Console()
    if own.is_terminal or "COLUMNS" in os.environ:
        return own
    return Console(width=_UNLIMITED)


def show_note(note: str) -> None:
    """What a reader of the rows below should know."""
    if note:
        console().print(f"[yellow]{escape(note)}[/]", soft_wrap=True)


def show(columns: Iterable[Column], rows: Iterable[Iterable[str]], *, wrap: bool = False) -> None:
    """Rows are rich markup. `wrap`: a cell may take several lines instead of being cut."""
    out = console()
    limited = out.width < _UNLIMITED
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(
            column.name,
            justify="right" if column.right else "left",
            no_wrap=not (wrap and limited and column.ratio),
            overflow="fold" if wrap else "ellipsis",
            ratio=column.ratio if limited else None,
        )
    for row in rows:
        table.add_row(*row)
    table.expand = limited and any(column.ratio for column in columns)
    with out.capture() as printed:
        out.print(table)
    # Cells are padded to their column width; the last one need not be.
    for line in printed.get().splitlines():
        print(line.rstrip())
