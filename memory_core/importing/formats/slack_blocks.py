"""Slack's blocks and attachments as text, in the markup of its messages."""

from typing import Any

_MAX_DEPTH = 20
# The pieces of these blocks form one line; pieces of all others are lines of their own.
_LINES = {"rich_text_section", "rich_text_quote", "rich_text_preformatted", "context"}


def text(listed: Any) -> str:
    return _joined(listed, "\n", 0)


def attachments(listed: Any) -> str:
    parts = []
    for one in listed if isinstance(listed, list) else []:
        if not isinstance(one, dict):
            continue
        texts = [_plain(one.get(name)) for name in ("pretext", "title", "text")]
        texts += [_field(field) for field in _list(one.get("fields"))]
        texts.append(text(one.get("blocks")))
        parts.append(_lines(texts) or _plain(one.get("fallback")))
    return _lines(parts)


def _joined(listed: Any, between: str, depth: int) -> str:
    parts = [_element(one, depth) for one in _list(listed)]
    return between.join(part for part in parts if part)


def _element(one: Any, depth: int) -> str:
    if not isinstance(one, dict) or depth > _MAX_DEPTH:
        return _plain(one)
    kind = _plain(one.get("type"))
    if kind == "user":
        return f"<@{_plain(one.get('user_id'))}>"
    if kind == "channel":
        return f"<#{_plain(one.get('channel_id'))}>"
    if kind == "broadcast":
        return f"@{_plain(one.get('range'))}"
    if kind == "emoji":
        return f":{_plain(one.get('name'))}:"
    if kind == "link":
        return _plain(one.get("text")) or _plain(one.get("url"))
    own = one.get("text")
    inner = _joined(one.get("elements"), "" if kind in _LINES else "\n", depth + 1)
    fields = _joined(one.get("fields"), "\n", depth + 1)
    return _lines(
        [_element(own, depth + 1) if isinstance(own, dict) else _plain(own), fields, inner]
    )


def _field(field: Any) -> str:
    if not isinstance(field, dict):
        return ""
    title, value = _plain(field.get("title")), _plain(field.get("value"))
    return f"{title}: {value}" if title and value else title or value


def _lines(parts: list[str]) -> str:
    return "\n".join(part for part in parts if part.strip())


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
