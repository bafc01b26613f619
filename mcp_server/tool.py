"""How a function becomes a tool, and how every failure becomes the same answer."""

import inspect
import logging
import re
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, GetPromptResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError

from mcp_server import schemas
from mcp_server.arguments import (
    Arguments,
    describe,
    is_about_arguments,
    refuse_what_validation_lets_pass,
    shorten,
)
from mcp_server.failures import error_in, failed_call, protocol_error
from memory_core.kernel.errors import OUTAGES, ErrorCode, InvalidInput, MemoryFault, NotFound
from memory_core.log.origin import acting
from memory_core.runtime import Runtime

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolFunction:
    """A function of a runtime and a client's arguments, and what clients are told of it."""

    title: str
    fn: Callable[..., Any]
    annotations: ToolAnnotations

    def of(self, runtime: Runtime) -> Tool:
        """The tool that works on this memory."""
        fn = _bound(self.fn, runtime)
        words = " ".join((inspect.getdoc(fn) or "").split())
        tool = Tool.from_function(
            fn, title=self.title, description=words, annotations=self.annotations
        )
        full, metadata = tool.parameters, tool.fn_metadata
        tool.parameters = schemas.of_arguments(full)
        assert metadata.output_schema is not None
        spelled = frozenset() if fn.__name__ == _SPELLS_OUT_EVENTS else _EVENTS
        answers = schemas.of_answers(metadata.output_schema, spelled | _DETAILS)
        tool.fn_metadata = Arguments(
            **{**dict(metadata), "output_schema": answers}, full_schema=full
        )
        return tool


def _bound(fn: Callable[..., Any], runtime: Runtime) -> Callable[..., Any]:
    """The function without its first parameter, also for those who look at its signature."""

    async def call(**arguments: Any) -> Any:
        return await fn(runtime, **arguments)

    signature = inspect.signature(fn, eval_str=True)
    _, *parameters = signature.parameters.values()
    call.__name__, call.__doc__, call.__module__ = fn.__name__, fn.__doc__, fn.__module__
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {item.name: item.annotation for item in parameters}
    call.__annotations__["return"] = signature.return_annotation
    return call


def read_tool(title: str, fn: Callable[..., Any]) -> ToolFunction:
    """A tool that changes nothing."""
    return ToolFunction(title, fn, ToolAnnotations(read_only_hint=True, open_world_hint=False))


def write_tool(
    title: str, fn: Callable[..., Any], *, destructive: bool = False, repeatable: bool = True
) -> ToolFunction:
    """A tool that stores or deletes; `repeatable`: to call it again has no further effect."""
    annotations = ToolAnnotations(
        read_only_hint=False,
        destructive_hint=destructive,
        idempotent_hint=repeatable,
        open_world_hint=False,
    )
    return ToolFunction(title, fn, annotations)


# The shapes that many tools return, and the tool whose schema spells them out.
_SPELLS_OUT_EVENTS = "event_search"
_EVENTS = frozenset({"EventOut", "EvidenceInContext", "Candidate"})
# Parts of an answer that no schema spells out: docs/tools.md shows them.
_DETAILS = frozenset({"ChunkInfo", "ExtractedWith", "ImportedItem", "Neighbor"})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What is kept of a call: ids, how it went and how long it took; no text of any kind."""

    tool: str
    artifact_uid: str | None
    revision_id: str | None
    # "ok", or the code of its error.
    outcome: str
    milliseconds: float

    @classmethod
    def of(
        cls,
        name: str,
        arguments: dict[str, Any],
        answer: CallToolResult | InputRequiredResult | None,
        seconds: float,
    ) -> "ToolCall":
        """`answer`: None where the client gave up waiting, or the server was stopped."""
        answered = answer.structured_content if isinstance(answer, CallToolResult) else None
        ids = {**arguments, **(answered or {})}
        return cls(
            tool=_id_alone(name) or "?",
            artifact_uid=_id_alone(ids.get("artifact_uid")),
            revision_id=_id_alone(ids.get("revision_id")),
            outcome=_outcome(answer),
            milliseconds=round(seconds * 1000, 1),
        )


_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)


def _id_alone(value: object) -> str | None:
    """A client may send any text as an id; a log is no place for it."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def _outcome(answer: CallToolResult | InputRequiredResult | None) -> str:
    if not isinstance(answer, CallToolResult):
        return "CANCELLED"
    return str(error_in(answer)["error_code"]) if answer.is_error else "ok"


