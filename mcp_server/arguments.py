"""The arguments of a call: which are accepted or refused, and the error messages."""

from typing import Any, get_args, get_origin

from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp_types import CallToolResult, InputRequiredResult, TextContent
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from memory_core.artifacts.document import refuse_unstorable
from memory_core.kernel import ids
from memory_core.kernel.errors import InvalidInput


class _Id:
    """Marks a parameter that is one of our ids. A value that cannot be an id is NOT_FOUND, like an
    id that we never gave out."""


AN_ID = _Id()


class Arguments(FuncMetadata):
    """Passes strings through unparsed, and writes answers without white space.

    The SDK parses a string that is valid JSON whenever a parameter is not a plain `str`, so a
    search for `null`, `[]` or `{"a": 1}` would arrive as something else. A list parameter still
    accepts JSON text, since some clients send lists that way. A blank optional text counts as left
    out: models fill in what they do not need.
    """

    # With every limit; clients get a shorter schema.
    full_schema: dict[str, Any]

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

    def convert_result(self, result: Any) -> CallToolResult | InputRequiredResult:
        """The text is what a model reads, and pays for."""
        assert isinstance(result, BaseModel)
        text = TextContent(type="text", text=result.model_dump_json())
        return CallToolResult(content=[text], structured_content=result.model_dump(mode="json"))


def _is_optional_text(field: FieldInfo | None) -> bool:
    return field is not None and set(get_args(field.annotation)) == {str, type(None)}


def _takes_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(map(_takes_list, get_args(annotation)))


def refuse_what_validation_lets_pass(tool: Tool, arguments: dict[str, Any]) -> None:
    """Refuse unknown parameters, types that pydantic would convert, and text that no store can
    contain."""
    properties, definitions = _full_schema(tool)
    for name, value in tool.fn_metadata.pre_parse_json(arguments).items():
        if name not in properties:
            allowed = sorted(properties)
            raise InvalidInput(
                f"{tool.name} has no parameter {shorten(name)}. Its parameters: "
                f"{', '.join(allowed) or 'none'}.",
                details={"parameter": name[:80], "allowed": allowed},
            )
        if not _has_type(value, properties[name], definitions):
            problem = (
                f"{name}: wrong type (got {shorten(value)}; "
                f"allowed: {_allowed(properties[name], definitions)})"
            )
            raise InvalidInput(
                f"Invalid arguments for {tool.name}. {problem}",
                details={"parameter": name, "problems": [problem]},
            )
        _refuse_unusable_text(name, value, is_id=_is_id(tool.fn_metadata.arg_model, name))


def _full_schema(tool: Tool) -> tuple[dict[str, Any], dict[str, Any]]:
    assert isinstance(tool.fn_metadata, Arguments)
    full = tool.fn_metadata.full_schema
    return full.get("properties", {}), full.get("$defs", {})


def _refuse_unusable_text(name: str, value: object, *, is_id: bool) -> None:
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and is_id:
            ids.refuse_impossible(name, text)
        elif isinstance(text, str):
            refuse_unstorable(name, text, allow_nul=name == "content")


def _is_id(arguments: type[BaseModel], name: str) -> bool:
    return AN_ID in arguments.model_fields[name].metadata


_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),  # 5.0 is an integer in JSON; validation refuses 5.5
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _has_type(value: object, schema: dict[str, Any], definitions: dict[str, Any]) -> bool:
    """Without this check, pydantic accepts "5" or true as an integer and "yes" as a boolean."""
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
    definition: dict[str, Any] = definitions[schema["$ref"].rsplit("/", 1)[-1]]
    return definition


def is_about_arguments(error: ValidationError, tool: Tool) -> bool:
    return error.title == tool.fn_metadata.arg_model.__name__


def describe(error: ValidationError, tool: Tool) -> tuple[str, dict[str, Any]]:
    """Each wrong parameter, with its allowed values."""
    faults = error.errors(include_url=False, include_context=False)
    problems = list(dict.fromkeys(_problem(fault, tool) for fault in faults))
    details = {"parameter": str(faults[0]["loc"][0]), "problems": problems}
    if len(problems) == 1 and faults[0]["type"] in _CHOICES:
        return problems[0], details
    return f"Invalid arguments for {tool.name}. " + "; ".join(problems), details


_CHOICES = {"enum", "literal_error"}


def _problem(fault: Any, tool: Tool) -> str:
    parameter, given = str(fault["loc"][0]), fault["input"]
    properties, definitions = _full_schema(tool)
    allowed = _allowed(properties.get(parameter, {}), definitions)
    if fault["type"] in _CHOICES:  # pydantic's own message would list the values twice
        shown = given if isinstance(given, str) and given.isprintable() else shorten(given)
        return f"Invalid {parameter}: {shown[:80]}. Must be {allowed}"
    shown = shorten(given) if fault["type"] != "missing" else "nothing"
    return f"{parameter}: {fault['msg']} (got {shown}; allowed: {allowed})"


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
        options = [option for option in schema["anyOf"] if option.get("type") != "null"]
        return " or ".join(_allowed(option, definitions) for option in options)
    if "enum" in schema:
        return "one of: " + ", ".join(map(str, schema["enum"]))
    words = [text.format(f"{schema[key]:,}") for key, text in _LIMITS.items() if key in schema]
    return ", ".join([str(schema.get("type", "any value")), *words])


def shorten(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}…"
