"""How a function becomes a tool, and how every failure becomes the same kind of answer."""

import inspect
import logging
import re
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from mcp.server.lowlevel import NotificationOptions
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    RequestParams,
    ToolAnnotations,
)
from mcp_types import Tool as ListedTool
from pydantic import AnyUrl, BaseModel, ValidationError

from mcp_server import schemas
from mcp_server.access import Access
from mcp_server.arguments import (
    Arguments,
    describe,
    is_about_arguments,
    refuse_what_validation_lets_pass,
    shorten,
)
from mcp_server.failures import error_in, failed_call, protocol_error
from mcp_server.recording import Recorder
from memory_core.access.credential import require
from memory_core.kernel.errors import ErrorCode, InvalidInput, MemoryFault, NotFound
from memory_core.kernel.principal import asking, current
from memory_core.log.origin import acting
from memory_core.runtime import Runtime
from memory_core.telemetry.masking import masked

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolFunction:
    """A function of a runtime and a client's arguments, with its title and annotations."""

    title: str
    fn: Callable[..., Any]
    annotations: ToolAnnotations

    def of(self, runtime: Runtime) -> Tool:
        """The tool, bound to this memory."""
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
    """The function without its first parameter, also in its signature."""

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
    """A tool that stores or deletes. `repeatable`: calling it again has no further effect."""
    annotations = ToolAnnotations(
        read_only_hint=False,
        destructive_hint=destructive,
        idempotent_hint=repeatable,
        open_world_hint=False,
    )
    return ToolFunction(title, fn, annotations)


def scope_of(tool: Tool) -> str:
    """The scope that a principal needs to call it, as `read_tool` and `write_tool` set it."""
    assert tool.annotations is not None
    return "read" if tool.annotations.read_only_hint else "write"


# The models that many tools return, and the tool whose schema describes them in full.
_SPELLS_OUT_EVENTS = "event_search"
_EVENTS = frozenset({"EventOut", "EvidenceInContext", "ActorCandidate"})
# Models that no schema describes in full: docs/tools.md shows them.
_DETAILS = frozenset(
    {"ChunkInfo", "ExtractedWith", "ImportedItem", "JobRow", "JobTransition", "Neighbor"}
)


class Stream(Protocol):
    """Answers that continue until their client leaves."""

    def end(self) -> None: ...


