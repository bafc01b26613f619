"""The members of a document's audience: the list behind its scope "custom"."""

from collections.abc import Sequence

from memory_core.artifacts.document import VisibilityScope
from memory_core.kernel.errors import InvalidInput

_KINDS = ("user:", "group:")


def members(scope: VisibilityScope | None, listed: Sequence[str] | None) -> tuple[str, ...]:
    """The list in its stored form: sorted, and a plain name means a user. Without a list: the owner
    alone."""
    if listed and scope is not VisibilityScope.CUSTOM:
        raise InvalidInput(
            "visible_to belongs to visibility_scope custom: give both.",
            details={"parameter": "visible_to"},
        )
    return tuple(sorted({_member(name.strip()) for name in listed or ()}))


def _member(name: str) -> str:
    marked = name if name.startswith(_KINDS) else f"user:{name}"
    if not marked.partition(":")[2]:
        raise InvalidInput(
            "visible_to has an empty name: give users, and groups as group:NAME.",
            details={"parameter": "visible_to"},
        )
    return marked
