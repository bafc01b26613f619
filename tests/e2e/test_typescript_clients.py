"""The server through clients that others wrote: both TypeScript SDKs and the Inspector.

Most desktop clients are built on that SDK. Its first generation checks the structured content of
every answer against the tool's output schema, of errors too.
"""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from tests.conftest import IndexHost, empty_tables
from tests.example_calls import UNKNOWN_UID, examples
from tests.integration import demo_corpus
from tests.serving import SERVE, HttpServer
from tests.typescript import Json, Npm, Target, TypeScriptClient, installed

TRANSPORTS = ["stdio", "http"]


@pytest.fixture(scope="module")
def npm() -> Npm:
    return installed()


@pytest.fixture(scope="module")
def note(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that may be imported by its path."""
    file = tmp_path_factory.mktemp("notes") / "kickoff.md"
    file.write_text("Decision: the beta starts in March.\n")
    return file


@pytest.fixture(scope="module")
async def remembered(
    services: Settings, _session_runtime: Runtime, note: Path, index_host: IndexHost
) -> Settings:
    """The demo corpus in the session's stores."""
    empty_tables(services)
    await index_host.serve(_session_runtime)
    await demo_corpus.load(_session_runtime)
    return services.model_copy(update={"ingest_roots": str(note.parent)})


@pytest.fixture(scope="module")
def http(remembered: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with HttpServer(remembered, tmp_path_factory.mktemp("http") / "log") as server:
        yield Target(url=f"{server.url}/mcp")


@pytest.fixture(scope="module", params=TRANSPORTS)
def target(request: pytest.FixtureRequest, remembered: Settings, npm: Npm) -> Target:
    if request.param == "http":
        served: Target = request.getfixturevalue("http")
        return served
    return Target(command=(sys.executable, *SERVE, "--stdio"), env=remembered.environment())


@pytest.fixture(scope="module", params=["1", "2"], ids=["sdk1", "sdk2"])
def client(request: pytest.FixtureRequest, npm: Npm, target: Target) -> Iterator[TypeScriptClient]:
    with npm.client(request.param, target) as client:
        yield client


def error_shown(result: Json) -> Json:
    """What a client has of an error: our own words, code and details, in its text."""
    assert result["isError"] is True
    assert "structuredContent" not in result
    [content] = result["content"]
    error: Json = json.loads(content["text"])
    assert set(error) == {"error", "error_code", "details"}
    return error


def tell_the_story(call: Callable[[str, Json], Json], file: Path | None) -> set[str]:
    """Every tool once with an error and once with an answer; returns which were called."""
    called = set()
    story = examples(file)
    example = next(story)
    while True:
        called.add(example.tool)
        error = error_shown(call(example.tool, example.refused))
        assert error["error_code"] == example.code, example
        answer = call(example.tool, example.arguments)
        assert not answer.get("isError"), answer
        try:
            example = story.send(answer["structuredContent"])
        except StopIteration:
            return called


def test_every_tool_answers_and_every_tool_refuses(
    client: TypeScriptClient, target: Target, note: Path
) -> None:
    called = tell_the_story(client.call, note if target.command else None)

    assert called == {tool["name"] for tool in client.tools}, "a tool has no example"


@pytest.mark.slow
def test_the_inspector_shows_an_answer_and_an_error_of_every_tool(
    npm: Npm, target: Target, note: Path
) -> None:
    """A process, and over stdio a server too, for each of the calls."""
    called = tell_the_story(partial(npm.inspect, target), note if target.command else None)

    listed = npm.inspector(target, "tools/list")["tools"]
    assert called == {tool["name"] for tool in listed}


def test_the_server_tells_its_name_and_version(client: TypeScriptClient) -> None:
    assert client.server["name"] == "mcp-memory"
    assert client.server["version"]


@pytest.mark.parametrize(
    ("method", "params", "code", "words"),
    [
        ("readResource", {"uri": f"memory://artifact/{UNKNOWN_UID}"}, "NOT_FOUND", "no artifact"),
        ("readResource", {"uri": "memory://event/evt_abc123"}, "NOT_FOUND", "no event"),
        ("getPrompt", {"name": "guess"}, "NOT_FOUND", "no prompt 'guess'"),
        ("getPrompt", {"name": "feedback_on"}, "VALIDATION_ERROR", "needs 'topic'"),
    ],
)
def test_resources_and_prompts_say_what_is_wrong(
    client: TypeScriptClient, method: str, params: Json, code: str, words: str
) -> None:
    thrown = client.ask(method, **params)["thrown"]

    assert words in thrown["message"]
    assert thrown["data"]["error_code"] == code
    assert "details" in thrown["data"]


def test_the_inspector_shows_answers_and_errors(npm: Npm, target: Target) -> None:
    answer = npm.inspect(target, "event_search", {"query": "pricing model", "limit": 2})
    refused = error_shown(npm.inspect(target, "event_search", {"category": "Rumour"}))

    assert len(answer["structuredContent"]["events"]) == 2
    assert refused["error_code"] == "VALIDATION_ERROR"
    assert refused["details"]["parameter"] == "category"
    assert "Decision" in refused["error"]
