"""JSON and subtitles: small files are parsed here, larger ones in the sandbox.

Parsed JSON takes up to 25 times its size in memory, and subtitles take a second per megabyte.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from memory_core.importing import sandbox
from memory_core.importing.formats import messenger, prose, slack, telegram, transcript
from memory_core.importing.item import Item, Skip

Users = Callable[[], Mapping[str, str]]

# Up to these sizes a hostile file costs at most tens of megabytes or half a second.
INLINE_CHARS = {"json": 1_000_000, "subtitles": 500_000, "users": 1_000_000}


def read_json(text: str, path: PurePosixPath, users: Users, folder: str) -> Iterator[Item]:
    """A chat export, or an ordinary file."""
    if len(text) <= INLINE_CHARS["json"]:
        yield from _parse_json(text, path, users, folder)
    else:
        about = {"path": str(path), "folder": folder, "users": dict(users())}
        yield from _read_apart("json", about, text)


def read_subtitles(text: str, path: PurePosixPath) -> Iterator[Item]:
    if len(text) <= INLINE_CHARS["subtitles"]:
        yield transcript.parse(text, path)
    else:
        yield from _read_apart("subtitles", {"path": str(path)}, text)


def read_users(data: bytes) -> Mapping[str, str]:
    """Names by user id, from the users.json of a Slack export. Raises ValueError if it is no
    JSON."""
    if len(data) <= INLINE_CHARS["users"]:
        return slack.names(json.loads(data))
    names = sandbox.parse("users", data)["names"]
    return {str(key): str(name) for key, name in names.items()}


def extract(kind: str, data: bytes) -> dict[str, Any]:
    """Runs in the sandbox, on input from `_read_apart` or on users.json as it is."""
    if kind == "users":
        return {"names": slack.names(json.loads(data))}
    head, _, body = data.partition(b"\n")
    about = json.loads(head)
    path, text = PurePosixPath(about["path"]), body.decode()
    del data, body
    if kind == "subtitles":
        items = [transcript.parse(text, path)]
    else:
        items = list(_parse_json(text, path, lambda: about["users"], about["folder"]))
    return {"items": [item.packed() for item in items]}


def _read_apart(kind: str, about: dict[str, Any], text: str) -> Iterator[Item]:
    head = json.dumps(about).encode()
    answer = sandbox.parse(kind, head + b"\n" + text.encode(errors="replace"))
    yield from map(Item.unpacked, answer["items"])


def _parse_json(text: str, path: PurePosixPath, users: Users, folder: str) -> Iterator[Item]:
    content = _json(text)
    if slack.looks_like(content):
        yield from slack.parse(content, path, users, folder)
    elif telegram.looks_like(content):
        yield from telegram.parse(content)
    elif messenger.looks_like_json(content):
        yield from messenger.parse_json(content, path, folder)
    elif path.name in slack.DIRECTORY_FILES and isinstance(content, list):
        raise Skip("the directory of a Slack export: used for its names")
    else:
        yield prose.parse(text, path)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        return None
    except ValueError:
        pass
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        return [json.loads(line) for line in lines] if len(lines) > 1 else None
    except (ValueError, RecursionError):
        return None
