"""What every tool promises: its schema, and how it says no.

Snapshots are the contract with assistants and reviewed like code. After an intended change:
`UPDATE_SNAPSHOTS=1 python -m pytest tests/integration/test_tools_contract.py`.
"""

import json
import os
from pathlib import Path
from typing import Any

import psycopg
import pytest
from mcp_types import Tool

from mcp_server.failures import error_in
from mcp_server.server import build_server
from memory_core.kernel.settings import Settings
from tests.integration.tool_limits import (
    BROKEN_TEXT,
    IDS,
    LIMITS,
    MAY_BE_MISSING,
    PARAMETERS,
    REQUIRED,
    VALID,
)
from tests.tool_client import ToolClient

SNAPSHOTS = Path(__file__).resolve().parents[1] / "snapshots" / "tools"
UPDATING = bool(os.environ.get("UPDATE_SNAPSHOTS"))
TABLES = ("artifact_revision", "revision_text", "revision_chunk", "event_jobs", "memory",
          "history_turn")  # fmt: skip

# The tools and parameters of the specification; a tool may have no other required ones.
SPECIFIED = {
    "memory_store": {"content", "type", "confidence", "conversation_id"},
    "memory_search": {"query", "limit", "min_confidence", "type"},
    "memory_list": {"type", "limit", "offset"},
    "memory_delete": {"memory_id"},
    "history_append": {"conversation_id", "role", "content", "turn_index"},
    "history_get": {"conversation_id", "limit"},
    "history_delete": {"conversation_id", "turn_index"},
    "artifact_ingest": {
        "artifact_type", "source_system", "content", "source_id", "source_url", "title", "author",
        "participants", "ts", "sensitivity", "visibility_scope", "retention_policy",
        "priority", "idempotency_key",
        "visible_to", "expires_at",
    },
    "artifact_search": {
        "query", "limit", "artifact_type", "type", "source_system", "time_from", "time_to",
        "full_chunks",
    },
    "artifact_get": {
        "artifact_id", "artifact_uid", "revision_id", "include_content", "expand_chunks", "as_of",
    },
    "artifact_delete": {"artifact_id", "artifact_uid"},
    "artifact_history": {"artifact_uid", "as_of"},
    "hybrid_search": {
        "query", "limit", "include_memory", "expand_neighbors", "artifact_uid", "artifact_type",
        "source_system", "time_from", "time_to", "full_chunks",
    },
    "embedding_health": set(),
}  # fmt: skip
DESTRUCTIVE = {"memory_delete", "artifact_delete", "history_delete"}


@pytest.fixture(scope="session")
async def listed(services: Settings) -> dict[str, Tool]:
    """Over stdio: the one that has them all."""
    return {tool.name: tool for tool in await build_server(services, stdio=True).list_tools()}


@pytest.fixture
def tools(_session_client: ToolClient) -> ToolClient:
    """What other tests left in the stores does not matter here."""
    return _session_client


# --- snapshots -------------------------------------------------------------------------------


def test_every_tool_is_as_its_snapshot_says(listed: dict[str, Tool]) -> None:
    current = {name: _snapshot(tool) for name, tool in listed.items()}
    if UPDATING:
        _rewrite(current)
    kept = {file.stem: file.read_text(encoding="utf-8") for file in SNAPSHOTS.glob("*.json")}

    assert sorted(kept) == sorted(current), "one snapshot per tool, and no other"
    for name, text in current.items():
        assert text == kept[name], f"{name} has changed: review it, then UPDATE_SNAPSHOTS=1"


@pytest.mark.parametrize("name", SPECIFIED)
def test_tool_has_the_specified_parameters(listed: dict[str, Tool], name: str) -> None:
    assert set(listed[name].input_schema.get("properties", {})) == SPECIFIED[name]


# Those of the specification that may have more.
SPECIFIED_AT_LEAST = {
    "event_search": {
        "query", "limit", "category", "time_from", "time_to", "artifact_uid", "include_evidence",
    },
    "event_get": {"event_id"},
    "event_list_for_revision": {"artifact_uid", "revision_id", "include_evidence"},
    "event_reextract": {"artifact_uid", "revision_id", "force"},
    "job_status": {"artifact_uid", "revision_id"},
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIFIED_AT_LEAST)
def test_event_tool_has_the_specified_parameters(listed: dict[str, Tool], name: str) -> None:
    parameters = listed[name].input_schema

    assert set(parameters["properties"]) >= SPECIFIED_AT_LEAST[name]
    assert set(parameters.get("required", ())) <= {"event_id", "artifact_uid"}