# What the caller cannot mend: worth seeing where LOG_LEVEL leaves out the rest.
_FAULTS = OUTAGES | {ErrorCode.INTERNAL_ERROR, ErrorCode.STACK_ERROR}


def _record(call: ToolCall) -> None:
    """The one place where a call is put on record, whatever its transport and its end."""
    log.log(
        logging.WARNING if call.outcome in _FAULTS else logging.INFO,
        "tool=%s artifact_uid=%s revision_id=%s outcome=%s ms=%.1f",
        call.tool,
        call.artifact_uid or "-",
        call.revision_id or "-",
        call.outcome,
        call.milliseconds,
    )


class Stream(Protocol):
    """Answers that go on until their client leaves."""

    def end(self) -> None: ...


class MemoryServer(MCPServer[None]):
    """An MCP server whose tools fail in one shape: {"error", "error_code", "details"}."""

    streams: tuple[Stream, ...] = ()

    def end_streams(self) -> None:
        """Before the server stops: answers without an end would keep it waiting."""
        for stream in self.streams:
            stream.end()

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        begun = time.perf_counter()
        answer: CallToolResult | InputRequiredResult | None = None
        try:
            answer = await self._answer(name, arguments, context)
            return answer
        finally:
            _record(ToolCall.of(name, arguments, answer, time.perf_counter() - begun))

    async def _answer(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            known = sorted(tool.name for tool in self._tool_manager.list_tools())
            return failed_call(
                f"There is no tool {shorten(name)}.", ErrorCode.NOT_FOUND, {"allowed": known}
            )
        try:
            refuse_what_validation_lets_pass(tool, arguments)
            with acting(source=f"tool {name}"):
                return await super().call_tool(name, arguments, context)
        except MemoryFault as fault:
            return failed_call(fault.message, fault.code, fault.details)
        except ToolError as error:
            return _explain(name, error, tool)

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[None, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        try:
            self._refuse_wrong_prompt(name, arguments or {})
        except MemoryFault as fault:
            raise protocol_error(fault) from fault
        return await super().get_prompt(name, arguments, context)

    def _refuse_wrong_prompt(self, name: str, arguments: dict[str, Any]) -> None:
        prompt = self._prompt_manager.get_prompt(name)
        if prompt is None:
            known = sorted(prompt.name for prompt in self._prompt_manager.list_prompts())
            raise NotFound(f"There is no prompt {shorten(name)}.", details={"allowed": known})
        wanted = {argument.name: argument.required for argument in prompt.arguments or ()}
        missing = [name for name, required in wanted.items() if required and name not in arguments]
        unknown = [name for name in arguments if name not in wanted]
        if missing or unknown:
            problem = (
                f"needs {missing[0]!r}" if missing else f"has no argument {shorten(unknown[0])}"
            )
            raise InvalidInput(
                f"The prompt {name} {problem}. Its arguments: {', '.join(wanted)}.",
                details={"parameter": (missing or unknown)[0][:80], "allowed": list(wanted)},
            )


def _explain(name: str, error: ToolError, tool: Tool) -> CallToolResult:
    cause = error.__cause__
    if isinstance(cause, BaseExceptionGroup):
        cause = _first_fault(cause)
    if isinstance(cause, MemoryFault):
        return failed_call(cause.message, cause.code, cause.details)
    if isinstance(cause, ValidationError) and is_about_arguments(cause, tool):
        message, details = describe(cause, tool)
        return failed_call(message, ErrorCode.VALIDATION_ERROR, details)
    _log_unexpected(name, cause or error)
    return failed_call(
        f"{name} failed for a reason that is our fault; nothing was half-written. The server's "
        "log has the details. Try again, and report it if it happens again.",
        ErrorCode.INTERNAL_ERROR,
        {},
    )


def _log_unexpected(name: str, error: BaseException) -> None:
    """Where it happened, but not what was said there: a driver's words may repeat a document's
    text. LOG_LEVEL=DEBUG shows them."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s failed unexpectedly: %s\n%s", name, type(error).__name__, frames.rstrip())
    log.debug("%s failed unexpectedly", name, exc_info=error)


def _first_fault(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """A task group wraps what its tasks raised; one of them says enough."""
    for member in group.exceptions:
        if isinstance(member, BaseExceptionGroup):
            member = _first_fault(member)
        if isinstance(member, MemoryFault):
            return member
    return group
