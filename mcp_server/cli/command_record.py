"""Recording commands: a command that uses the memory is recorded as one call, with its tool calls
below it."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

import typer

from memory_core.kernel.errors import ErrorCode, MemoryFault

if TYPE_CHECKING:
    from memory_core.kernel.settings import Settings
    from memory_core.runtime import Runtime

_words: ContextVar[tuple[str, ...]] = ContextVar("command", default=())
_PROGRAM = "mcp-memory"


def begin(app: typer.Typer) -> str:
    """Parse the command line; returns the command's name, which consists of the program's own
    words."""
    given = sys.argv[1:]
    words = tuple(_command_words(app, given))
    _words.set(words)
    return " ".join([_PROGRAM, *words])


@asynccontextmanager
async def opened(
    settings: "Settings",
    *,
    worker: Literal["never", "when needed", "always"] = "never",
    system: str | None = None,
) -> AsyncIterator["Runtime"]:
    """The memory for one command, recorded as a call until the block ends."""
    from mcp_server.recording import Recorder
    from memory_core.telemetry import span_export
    from stack.connection import joined_runtime

    span_export.start(settings, "command")
    runtime = joined_runtime(settings, worker=worker, system=system)
    try:
        await runtime.open()
        recorder = Recorder(runtime.audit, "command")
        name = " ".join([_PROGRAM, *_words.get()])
        with recorder.recording("command", name, _parameters()) as call:
            try:
                yield runtime
            except BaseException as error:
                call.failed(_code_of(error))
                raise
            call.answered()
    finally:
        await runtime.close()


def _code_of(error: BaseException) -> str:
    if isinstance(error, MemoryFault):
        return error.code.value
    if isinstance(error, typer.Exit):
        return f"EXIT_{error.exit_code}"
    return ErrorCode.INTERNAL_ERROR if isinstance(error, Exception) else "CANCELLED"


def _command_words(app: typer.Typer, given: Sequence[str]) -> list[str]:
    """The words that name a command, without arguments such as a query or a path."""
    if not given:
        return []
    first = given[0]
    for group in app.registered_groups:
        if group.name == first and group.typer_instance is not None:
            return [first, *_command_words(group.typer_instance, given[1:])]
    names = {
        command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        for command in app.registered_commands
    }
    return [first] if first in names else []


def _parameters() -> dict[str, Any]:
    """The names of the options, and the number of other arguments."""
    given = sys.argv[1 + len(_words.get()) :] if _words.get() else []
    options = sorted({word.split("=", 1)[0] for word in given if word.startswith("--")} - {"--"})
    return {"options": options, "words": len(given)}
