"""JSON and subtitles are read in the sandbox as soon as they could cost much, with one outcome."""

import json
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import pytest

from memory_core.importing import formats
from memory_core.importing.formats import structured
from memory_core.importing.item import Item, Skip, Unusable

USERS = {"U1": "Alice Chen", "U2": "Bob Stone"}
SLACK = [
    {
        "type": "message",
        "ts": f"{1_700_000_000 + n}.5",
        "user": f"U{n % 2 + 1}",
        "text": f"Nr. {n} ü",
    }
    for n in range(20)
]
TELEGRAM = {
    "name": "Ops \N{OTTER}",
    "type": "personal_chat",
    "id": 7,
    "messages": [
        {"id": n, "type": "message", "date_unixtime": f"{1_700_000_000 + n * 50_000}",
         "from": "Alice", "text": f"half an emoji \ud83d, line {n}"}
        for n in range(6)
    ],
}  # fmt: skip
SUBTITLES = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Bob>Hello.\n\n00:03.000 --> 00:04.000\nYes.\n"


def items(name: str, text: str, users: Callable[[], dict[str, str]] = lambda: USERS) -> list[Item]:
    path = PurePosixPath(name)
    data = text.encode()
    return list(formats.parse(formats.recognise(data[:4096], path), data, path, users, "root"))


@pytest.fixture
def everything_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in structured.INLINE_CHARS:
        monkeypatch.setitem(structured.INLINE_CHARS, kind, 0)


CASES: list[tuple[str, Any]] = [
    ("general/2023-11-14.json", SLACK),
    ("general/all.json", SLACK),
    ("export/result.json", TELEGRAM),
    ("notes/data.json", {"any": ["thing", 1, None]}),
]


@pytest.mark.parametrize(("name", "content"), CASES, ids=[name for name, _ in CASES])
def test_a_file_becomes_the_same_in_the_sandbox(
    name: str, content: Any, request: pytest.FixtureRequest
) -> None:
    here = items(name, json.dumps(content))
    request.getfixturevalue("everything_apart")
    assert items(name, json.dumps(content)) == here != []


@pytest.mark.parametrize(
    ("name", "text"),
    [("call.vtt", SUBTITLES), ("lines.jsonl", '{"a": 1}\n{"a": 2}\n'), ("broken.json", '{"a": ')],
)
def test_so_do_subtitles_lines_and_what_is_no_json(
    name: str, text: str, request: pytest.FixtureRequest
) -> None:
    here = items(name, text)
    request.getfixturevalue("everything_apart")
    assert items(name, text) == here != []


@pytest.mark.usefixtures("everything_apart")
@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("users.json", '[{"id": "U1"}]', "directory of a Slack export"),
        ("empty.vtt", "WEBVTT\n\nNOTE nothing\n", "subtitles without words"),
        ("2023-11-14.json", '[{"type": "message", "ts": "1", "text": ""}]', "without messages"),
    ],
)
def test_what_is_skipped_is_skipped_there_too(name: str, text: str, reason: str) -> None:
    with pytest.raises(Skip, match=reason):
        items(name, text)


@pytest.mark.usefixtures("everything_apart")
def test_names_of_people_are_read_there_too() -> None:
    users = [{"id": "U1", "real_name": "Alice Chen"}, {"id": "U2", "name": "bob"}, "odd", {}]
    assert structured.read_users(json.dumps(users).encode()) == {"U1": "Alice Chen", "U2": "bob"}
    with pytest.raises((ValueError, Unusable)):
        structured.read_users(b"[")


def test_json_that_unfolds_in_memory_is_given_up() -> None:
    with pytest.raises(Unusable, match="needs more than 1,000 MB of memory"):
        items("bomb.json", "[" + "[]," * 13_000_000 + "[]]")


def test_a_long_export_is_read_whole() -> None:
    many = [{**SLACK[0], "ts": str(1_700_000_000 + n), "text": "x" * 200} for n in range(5_000)]
    [day] = items("general/2023-11-14.json", json.dumps(many))
    assert len(json.dumps(many)) > structured.INLINE_CHARS["json"]
    assert day.text.count("Alice Chen: xxx") == 5_000
