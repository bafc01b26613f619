"""Telegram: result.json of one chat, or of a whole account.

Every export is a new folder, named by the day of exporting. So the chat's id, not the path,
identifies the chat, and a later export adds to the earlier one. Names may change; they are only
shown.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from memory_core.importing.formats.chat import ChatMessage, by_day
from memory_core.importing.item import Item, Skip
from memory_core.kernel.times import as_utc


def looks_like(content: Any) -> bool:
    return isinstance(content, dict) and (_is_chat(content) or bool(_chats(content)))


def parse(content: dict[str, Any]) -> Iterator[Item]:
    chats = [content] if _is_chat(content) else _chats(content)
    if not chats:
        raise Skip("an export without chats")
    for chat in chats:
        messages = list(_messages(chat["messages"]))
        if any(one.words for one in messages):
            yield from by_day("telegram", _name(chat), messages, _key(chat))


def _is_chat(value: Any) -> bool:
    """Several formats have messages; those of Telegram have a type and a time in seconds."""
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        return False
    first = next((one for one in value["messages"] if isinstance(one, dict)), {})
    return "type" in value and ("date_unixtime" in first or ("date" in first and "text" in first))


def _chats(content: dict[str, Any]) -> list[dict[str, Any]]:
    chats = []
    for group in ("chats", "left_chats"):
        listed = content.get(group)
        listed = listed.get("list") if isinstance(listed, dict) else None
        chats += [chat for chat in listed if _is_chat(chat)] if isinstance(listed, list) else []
    return chats


def _name(chat: dict[str, Any]) -> str:
    return " ".join(str(chat.get("name") or chat.get("type") or "chat").split())[:200]


def _key(chat: dict[str, Any]) -> str:
    key = str(chat["id"] if "id" in chat else _name(chat)).replace("/", "-").replace("\0", "")
    return key.encode(errors="replace").decode()[:200]


def _messages(listed: list[Any]) -> Iterator[ChatMessage]:
    for one in listed:
        if not isinstance(one, dict) or (when := _when(one)) is None:
            continue
        words = _words(one.get("text"))
        if one.get("type") == "service":
            action = str(one.get("action") or "").replace("_", " ")
            yield ChatMessage(when, None, f"{one.get('actor') or ''} {action}".strip())
            continue
        for kind in ("photo", "file", "media_type"):
            if not words and one.get(kind):
                words = f"[{one.get('media_type') or kind}]"
        yield ChatMessage(when, " ".join(str(one.get("from") or "Deleted account").split()), words)


def _when(one: dict[str, Any]) -> datetime | None:
    try:
        if "date_unixtime" in one:
            return datetime.fromtimestamp(int(one["date_unixtime"]), tz=UTC)
        return as_utc(datetime.fromisoformat(str(one["date"])))
    except (KeyError, ValueError, TypeError, OverflowError, OSError):
        return None


def _words(text: Any) -> str:
    """Plain text, or a list of pieces with formatting."""
    if isinstance(text, str):
        return text
    if not isinstance(text, list):
        return ""
    pieces = [
        piece if isinstance(piece, str) else str(piece.get("text") or "")
        for piece in text
        if isinstance(piece, str | dict)
    ]
    return "".join(pieces)
