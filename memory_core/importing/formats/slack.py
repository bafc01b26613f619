"""Slack exports: a folder per channel, a JSON file per day, and users.json next to the folders."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from memory_core.importing.formats import slack_blocks
from memory_core.importing.formats.chat import ChatMessage, by_day, one_day
from memory_core.importing.item import Item, Skip

# Files next to the channels that have no messages: messages refer to them.
DIRECTORY_FILES = {
    "users.json", "channels.json", "groups.json", "dms.json", "mpims.json", "org_users.json",
    "integration_logs.json", "canvases.json", "huddle_transcripts.json", "file_conversations.json",
    "lists.json", "workspace_settings.json",
}  # fmt: skip
_REFERENCE = re.compile(r"<([@#!]?)([^<>|]{1,2000})(?:\|([^<>]{0,2000}))?>")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}$")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


def looks_like(content: Any) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and all(
            isinstance(one, dict) and one.get("type") == "message" and "ts" in one
            for one in content[:20]
        )
    )


def names(content: Any) -> dict[str, str]:
    """Names by user id, from users.json."""
    names_by_id = {}
    for user in content if isinstance(content, list) else []:
        if isinstance(user, dict) and isinstance(user.get("id"), str):
            profile = user.get("profile")
            profile = profile if isinstance(profile, dict) else {}
            name = (
                profile.get("real_name") or user.get("real_name") or profile.get("display_name")
                or user.get("name")
            )  # fmt: skip
            if isinstance(name, str) and name.strip():
                names_by_id[user["id"]] = name.strip()
    return names_by_id


def parse(
    content: list[Any],
    path: PurePosixPath,
    users: Callable[[], Mapping[str, str]],
    folder: str,
) -> Iterator[Item]:
    """`folder`: the name of the folder that contains the file."""
    names_by_id = users()
    key = str(path.with_suffix(""))
    day = _DAY.search(path.stem)
    if day is None:
        yield from by_day("slack", path.stem, _messages(content, names_by_id), key)
        return
    # The day in the file's name, which is the workspace's: in UTC, two files would share a day.
    channel = path.stem[: day.start()].rstrip("_- ") or folder or "channel"
    messages = sorted(_messages(content, names_by_id), key=lambda one: one.when)
    if not any(one.words for one in messages):
        raise Skip("a day without messages")
    yield from one_day("slack", channel, day[0], messages, key)


def _messages(content: list[Any], users: Mapping[str, str]) -> Iterator[ChatMessage]:
    for one in content:
        if not isinstance(one, dict):
            continue
        try:
            when = datetime.fromtimestamp(float(one["ts"]), tz=UTC)
        except (KeyError, ValueError, TypeError, OverflowError, OSError):
            continue
        words = _readable(_text_of(one), users)
        files = one.get("files") or ([one["file"]] if "file" in one else [])
        for file in files if isinstance(files, list) else []:
            name = file.get("name") if isinstance(file, dict) else None
            words += f"\n[File: {name}]" if isinstance(name, str) else ""
        yield ChatMessage(when, None if _is_notice(one) else _writer(one, users), words.strip())


def _text_of(one: dict[str, Any]) -> str:
    """The text of a message. If a program wrote it, its blocks and attachments are included.
    Attachments of a person's message are only previews of its links."""
    text = str(one.get("text") or "") or slack_blocks.text(one.get("blocks"))
    if text.strip() and not one.get("bot_id") and one.get("subtype") != "bot_message":
        return text
    attached = slack_blocks.attachments(one.get("attachments"))
    return "\n".join(part for part in (text, attached) if part.strip())


def _is_notice(one: dict[str, Any]) -> bool:
    kind = str(one.get("subtype") or "")
    return kind.startswith(("channel_", "group_", "pinned_", "unpinned_"))


def _writer(one: dict[str, Any], users: Mapping[str, str]) -> str:
    profile = one.get("user_profile")
    own = profile.get("real_name") if isinstance(profile, dict) else None
    user = str(one.get("user") or one.get("bot_id") or "")
    name = users.get(user) or own or one.get("username") or user or "unknown"
    return " ".join(str(name).split())


def _readable(text: str, users: Mapping[str, str]) -> str:
    """<@U123> becomes a name, <https://…|label> its label."""

    def shown(match: re.Match[str]) -> str:
        sign, target, label = match[1], match[2], match[3]
        if sign == "@":
            return "@" + (users.get(target) or label or target)
        if sign == "#":
            return "#" + (label or target)
        if sign == "!":
            return "@" + (label or target.partition("^")[0])
        return f"{label} ({target})" if label and label != target else target

    text = _REFERENCE.sub(shown, text)
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text