def test_every_tool_says_what_it_does_to_the_world(listed: dict[str, Tool]) -> None:
    for name, tool in listed.items():
        hints = tool.annotations
        assert tool.title, name
        assert hints is not None, name
        assert hints.read_only_hint is not None, name
        assert tool.output_schema, name
        if not hints.read_only_hint:
            assert hints.destructive_hint is not None, name
            assert hints.idempotent_hint is not None, name


@pytest.mark.parametrize("name", SPECIFIED)
def test_only_deletions_destroy_and_every_call_may_be_repeated(
    listed: dict[str, Tool], name: str
) -> None:
    hints = listed[name].annotations
    assert hints is not None
    if not hints.read_only_hint:
        assert hints.destructive_hint is (name in DESTRUCTIVE)
        assert hints.idempotent_hint is True


def test_asking_for_an_extraction_with_force_is_not_the_same_twice(
    listed: dict[str, Tool],
) -> None:
    hints = listed["event_reextract"].annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.idempotent_hint) == (False, False)


QUESTION_TOOLS = ("event_search", "event_diff", "job_status", "stakeholder_map", "commitment_list",
                  "timeline")  # fmt: skip


@pytest.mark.parametrize("name", QUESTION_TOOLS)
def test_what_a_filter_of_events_does_is_said(listed: dict[str, Tool], name: str) -> None:
    described = {
        parameter: schema.get("description", "")
        for parameter, schema in listed[name].input_schema["properties"].items()
    }
    for parameter in set(described) & {"time_from", "time_to", "due_from", "due_to"}:
        assert "document" not in described[parameter]
        assert "without a d" in described[parameter], "undated ones drop out"
    for parameter in set(described) & {"job_id", "subject", "actor", "from_revision"}:
        assert described[parameter]
    assert "latest" not in described.get("from_revision", "")


def test_every_description_helps_to_choose(listed: dict[str, Tool]) -> None:
    for name, tool in listed.items():
        assert tool.description is not None
        assert f"{name}(" in tool.description, f"{name} has no example"
        assert len(tool.description) < 1500, name


def _snapshot(tool: Tool) -> str:
    shown = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "annotations": tool.annotations.model_dump(exclude_none=True) if tool.annotations else None,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
    }
    return json.dumps(shown, indent=2, ensure_ascii=False) + "\n"


def _rewrite(current: dict[str, str]) -> None:
    SNAPSHOTS.mkdir(parents=True, exist_ok=True)
    for file in SNAPSHOTS.glob("*.json"):
        file.unlink()
    for name, text in current.items():
        (SNAPSHOTS / f"{name}.json").write_text(text, encoding="utf-8")


# --- limits and types ------------------------------------------------------------------------


@pytest.mark.parametrize(("tool", "parameter"), PARAMETERS)
async def test_values_within_the_limits_are_taken(
    tools: ToolClient, tool: str, parameter: str
) -> None:
    for value in LIMITS[tool][parameter]["good"]:
        answer = await tools.client.call_tool(tool, {**VALID[tool], parameter: value})
        code = error_in(answer)["error_code"] if answer.is_error else None

        missing = code == "NOT_FOUND" and (tool in MAY_BE_MISSING or parameter in IDS)
        accepted = not answer.is_error or missing
        # A turn that is there with another text is a conflict, not a bad value.
        accepted = accepted or (tool == "history_append" and code == "CONFLICT")
        assert accepted, f"{parameter}={str(value)[:80]!r}: {answer.content}"


