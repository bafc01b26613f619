"""docs/tools.md, written from the tools' own list and from real answers over the demo corpus."""

import json
from dataclasses import dataclass
from typing import Any

from tests.documented import ROOT
from tests.example_calls import Example, Json

PAGE = ROOT / "docs" / "tools.md"
_HEAD = """\
# Tools: one real call of each, with its answer

Written by `tests/integration/test_tools_page.py` when UPDATE_SNAPSHOTS is set, and checked by it
otherwise: from the server's own list and from calls over the documents of `mcp-memory demo`.
Ids of jobs, times of storing, versions, scores and measured times differ with every memory: here
they are placeholders. Long texts and lists are cut, with “…”.

An answer is one JSON object, as structured content and as text. [errors.md](errors.md) shows what a
failing call answers. Ids of events and jobs are taken with the prefix `evt_` or `job_` too.
"""
_LONGEST = 160
_PLACEHOLDERS: dict[str, object] = {
    "job_id": "0b9c6a2e-5d43-4c1f-8a57-2f6f3d1e9b70",
    "evidence_id": "9d2f41b8-7a6c-4e0d-b3c5-64a1f0d7e285",
    "extraction_run_id": "3e8a5c17-94bd-4f26-a0e9-c7d15b2f8643",
    "dagster_run_id": "c41f7d90-2b6e-4a83-9f5d-8e03b6a1d274",
    "locked_by": "c41f7d90-2b6e-4a83-9f5d-8e03b6a1d274",
    "run": "c41f7d90-2b6e-4a83-9f5d-8e03b6a1d274",
    "who": "memory",
    "ts": "2026-04-09T08:30:00Z",
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "next_cursor": "MjAyNi0wNC0wOVQwODozMDowMCswMDowMCAwYjljNmEyZQ",
    "prompt_version": "extract.1",
    "merge_version": "merge.1",
    "score": 0.03,
    "similarity": 0.6,
    "probe_ms": 0.5,
}
_STORED = "2026-04-09T08:30:00Z"


@dataclass(frozen=True, slots=True)
class Answered:
    example: Example
    answer: Json


def render(tools: list[Json], answered: dict[str, Answered], folder: str) -> str:
    """`folder`: where the imported file lies on this machine."""
    contents = ", ".join(f"[{tool['name']}](#{tool['name']})" for tool in tools)
    sections = [_section(tool, answered[tool["name"]]) for tool in tools]
    return "\n".join([_HEAD, f"{contents}\n", *sections]).replace(folder, "/home/me/notes")


def _section(tool: Json, call: Answered) -> str:
    what = tool["description"].split(" Example: ")[0]
    lines = [f"## {tool['name']}", "", what, ""]
    if parameters := tool["inputSchema"]["properties"]:
        required = tool["inputSchema"].get("required", [])
        lines += ["| parameter | type | |", "|---|---|---|"]
        lines += [_row(name, schema, name in required) for name, schema in parameters.items()]
        lines += [""]
    arguments = {
        name: _PLACEHOLDERS[name] if name == "job_id" else value
        for name, value in call.example.arguments.items()
    }
    return "\n".join([*lines, _block(arguments), "", _block(masked(call.answer)), ""])


def _row(name: str, schema: Json, required: bool) -> str:
    words = [f"{schema['description']}"] if "description" in schema else []
    if "enum" in schema:
        words.append("One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + ".")
    if "maximum" in schema:
        words.append(f"At most {schema['maximum']}.")
    if "default" in schema:
        words.append(f"Default: `{json.dumps(schema['default'])}`.")
    shown = f"`{name}`, required" if required else f"`{name}`"
    return f"| {shown} | {schema['type']} | {' '.join(words)} |"


def _block(content: object) -> str:
    return f"```json\n{json.dumps(content, indent=2, ensure_ascii=False)}\n```"


def masked(value: Any, key: str = "") -> Any:
    """The answer without what differs from run to run, and cut to what a reader needs."""
    if value is not None and key in _PLACEHOLDERS:
        return _PLACEHOLDERS[key]
    if isinstance(value, str) and key.endswith("_at"):
        return _STORED
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}…"
    if (
        isinstance(value, dict) and value.get("due") and "who" in value
    ):  # an entry of a job's ledger
        value = {**value, "due": _STORED}
    if isinstance(value, dict):
        return {name: masked(member, name) for name, member in value.items()}
    if isinstance(value, list):
        shown = [masked(item, key) for item in value[:1]]
        return [*shown, f"… {len(value) - 1} more"] if len(value) > 1 else shown
    return value
