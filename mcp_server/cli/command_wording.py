"""Messages of the core and of tools name tools and parameters. This module replaces them by the
names of commands and options."""

import re

_COMMANDS = {
    "artifact_search": "`mcp-memory search`",
    "hybrid_search": "`mcp-memory search`",
    "artifact_get": "`mcp-memory documents show`",
    "artifact_history": "`mcp-memory documents show`",
    "artifact_ingest": "`mcp-memory ingest`",
    "event_search": "`mcp-memory events search`",
    "event_get": "`mcp-memory events show`",
    "event_list_for_revision": "`mcp-memory documents show`",
    "event_diff": "`mcp-memory events diff`",
    "event_reextract": "`mcp-memory reextract`",
    "job_status": "`mcp-memory jobs`",
    "job_list": "`mcp-memory jobs list`",
    "job_cancel": "`mcp-memory jobs cancel`",
    "timeline": "`mcp-memory events timeline`",
    "commitment_list": "`mcp-memory events commitments`",
    "stakeholder_map": "`mcp-memory people`",
}
_OPTIONS = {
    "artifact_uid": "--document",
    "artifact_type": "--type",
    "source_system": "--source",
    "time_from": "--from",
    "time_to": "--to",
    "due_from": "--due-from",
    "due_to": "--due-to",
    "from_revision": "--from-revision",
    "to_revision": "--to-revision",
    "revision_id": "--revision",
    "include_superseded": "--superseded",
    "category": "--category",
    "status": "--status",
    "sort": "--sort",
    "limit": "--limit",
    "offset": "--offset",
    "cursor": "--cursor",
    "actor": "--actor",
    "subject": "--subject",
    "query": "TEXT",
}
# "timeline" and "status" are also ordinary words: only these forms mean a tool.
_PLAIN_WORDS = {"timeline"}
_TOOL = re.compile(
    r"`?\b(" + "|".join(name for name in _COMMANDS if name not in _PLAIN_WORDS) + r")\b`?"
)
_INVALID = re.compile(r"^Invalid arguments for \w+\. ")
_PARAMETER = re.compile(r"(?m)(^|; |Invalid )(" + "|".join(_OPTIONS) + r")(?=[:=])")
_FORCE = re.compile(r"\bforce=true\b")


def in_commands(message: str) -> str:
    wording = _INVALID.sub("", message)
    wording = _PARAMETER.sub(lambda match: match[1] + _OPTIONS[match[2]], wording)
    wording = _TOOL.sub(lambda match: _COMMANDS[match[1]], wording)
    return _FORCE.sub("--force", wording)
