"""`.env`: detects names in it that are unknown or obsolete."""

import difflib
import os
from collections.abc import Set
from pathlib import Path

from dotenv import dotenv_values

from memory_core.kernel.errors import ConfigurationFault

# Set in the environment of a child process, which then has all settings of its parent. Its value
# lists the fields that the user chose; all others are defaults that the parent resolved.
HANDED_OVER = "MCP_MEMORY_CHOSEN"

ENV_FILE = Path(".env")

# docker-compose.yml reads these from the same `.env`; the program does not.
COMPOSE_ONLY = frozenset({"POSTGRES_PASSWORD", "COMPOSE_PROJECT_NAME", "MCP_MEMORY_IMAGE"})

# Obsolete variables that a `.env` may still have, and what replaced them.
SUPERSEDED = {
    "WORKER_ID": "each Dagster run names itself as the holder of its jobs",
    "POLL_INTERVAL_MS": "a Dagster sensor looks for jobs",
}


def superseded_notice() -> str | None:
    """One line about variables in `.env` that no longer have an effect; None if there are none."""
    if HANDED_OVER in os.environ:
        return None
    superseded = [name for name in _names_in(ENV_FILE) if name in SUPERSEDED]
    if not superseded:
        return None
    names = "; ".join(f"{name} ({SUPERSEDED[name]})" for name in superseded)
    return f"{ENV_FILE} sets what has no effect any more: {names}. Delete the lines."


def refuse_unknown_names(ours: Set[str]) -> None:
    """Refuse unknown names: a misspelt name would silently leave its default in force."""
    allowed = ours | COMPOSE_ONLY | SUPERSEDED.keys()
    for name in _names_in(ENV_FILE):
        if name.upper() in allowed or name in os.environ:
            continue
        close = difflib.get_close_matches(name.upper(), allowed, n=1)
        hint = f"did you mean {close[0]}?" if close else "see .env.example for the known names."
        raise ConfigurationFault(f"{name} in {ENV_FILE} is not a known variable: {hint}")


def _names_in(env_file: Path) -> list[str]:
    return list(dotenv_values(env_file, interpolate=False)) if env_file.is_file() else []
