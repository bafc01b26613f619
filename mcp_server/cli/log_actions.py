"""The actions of `mcp-memory log …` and `mcp-memory projections …`."""

import contextlib
import re
from collections.abc import Callable
from uuid import UUID

from rich.console import Console

from mcp_server.cli import terminal_tables
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.cli.safe_text import shown
from mcp_server.cli.session import OpenMemory, with_operator, with_transaction
from mcp_server.cli.terminal_tables import Column
from memory_core.kernel.errors import InvalidInput
from memory_core.kernel.times import parse_time
from memory_core.log import checkpoint
from memory_core.log.aggregate_state import State, state_of
from memory_core.log.change import AggregateType, Change, aggregate_id
from memory_core.log.change_types import change_types
from memory_core.log.checkpoint import Status
from memory_core.log.follower import follow as follow_log
from memory_core.log.lag import COUNTED, read_lags
from memory_core.log.log_reader import last, read
from memory_core.log.rebase import rebase as rebase_log

_PAGE = 200


def tail(lines: int, kinds: str | None, *, follow: bool, as_json: bool) -> None:
    types = change_types(kinds)
    tell = _tell_json if as_json else _printer()

    async def work(memory: OpenMemory) -> None:
        database = memory.runtime.database
        async with database.session() as session:
            after = await last(session, lines, types)
            while page := await read(session, after, _PAGE, types):
                for change in page:
                    tell(change)
                after = page[-1].position
        if follow:
            async for change in follow_log(database, after, types):
                tell(change)

    with contextlib.suppress(KeyboardInterrupt):
        with_operator(work)


def _tell_json(change: Change) -> None:
    # Each change is one line, so that a script can read line by line.
    print(re.sub(r"\n\s*", "", json_text(change.as_json())), flush=True)


def _printer() -> Callable[[Change], None]:
    console = Console(soft_wrap=True)

    def tell(change: Change) -> None:
        named = {
            name: value
            for name, value in change.payload.items()
            if isinstance(value, str | int | float)
        }
        counted = {
            name: len(value) for name, value in change.payload.items() if isinstance(value, list)
        }
        said = " ".join(f"{name}={shown(str(value))}" for name, value in (named | counted).items())
        by = change.actor_id or change.metadata.get("source") or ""
        console.print(
            f"[dim]{change.timestamp:%Y-%m-%d %H:%M:%S}[/] [bold]{shown(change.event_type)}[/] "
            f"{said} [dim]v{change.version} {shown(by)}[/]",
            highlight=False,
        )

    return tell


def state(aggregate: str, at: str | None) -> None:
    moment = parse_time("--at", at)

    async def work(memory: OpenMemory) -> State:
        whole = await memory.document(aggregate) if aggregate.startswith("uid_") else aggregate
        kind, id_ = _aggregate(whole)
        async with memory.runtime.database.session() as session:
            return await state_of(session, kind, id_, at=moment)

    print(json_text(with_operator(work).as_json()))


def _aggregate(text: str) -> tuple[str, UUID]:
    for prefix, kind in (("uid_", AggregateType.ARTIFACT), ("mem_", AggregateType.MEMORY)):
        if text.startswith(prefix):
            return kind.value, aggregate_id(kind, text)
    name, _, id_ = text.partition(":")
    if name not in {kind.value for kind in AggregateType} or not id_:
        kinds = ", ".join(kind.value for kind in AggregateType)
        raise InvalidInput(
            f"{text!r} names no aggregate: give uid_… or mem_…, or TYPE:ID with a type of {kinds}."
        )
    with contextlib.suppress(ValueError):
        return name, UUID(id_)
    return name, aggregate_id(AggregateType(name), id_)


def rebase() -> None:
    done = with_operator(lambda memory: rebase_log(memory.runtime.database))
    print(
        f"{done.changes} changes and {done.checkpoints} checkpoints have positions of this server."
    )


def projections(*, as_json: bool) -> None:
    lags = with_operator(lambda memory: read_lags(memory.runtime.database))
    if as_json:
        print(json_text({"projections": [lag.as_json() for lag in lags]}))
        return
    if not lags:
        print("No projection has run yet: `mcp-memory up`, or `mcp-memory worker`, runs them.")
        return
    names = ("projection", "status", "behind", "seconds", "dead letters", "done")
    terminal_tables.show(
        [*(Column(name) for name in names), Column("why", 1)],
        (
            [
                shown(lag.point.name),
                lag.point.status,
                f"{lag.changes}{'+' if lag.changes >= COUNTED else ''}",
                f"{lag.seconds:.1f}",
                str(lag.dead_letters),
                str(lag.point.processed),
                shown(lag.as_json()["reason"] or ""),
            ]
            for lag in lags
        ),
        wrap=True,
    )


_DONE = {
    "paused": "{name} is paused at {position}.",
    "running": "{name} continues from {position}.",
    "rebuilding": "{name} will be rebuilt by the worker; `projections status` shows how far it is.",
}


def set_status(name: str, status: Status) -> None:
    point = with_transaction(lambda session: checkpoint.set_status(session, name, status))
    print(_DONE[status].format(name=name, position=point.position))