class MemoryServer(MCPServer[None]):
    """An MCP server whose tools fail in one form: {"error", "error_code", "details"}."""

    streams: tuple[Stream, ...] = ()
    access: Access
    # Over HTTP the middleware has already counted every request.
    counts_calls = False

    def serve(
        self, method: str, params: type[RequestParams], answer: Callable[..., Awaitable[BaseModel]]
    ) -> None:
        """Handle a protocol request that the SDK leaves to us, or answers differently."""
        self._lowlevel_server.add_request_handler(method, params, answer)

    def announce_resource_changes(self) -> None:
        """The greeting tells clients of protocols before 2026-07-28 which notifications they get;
        later clients ask for them."""
        server = self._lowlevel_server
        options = NotificationOptions(resources_changed=True)
        greeting = partial(server.create_initialization_options, options)
        server.create_initialization_options = greeting  # type: ignore[method-assign]

    def end_streams(self) -> None:
        """Called before the server stops: endless answers would keep it waiting."""
        for stream in self.streams:
            stream.end()

    def __init__(self, *given: Any, recorder: Recorder, **named: Any) -> None:
        super().__init__(*given, **named)
        self.recorder = recorder

    async def list_tools(self) -> list[ListedTool]:
        """The tools that the principal may call."""
        scopes = current().scopes
        allowed = {
            tool.name for tool in self._tool_manager.list_tools() if scope_of(tool) in scopes
        }
        return [tool for tool in await super().list_tools() if tool.name in allowed]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        tool = self._tool_manager.get_tool(name)
        # The name of an unknown tool may be any text, so it is not kept.
        tool_name = name if tool is not None else "?"
        with self.recorder.recording("tool", tool_name, _kept(tool, arguments)) as call:
            answer = await self._answer(name, arguments, context)
            if not isinstance(answer, CallToolResult) or not answer.is_error:
                call.answered(getattr(answer, "structured_content", None))
            else:
                call.failed(str(error_in(answer)["error_code"]))
            return answer

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        name, ids = _address(str(uri))
        with self.recorder.recording("resource", name, ids) as call:
            try:
                require(current(), "read", "A resource")
                with asking(current()):
                    answer = await super().read_resource(uri, context)
            except MemoryFault as fault:
                call.failed(fault.code.value)
                raise protocol_error(fault) from fault
            except (MCPError, ResourceError) as error:
                fault_of_it = _of_resource(name, error, str(uri))
                call.failed(fault_of_it.error.data["error_code"])
                raise fault_of_it from error
            call.answered()
            return answer

    async def _answer(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            names = sorted(tool.name for tool in self._tool_manager.list_tools())
            return failed_call(
                f"There is no tool {shorten(name)}.", ErrorCode.NOT_FOUND, {"allowed": names}
            )
        try:
            if self.counts_calls and self.access.limiter is not None:
                await self.access.limiter.admit(current())
            require(current(), scope_of(tool), name)
            refuse_what_validation_lets_pass(tool, arguments)
            with asking(current()), acting(source=f"tool {name}"):
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
        prompt = self._prompt_manager.get_prompt(name)
        names = [argument.name for argument in (prompt.arguments if prompt else None) or ()]
        kept = masked(arguments or {}, names)
        with self.recorder.recording("prompt", name if prompt else "?", kept) as call:
            try:
                self._refuse_wrong_prompt(name, arguments or {})
            except MemoryFault as fault:
                call.failed(fault.code.value)
                raise protocol_error(fault) from fault
            answer = await super().get_prompt(name, arguments, context)
            call.answered()
            return answer

    def _refuse_wrong_prompt(self, name: str, arguments: dict[str, Any]) -> None:
        prompt = self._prompt_manager.get_prompt(name)
        if prompt is None:
            names = sorted(prompt.name for prompt in self._prompt_manager.list_prompts())
            raise NotFound(f"There is no prompt {shorten(name)}.", details={"allowed": names})
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


def _kept(tool: Tool | None, arguments: dict[str, Any]) -> dict[str, Any]:
    """The masked arguments, for the record."""
    if tool is None:
        return masked(arguments, ())
    words = _WORDS.get(tool.name)
    if words is None:
        words = _WORDS[tool.name] = frozenset(_enumerated(tool.parameters))
    return masked(arguments, tool.parameters["properties"], words)


# By tool: the values that its schema lists.
_WORDS: dict[str, frozenset[str]] = {}


def _enumerated(schema: Any) -> Iterator[str]:
    """Every text that a schema lists as a value."""
    if isinstance(schema, dict):
        yield from (word for word in schema.get("enum", ()) if isinstance(word, str))
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from _enumerated(part)


_ADDRESS = re.compile(r"memory://(?P<kind>artifact|event|timeline)/(?P<rest>.*)", re.DOTALL)


def _address(uri: str) -> tuple[str, dict[str, Any]]:
    """The kind of a resource and its ids, from memory://artifact/uid_…/rev_…."""
    match = _ADDRESS.fullmatch(uri)
    if match is None:
        return "?", masked({"uri": uri}, ("uri",))
    names = ("event_id",) if match["kind"] == "event" else ("artifact_uid", "revision_id")
    return f"memory://{match['kind']}", masked(
        dict(zip(names, match["rest"].split("/"), strict=False)), names
    )


def _of_resource(name: str, error: MCPError | ResourceError, uri: str) -> MCPError:
    """Our own errors stay as they are. The SDK would log others with the address, which may be any
    text."""
    if isinstance(error, MCPError):
        return error
    if isinstance(error, ResourceNotFoundError):
        return protocol_error(NotFound(f"There is no resource {shorten(uri)}."), uri=uri)
    _log_unexpected(name, error.__cause__ or error)
    fault = MemoryFault(
        "Reading it failed for a reason that is our fault. The server's log has the details.",
        code=ErrorCode.INTERNAL_ERROR,
    )
    return protocol_error(fault, uri=uri)


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
    """Log where it happened, but not the message: a driver's message may repeat a document's text.
    LOG_LEVEL=DEBUG shows it."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s failed unexpectedly: %s\n%s", name, type(error).__name__, frames.rstrip())
    log.debug("%s failed unexpectedly", name, exc_info=error)


def _first_fault(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """A task group wraps what its tasks raised; one exception says enough."""
    for member in group.exceptions:
        if isinstance(member, BaseExceptionGroup):
            member = _first_fault(member)
        if isinstance(member, MemoryFault):
            return member
    return group
