"""Which memory a command uses: where it is, why that one, and whether a stack runs on it."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memory_core.kernel.dsn import redact_dsn
from memory_core.kernel.errors import MemoryFault
from memory_core.kernel.settings import Settings
from stack import stack_state
from stack.layout import Layout
from stack.stack_state import StackState

Choice = Literal["default", "DATA_DIR", ".env"]

# The former default folder of a memory, relative to the working directory.
OLDER_DEFAULT = Path(".data")


@dataclass(frozen=True, slots=True)
class MemoryInUse:
    """What `mcp-memory status` shows, and other commands print in one line."""

    path: Path
    chosen_by: Choice
    # Servers that the settings name instead of the embedded ones, without passwords.
    database: str | None
    chroma: str | None
    stack: StackState | None

    @property
    def reason(self) -> str:
        return {
            "default": "the default",
            "DATA_DIR": "set by DATA_DIR",
            ".env": "set by DATA_DIR in .env",
        }[self.chosen_by]

    @property
    def activity(self) -> str:
        if self.stack is None or self.stack.mode != "full":
            return "no stack is running"
        return f"stack running (pid {self.stack.pid}), MCP at {self.stack.mcp_url}"

    def __str__(self) -> str:
        where = f"{self.database} (EVENTS_DB_DSN); files in " if self.database else ""
        return f"{where}{self.path} ({self.reason}); {self.activity}"


def memory_in_use(settings: Settings) -> MemoryInUse:
    dsn = settings.events_db_dsn
    return MemoryInUse(
        path=settings.data_dir,
        chosen_by=_chosen_by(settings),
        database=redact_dsn(dsn.get_secret_value()) if dsn is not None else None,
        chroma=settings.chroma_address,
        stack=_running(settings),
    )


def older_memory_notice(settings: Settings) -> str | None:
    """One line if the default folder is empty, but the former default is not."""
    if "data_dir" in settings.model_fields_set or settings.events_db_dsn is not None:
        return None
    older = OLDER_DEFAULT.resolve()
    if _holds_memory(settings.data_dir) or not _holds_memory(older):
        return None
    return (
        f"{older} holds a memory, but this command uses {settings.data_dir}, which is new. To use "
        f"the one here, set DATA_DIR={older}; to make it the default, stop its stack and move the "
        "folder."
    )


def _chosen_by(settings: Settings) -> Choice:
    if "data_dir" not in settings.model_fields_set:
        return "default"
    in_environment = any(name.upper() == "DATA_DIR" and value for name, value in os.environ.items())
    return "DATA_DIR" if in_environment or not Path(".env").is_file() else ".env"


def _running(settings: Settings) -> StackState | None:
    try:
        return stack_state.running(Layout(settings.data_dir))
    except MemoryFault:
        return None  # the folder belongs to another user; commands that need it report that


def _holds_memory(data_dir: Path) -> bool:
    try:
        return Layout(data_dir).postgres.is_dir()
    except PermissionError:
        return False
