"""The schemas of arguments and answers that clients see. Every conversation pays for each word.

Validation still uses pydantic's own schemas. These say less: no titles, no references, no lengths
(a text that is too long is refused with its limit), and for answers only names and JSON types.
"""

from typing import Any

Schema = dict[str, Any]

_OF_ARGUMENTS = ("description", "enum", "default", "maximum")
# A bound that no caller will reach is not worth showing.
_FAR = 100_000
_OF_ANSWERS = ("description",)


def of_arguments(full: Schema) -> Schema:
    """Unknown parameters are forbidden, and clients see that too."""
    definitions = full.get("$defs", {})
    lean: Schema = {"type": "object", "properties": {}}
    for name, schema in full.get("properties", {}).items():
        lean["properties"][name] = _argument(schema, definitions)
    if full.get("required"):
        lean["required"] = full["required"]
    return {**lean, "additionalProperties": False}


def _argument(schema: Schema, definitions: Schema) -> Schema:
    """Null is accepted for a parameter that may be left out, but it is not shown."""
    [kind] = [option for option in _options(schema, definitions) if option.get("type") != "null"]
    merged = {**kind, **schema}
    lean: Schema = {"type": kind["type"]}
    if kind["type"] == "array":
        lean["items"] = _argument(kind["items"], definitions)
    for key in _OF_ARGUMENTS:
        if merged.get(key) is not None and not (key == "maximum" and merged[key] >= _FAR):
            lean[key] = merged[key]
    return lean


def of_answers(full: Schema, elsewhere: frozenset[str] = frozenset()) -> Schema:
    """`elsewhere`: models (by name) that another tool's schema describes in full."""
    definitions = {
        name: {"type": "object"} if name in elsewhere else schema
        for name, schema in full.get("$defs", {}).items()
    }
    return _answer(full, definitions)


def _answer(schema: Schema, definitions: Schema) -> Schema:
    options = _options(schema, definitions)
    if not options:
        return {}
    types = list(dict.fromkeys(option["type"] for option in options))
    lean: Schema = {"type": types[0] if len(types) == 1 else types}
    for option in options:
        if items := _answer(option.get("items", {}), definitions):
            lean["items"] = items
        members = {
            name: shown
            for name, member in option.get("properties", {}).items()
            if (shown := _answer(member, definitions))
        }
        if members:
            lean["properties"] = members
    for key in _OF_ANSWERS:
        if key in schema:
            lean[key] = schema[key]
    return lean


def _options(schema: Schema, definitions: Schema) -> list[Schema]:
    """The alternatives of a schema, without references; empty if any value is allowed."""
    if "$ref" in schema:
        return _options(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in schema:
        return [option for part in schema["anyOf"] for option in _options(part, definitions)]
    return [schema] if "type" in schema else []
