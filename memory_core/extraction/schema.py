"""The strict JSON schemas of a model's answers."""

from typing import Any

from memory_core.extraction.model import ActorRole, Category, EntityType, SubjectType

EXTRACTION_NAME = "chunk_extraction"
MERGE_NAME = "event_merge"


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    # Strict mode requires every property and forbids additional ones.
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_STRING = {"type": "string"}
_STRING_OR_NULL = {"type": ["string", "null"]}
_NUMBER = {"type": "number"}
_INTEGER = {"type": "integer"}


def _one_of(values: type[Category | SubjectType | ActorRole | EntityType]) -> dict[str, Any]:
    return {"type": "string", "enum": [value.value for value in values]}


EXTRACTION_SCHEMA = _object(
    entities=_list(_object(name=_STRING, type=_one_of(EntityType), aliases=_list(_STRING))),
    events=_list(
        _object(
            category=_one_of(Category),
            subject=_object(type=_one_of(SubjectType), ref=_STRING),
            actors=_list(_object(ref=_STRING, role=_one_of(ActorRole))),
            event_time=_STRING_OR_NULL,
            due_time=_STRING_OR_NULL,
            due_quote=_STRING_OR_NULL,
            narrative=_STRING,
            evidence=_object(quote=_STRING, start_char=_INTEGER, end_char=_INTEGER),
            confidence=_NUMBER,
        )
    ),
)

MERGE_SCHEMA = _object(groups=_list(_object(members=_list(_STRING), narrative=_STRING_OR_NULL)))