@pytest.mark.parametrize(("tool", "parameter"), PARAMETERS)
async def test_values_outside_are_refused_by_name_and_write_nothing(
    tools: ToolClient, sql: psycopg.Connection, tool: str, parameter: str
) -> None:
    before = row_counts(sql)
    for value in LIMITS[tool][parameter]["bad"]:
        error = await tools.refusal(tool, **{**VALID[tool], parameter: value})

        assert error["error_code"] == "VALIDATION_ERROR", f"{parameter}={value!r:.80}: {error}"
        assert error["details"]["parameter"] == parameter, f"{value!r:.80}: {error}"
        assert parameter in error["error"]
        assert len(error["error"]) < 1500, "a long value is not repeated in full"
    assert row_counts(sql) == before


@pytest.mark.parametrize(("tool", "parameter"), PARAMETERS)
async def test_a_refusal_names_what_is_allowed(
    tools: ToolClient, tool: str, parameter: str
) -> None:
    for value in LIMITS[tool][parameter]["bad"][:1]:
        error = await tools.refusal(tool, **{**VALID[tool], parameter: value})

        names = [name for name in LIMITS[tool][parameter]["good"] if _is_name(name)]
        for allowed in names or ["allowed: "]:
            assert allowed in error["error"]


def _is_name(value: object) -> bool:
    """An allowed value of a choice, rather than a sample of a free text."""
    return isinstance(value, str) and value.isidentifier() and set(value) != {"x"}


@pytest.mark.parametrize(("tool", "parameter"), REQUIRED)
async def test_a_missing_parameter_is_named(tools: ToolClient, tool: str, parameter: str) -> None:
    arguments = {name: value for name, value in VALID[tool].items() if name != parameter}

    error = await tools.refusal(tool, **arguments)

    assert error["error_code"] == "VALIDATION_ERROR"
    assert error["details"]["parameter"] == parameter


@pytest.mark.parametrize("tool", VALID)
async def test_an_unknown_parameter_is_refused_and_the_known_ones_listed(
    tools: ToolClient, sql: psycopg.Connection, tool: str
) -> None:
    before = row_counts(sql)
    error = await tools.refusal(tool, **VALID[tool], colour="green")

    assert error["error_code"] == "VALIDATION_ERROR"
    assert error["details"]["parameter"] == "colour"
    assert set(error["details"]["allowed"]) == SPECIFIED[tool]
    assert row_counts(sql) == before


# The id and what else the call needs. A filter leaves nothing over where it names nothing.
ID_PARAMETERS: list[tuple[str, str, dict[str, Any]]] = [
    ("memory_delete", "memory_id", {}),
    ("artifact_get", "artifact_id", {}),
    ("artifact_get", "artifact_uid", {}),
    ("artifact_get", "revision_id", {"artifact_uid": "uid_0123456789abcdef"}),
    ("artifact_history", "artifact_uid", {}),
    ("artifact_delete", "artifact_id", {}),
    ("artifact_delete", "artifact_uid", {}),
    ("event_get", "event_id", {}),
    ("event_list_for_revision", "artifact_uid", {}),
    ("event_list_for_revision", "revision_id", {"artifact_uid": "uid_0123456789abcdef"}),
    ("event_reextract", "artifact_uid", {}),
    ("event_reextract", "revision_id", {"artifact_uid": "uid_0123456789abcdef"}),
    ("event_diff", "artifact_uid", {}),
    ("event_diff", "from_revision", {"artifact_uid": "uid_0123456789abcdef"}),
    ("event_diff", "to_revision", {"artifact_uid": "uid_0123456789abcdef"}),
    ("job_status", "artifact_uid", {}),
    ("job_status", "revision_id", {"artifact_uid": "uid_0123456789abcdef"}),
    ("job_status", "job_id", {}),
    ("job_cancel", "job_id", {}),
]
FILTERS = {
    ("hybrid_search", "artifact_uid"),
    ("event_search", "artifact_uid"),
    ("stakeholder_map", "artifact_uid"),
}


@pytest.mark.parametrize(("tool", "parameter", "others"), ID_PARAMETERS)
async def test_an_id_that_is_not_even_well_formed_is_not_found(
    tools: ToolClient, tool: str, parameter: str, others: dict[str, Any]
) -> None:
    for value in ("evt_abc123", "7", "'; DROP TABLE memory", "ü", "x" * 5000, *BROKEN_TEXT, "\x00"):
        error = await tools.refusal(tool, **others, **{parameter: value})

        assert error["error_code"] == "NOT_FOUND", f"{parameter}={value[:80]!r}: {error}"
        assert "There is no " in error["error"]
        assert len(json.dumps(error)) < 1500, "a long value is not repeated in full"


