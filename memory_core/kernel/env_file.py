"""`.env`: the names in it that are not ours, or not any more."""

import difflib
import os
from collections.abc import Set
from pathlib import Path

from dotenv import dotenv_values

from memory_core.kernel.errors import ConfigurationFault

# In the environment of a child process: the settings there are a whole hand-over of its parent's.
# Its value names the fields that the user chose; all others are defaults that the parent resolved.
HANDED_OVER = "MCP_MEMORY_CHOSEN"

ENV_FILE = Path(".env")

# Read by docker-compose.yml from the same `.env`, not by the program.
COMPOSE_ONLY = frozenset({"POSTGRES_PASSWORD", "COMPOSE_PROJECT_NAME", "MCP_MEMORY_IMAGE"})

# Variables of an earlier design that a `.env` may still hold: what does their work now.
SUPERSEDED = {
    "WORKER_ID": "each Dagster run names itself as the holder of its jobs",
    "POLL_INTERVAL_MS": "a Dagster sensor looks for jobs",
}


def superseded_notice() -> str | None:
    """One line about variables in `.env` that have no effect any more; None without any."""
    if HANDED_OVER in os.environ:
        return None
    superseded = [name for name in _names_in(ENV_FILE) if name in SUPERSEDED]
    if not superseded:
        return None
    names = "; ".join(f"{name} ({SUPERSEDED[name]})" for name in superseded)
    return f"{ENV_FILE} sets what has no effect any more: {names}. Delete the lines."


def refuse_unknown_names(ours: Set[str]) -> None:
    """A misspelt name in `.env` would silently leave its default in force."""
    allowed = ours | COMPOSE_ONLY | SUPERSEDED.keys()
    for name in _names_in(ENV_FILE):
        if name.upper() in allowed or name in os.environ:
            continue
        close = difflib.get_close_matches(name.upper(), allowed, n=1)
        hint = f"did you mean {close[0]}?" if close else "see .env.example for the known names."
        raise ConfigurationFault(f"{name} in {ENV_FILE} is not a known variable: {hint}")


def _names_in(env_file: Path) -> list[str]:
    return list(dotenv_values(env_file, interpolate=False)) if env_file.is_file() else []
