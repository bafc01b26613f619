"""MCP clients and the files in which they list their servers.

A file is never damaged: a file that is not plain JSON is left alone, other servers and settings
stay as they are, and the file is replaced in one step after a copy was made.
"""

import glob
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_core.kernel.errors import Conflict, InvalidInput

Entry = dict[str, Any]
_PROGRAM = "mcp-memory"
_MODULE = "mcp_server.cli"
_INDENT = re.compile(r"\n([ \t]+)\S")


@dataclass(frozen=True, slots=True)
class UserFolders:
    """The folders of a user on this platform."""

    home: Path
    roaming: Path  # where programs keep their settings

    @classmethod
    def of_user(cls) -> "UserFolders":
        home = Path.home()
        if sys.platform == "darwin":
            return cls(home, home / "Library" / "Application Support")
        if sys.platform == "win32":
            return cls(home, Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming"))
        return cls(home, Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config"))


@dataclass(frozen=True, slots=True)
class Client:
    name: str
    title: str
    afterwards: str
    key: str = "mcpServers"
    is_typed: bool = False  # its entries say whether they are stdio or http
    takes_http: bool = True

    def file(self, place: UserFolders) -> Path:
        return {
            "claude": place.roaming / "Claude" / "claude_desktop_config.json",
            "claude-code": place.home / ".claude.json",
            "cursor": place.home / ".cursor" / "mcp.json",
            "vscode": place.roaming / "Code" / "User" / "mcp.json",
        }[self.name]


CLIENTS = {
    client.name: client
    for client in (
        Client("claude", "Claude Desktop", "Restart Claude Desktop.", takes_http=False),
        Client("claude-code", "Claude Code", "Start a new session; /mcp lists it.", is_typed=True),
        Client("cursor", "Cursor", "Cursor settings → MCP lists it."),
        Client(
            *("vscode", "VS Code", "The command “MCP: List Servers” lists it."),
            key="servers",
            is_typed=True,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Server:
    """How a client reaches the memory: it starts a process, or connects to an address."""

    command: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    url: str | None = None
    # The addresses of this memory, in this entry or an earlier one.
    addresses: frozenset[str] = frozenset()
    # The key that the client sends to authenticate.
    key: str | None = field(default=None, repr=False)

    def entry(self, client: Client) -> Entry:
        if self.url is not None:
            http: Entry = (
                {"type": "http", "url": self.url} if client.is_typed else {"url": self.url}
            )
            return http | ({"headers": {"Authorization": f"Bearer {self.key}"}} if self.key else {})
        entry: Entry = {"type": "stdio"} if client.is_typed else {}
        entry |= {"command": self.command[0], "args": list(self.command[1:])}
        return entry | ({"env": self.env} if self.env else {})


@dataclass(frozen=True, slots=True)
class ConfigEdit:
    file: Path
    before: str | None  # None: there is no such file
    after: str

    @property
    def is_needed(self) -> bool:
        return self.before != self.after


class Unreadable(InvalidInput):
    """The file is not plain JSON of the expected structure: a person has to change it."""


def connect(client: Client, file: Path, name: str, server: Server) -> ConfigEdit:
    """The file with the memory added. Another server of that name is not replaced."""
    before, content = _read(client, file)
    servers = content.setdefault(client.key, {})
    entry, wanted = servers.get(name), server.entry(client)
    if entry is not None and not _is_ours(entry, server):
        raise Conflict(
            f"{file} has another server called {name!r}: it was left as it is. Choose another name "
            "with --name, or remove that server first."
        )
    if entry == wanted and before is not None:
        return ConfigEdit(file, before, before)
    servers[name] = wanted
    return ConfigEdit(file, before, _written(content, before))


def disconnect(client: Client, file: Path, name: str, server: Server) -> ConfigEdit:
    """The file with the memory removed."""
    before, content = _read(client, file)
    servers = content.get(client.key, {})
    entry = servers.get(name)
    if before is None or entry is None:
        return ConfigEdit(file, before, before or "")
    if not _is_ours(entry, server):
        raise Conflict(
            f"The server {name!r} in {file} is not this memory: it was left as it is. --name says "
            "which one is meant."
        )
    del servers[name]
    return ConfigEdit(file, before, _copy_of(content, file) or _written(content, before))


def write(change: ConfigEdit) -> Path | None:
    """Replace the file in one step. Returns the copy of the previous file."""
    target = change.file.resolve()  # a link stays a link
    target.parent.mkdir(parents=True, exist_ok=True)
    backup = _backup(target) if change.before is not None else None
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
            out.write(change.after)
            out.flush()
            os.fsync(out.fileno())
        if backup is not None:
            Path(draft).chmod(target.stat().st_mode & 0o777)
        Path(draft).replace(target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return backup


def _backup(file: Path) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        backup = file.with_name(f"{file.name}.{stamp}{f'-{number}' if number else ''}.bak")
        try:
            with backup.open("xb") as copy:
                backup.chmod(file.stat().st_mode & 0o777)
                copy.write(file.read_bytes())
        except FileExistsError:
            continue
        return backup
    raise Conflict(f"No free name for a copy of {file}: nothing was changed.")


def _copy_of(content: dict[str, Any], file: Path) -> str | None:
    """An earlier copy with the same content, in its owner's formatting."""
    target = file.resolve()
    for backup in sorted(target.parent.glob(f"{glob.escape(target.name)}.*.bak"), reverse=True):
        try:
            text = backup.read_bytes().decode()
            if json.loads(text.removeprefix("\ufeff")) == content:
                return text
        except (OSError, ValueError):
            continue
    return None


def _read(client: Client, file: Path) -> tuple[str | None, dict[str, Any]]:
    try:
        # newline="" keeps the line endings.
        with file.open(encoding="utf-8", newline="") as opened:
            text = opened.read()
    except FileNotFoundError:
        return None, {}
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"{file} cannot be read ({error}): it was left as it is.") from None
    if not text.strip("\ufeff \t\r\n"):
        return text, {}
    try:
        content = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_without_repetition)
    except ValueError as error:
        raise Unreadable(
            f"{file} is not plain JSON ({error}; comments?): it was left as it is."
        ) from None
    if not isinstance(content, dict) or not isinstance(content.get(client.key, {}), dict):
        raise Unreadable(f"{file} is not as {client.title} writes it: it was left as it is.")
    return text, content


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse repeated keys: parsing would lose one of their values."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key is repeated")
    return content


def _written(content: dict[str, Any], before: str | None) -> str:
    """With the same indentation as before."""
    before = before or ""
    match = _INDENT.search(before)
    text = json.dumps(content, indent=match[1] if match else 2, ensure_ascii=False) + "\n"
    if "\r\n" in before:
        text = text.replace("\n", "\r\n")
    return ("\ufeff" if before.startswith("\ufeff") else "") + text


def _is_ours(entry: object, server: Server) -> bool:
    """Whether the entry starts our command, wherever it is installed, or has our address."""
    if not isinstance(entry, dict):
        return False
    command = str(entry.get("command", ""))
    arguments = entry.get("args")
    arguments = arguments if isinstance(arguments, list) else []
    program = re.split(r"[/\\]", command)[-1].removesuffix(".exe")
    started = program == _PROGRAM or _MODULE in arguments or _PROGRAM in arguments
    return (started and "serve" in arguments) or entry.get("url") in server.addresses
