"""How a function becomes a tool, and how every failure becomes the same structured answer."""

import json
import logging
from collections.abc import Callable
from typing import Any, get_args, get_origin

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp_types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from memory_core.artifacts.document import refuse_unstorable
from memory_core.errors import ErrorCode, InvalidInput, MemoryFault

log = logging.getLogger(__name__)


def read_tool(title: str, fn: Callable[..., Any]) -> Tool:
    """A tool that changes nothing."""
    return _tool(title, fn, ToolAnnotations(read_only_hint=True, open_world_hint=False))


def write_tool(
    title: str, fn: Callable[..., Any], *, destructive: bool = False, repeatable: bool = True
) -> Tool:
    """A tool that stores or deletes; `repeatable`: to call it again has no further effect."""
    annotations = ToolAnnotations(
        read_only_hint=False,
        destructive_hint=destructive,
        idempotent_hint=repeatable,
        open_world_hint=False,
    )
    return _tool(title, fn, annotations)


def _tool(title: str, fn: Callable[..., Any], annotations: ToolAnnotations) -> Tool:
    tool = Tool.from_function(fn, title=title, annotations=annotations)
    tool.fn_metadata = _Arguments(**dict(tool.fn_metadata))
    # Clients see it too: a misspelt parameter is an error, not silently ignored.
    tool.parameters["additionalProperties"] = False
    return tool


class _Arguments(FuncMetadata):
    """Takes strings for what they are.

    The SDK parses a string that happens to be JSON whenever a parameter is not a plain `str`;
    a search for `null`, `[]` or `{"a": 1}` would arrive as something else. Where a list is wanted,
    it is still unpacked, since some clients send lists as JSON text. A blank text that may be left
    out is left out: models fill in what they do not need.
    """

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        fields = self.arg_model.model_fields
        parsed = {
            name: value
            if isinstance(value, list) and name in fields and _takes_list(fields[name].annotation)
            else data[name]
            for name, value in super().pre_parse_json(data).items()
        }
        return {
            name: None
            if isinstance(value, str) and not value.strip() and _is_optional_text(fields.get(name))
            else value
            for name, value in parsed.items()
        }


def _is_optional_text(field: FieldInfo | None) -> bool:
    return field is not None and set(get_args(field.annotation)) == {str, type(None)}


def _takes_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(map(_takes_list, get_args(annotation)))


class MemoryServer(MCPServer[None]):
    """An MCP server whose tools fail in one shape: {"error", "error_code", "details"}."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            known = sorted(tool.name for tool in self._tool_manager.list_tools())
            return _failure(f"There is no tool {name!r}.", ErrorCode.NOT_FOUND, {"allowed": known})
        try:
            _refuse_what_validation_lets_pass(tool, arguments)
            return await super().call_tool(name, arguments, context)
        except InvalidInput as fault:
            return _failure(fault.message, fault.code, fault.details)
        except ToolError as error:
            return _explain(name, error, tool)


def _refuse_what_validation_lets_pass(tool: Tool, arguments: dict[str, Any]) -> None:
    """Unknown parameters, types that pydantic would convert, and text that no store can hold."""
    properties = tool.parameters.get("properties", {})
    definitions = tool.parameters.get("$defs", {})
    for name, value in tool.fn_metadata.pre_parse_json(arguments).items():
        if name not in properties:
            allowed = sorted(properties)
            raise InvalidInput(
                f"{tool.name} has no parameter {name!r}. Its parameters: {', '.join(allowed)}.",
                details={"parameter": name, "allowed": allowed},
            )
        if not _has_type(value, properties[name], definitions):
            problem = (
                f"{name}: wrong type (got {_shorten(value)}; "
                f"allowed: {_allowed(properties[name], definitions)})"
            )
            raise InvalidInput(
                f"Invalid arguments for {tool.name}. {problem}",
                details={"parameter": name, "problems": [problem]},
            )
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                refuse_unstorable(name, text, allow_nul=name == "content")


_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),  # 5.0 is an integer in JSON; 5.5 is refused by its validation
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _has_type(value: object, schema: dict[str, Any], definitions: dict[str, Any]) -> bool:
    """Left to itself, pydantic takes "5" or true for an integer and "yes" for a boolean."""
    if "$ref" in schema:
        return _has_type(value, _definition(schema, definitions), definitions)
    if "anyOf" in schema:
        return any(_has_type(value, option, definitions) for option in schema["anyOf"])
    if (expected := schema.get("type")) is None:
        return True
    if isinstance(value, bool):
        return bool(expected == "boolean")
    return isinstance(value, _JSON_TYPES[expected])


def _definition(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = definitions[schema["$ref"].rsplit("/", 1)[-1]]
    return found


def _explain(name: str, error: ToolError, tool: Tool) -> CallToolResult:
    cause = error.__cause__
    if isinstance(cause, BaseExceptionGroup):
        cause = _first_fault(cause)
    if isinstance(cause, MemoryFault):
        log.info("%s: %s %s", name, cause.code, cause.message)
        return _failure(cause.message, cause.code, cause.details)
    if isinstance(cause, ValidationError) and _is_about_arguments(cause, tool):
        message, details = _describe(cause, tool)
        return _failure(message, ErrorCode.VALIDATION_ERROR, details)
    log.error("%s failed unexpectedly", name, exc_info=cause or error)
    return _failure(
        f"{name} failed for a reason that is our fault; nothing was half-written. The server's "
        "log has the details. Try again, and report it if it happens again.",
        ErrorCode.INTERNAL_ERROR,
        {},
    )


def _first_fault(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """A task group wraps what its tasks raised; one of them says enough."""
    for member in group.exceptions:
        if isinstance(member, BaseExceptionGroup):
            member = _first_fault(member)
        if isinstance(member, MemoryFault):
            return member
    return group


def _is_about_arguments(error: ValidationError, tool: Tool) -> bool:
    return error.title == tool.fn_metadata.arg_model.__name__


def _describe(error: ValidationError, tool: Tool) -> tuple[str, dict[str, Any]]:
    """Each wrong parameter with what it may be."""
    lines, parameters = [], []
    properties = tool.parameters.get("properties", {})
    for fault in error.errors(include_url=False, include_context=False):
        parameter = str(fault["loc"][0])
        parameters.append(parameter)
        allowed = _allowed(properties.get(parameter, {}), tool.parameters.get("$defs", {}))
        shown = _shorten(fault["input"]) if fault["type"] != "missing" else "nothing"
        lines.append(f"{parameter}: {fault['msg']} (got {shown}; allowed: {allowed})")
    unique = list(dict.fromkeys(lines))
    details = {"parameter": parameters[0], "problems": unique}
    return f"Invalid arguments for {tool.name}. " + "; ".join(unique), details


_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "minLength": "at least {} character(s)",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} items",
}


def _allowed(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """A parameter's schema in words."""
    if "$ref" in schema:
        return _allowed(_definition(schema, definitions), definitions)
    if "anyOf" in schema:
        return " or ".join(_allowed(option, definitions) for option in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    words = [text.format(f"{schema[key]:,}") for key, text in _LIMITS.items() if key in schema]
    return ", ".join([str(schema.get("type", "any value")), *words])


def _shorten(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}…"


def _failure(message: str, code: ErrorCode, details: dict[str, Any]) -> CallToolResult:
    body = {"error": message, "error_code": code.value, "details": details}
    text = json.dumps(body, ensure_ascii=True, default=str)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=json.loads(text),
        is_error=True,
    )