def test_every_id_of_every_tool_is_among_these(listed: dict[str, Tool]) -> None:
    tried = {(tool, parameter) for tool, parameter, _ in ID_PARAMETERS} | FILTERS
    ids = {
        (name, parameter)
        for name, tool in listed.items()
        for parameter in tool.input_schema["properties"]
        if parameter in IDS or (parameter.endswith("_id") and parameter not in NAMED_BY_THE_CALLER)
    }

    assert ids == tried


NAMED_BY_THE_CALLER = {"conversation_id", "source_id"}


async def test_an_unknown_tool_is_refused_and_the_known_ones_listed(tools: ToolClient) -> None:
    error = await tools.refusal("memory_guess", query="x")

    assert error["error_code"] == "NOT_FOUND"
    assert set(SPECIFIED) <= set(error["details"]["allowed"])


async def test_a_long_name_is_not_repeated_in_full(tools: ToolClient) -> None:
    tool = await tools.refusal("x" * 100_000)
    parameter = await tools.refusal("embedding_health", **{"x" * 100_000: 1})

    assert len(json.dumps(tool)) < 2000
    assert len(json.dumps(parameter)) < 2000


@pytest.mark.parametrize("tool", ["artifact_get", "artifact_delete"])
@pytest.mark.parametrize("ids", [{}, {"artifact_id": "art_1", "artifact_uid": "uid_1"}])
async def test_exactly_one_id_names_a_document(
    tools: ToolClient, tool: str, ids: dict[str, str]
) -> None:
    error = await tools.refusal(tool, **ids)

    assert error["error_code"] == "VALIDATION_ERROR"
    assert error["details"]["parameter"] == "artifact_id"


async def test_artifact_search_refuses_two_different_types(tools: ToolClient) -> None:
    error = await tools.refusal("artifact_search", query="x", artifact_type="doc", type="note")

    assert error["error_code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    ("tool", "parameter"),
    [
        (tool, name)
        for tool, arguments in VALID.items()
        for name, value in arguments.items()
        if isinstance(value, str) and (tool, name) != ("artifact_ingest", "content")
        if name not in IDS
    ],
)
async def test_the_null_character_is_taken_only_in_documents(
    tools: ToolClient, tool: str, parameter: str
) -> None:
    error = await tools.refusal(tool, **{**VALID[tool], parameter: "a\x00b"})

    assert error["error_code"] == "VALIDATION_ERROR"
    assert error["details"]["parameter"] == parameter


async def test_ten_million_characters_are_taken_and_one_more_refused(
    tools: ToolClient, sql: psycopg.Connection
) -> None:
    longest = ("=" * 79 + "\n") * 125_000
    before = row_counts(sql)
    assert len(longest) == 10_000_000

    error = await tools.refusal("artifact_ingest", **_note("too long", longest + "."))
    assert error["error_code"] == "VALIDATION_ERROR"
    assert error["details"]["parameter"] == "content"
    assert "10,000,000" in error["error"]
    assert row_counts(sql) == before

    stored = await tools("artifact_ingest", **_note("longest", longest))
    read = await tools("artifact_get", artifact_uid=stored["artifact_uid"])
    assert read["content"] == longest
    assert read["chunk_count"] == len(read["chunks"]) == stored["num_chunks"]


def _note(source_id: str, content: str) -> dict[str, str]:
    return {
        "artifact_type": "note",
        "source_system": "notes",
        "source_id": source_id,
        "content": content,
    }


def row_counts(sql: psycopg.Connection) -> dict[str, int]:
    counts = {}
    for table in TABLES:
        row = sql.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert row is not None
        counts[table] = int(row[0])
    return counts


async def test_a_value_that_is_no_choice_is_told_the_choices_once(tools: ToolClient) -> None:
    error = await tools.refusal("event_search", category="InvalidCategory")

    assert error["error"] == (
        "Invalid category: InvalidCategory. Must be one of: Commitment, Execution, Decision, "
        "Collaboration, QualityRisk, Feedback, Change, Stakeholder"
    )
    assert error["details"]["parameter"] == "category"
