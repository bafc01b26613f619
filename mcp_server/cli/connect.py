"""`mcp-memory connect`: adds the memory to a client's list of servers."""

import difflib
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from mcp_server import clients
from mcp_server.cli import terminal_tables
from mcp_server.cli.configuration import read_settings
from mcp_server.cli.safe_text import as_json as json_text
from mcp_server.clients import CLIENTS, Client, ConfigEdit, Server, Unreadable, UserFolders
from memory_core.access import keys
from memory_core.kernel.errors import InvalidInput
from memory_core.kernel.settings import Settings, default_data_dir
from stack.memory_in_use import memory_in_use
from stack.services import mcp_url

INSPECTOR = "inspector"
# Settings that are secret or personal, so they are not written into a client's file.
_NOT_HANDED_OVER = ("openai_api_key", "openai_base_url", "openai_embed_model",
                    "openai_embed_dims", "embedder", "events_db_dsn", "chroma_host")  # fmt: skip


def run(
    which: str,
    *,
    http: bool,
    name: str,
    file: Path | None,
    key_file: str | None,
    dry_run: bool,
    undo: bool,
    as_json: bool,
) -> None:
    settings = read_settings()
    if key_file is not None and not http:
        raise InvalidInput("A key is for --http: a server that the client starts asks for none.")
    server = replace(_server(settings, http=http), key=_read_key(key_file))
    if which == INSPECTOR:
        return _tell_inspector(server, undo=undo, as_json=as_json)
    if which not in CLIENTS:
        names = ", ".join([*CLIENTS, INSPECTOR])
        raise InvalidInput(f"{which!r} is no client that is known here: choose {names}.")
    client = CLIENTS[which]
    if http and not client.takes_http:
        raise InvalidInput(
            f"{client.title} starts its servers itself: leave out --http. Nothing was written."
        )
    path = file.expanduser().absolute() if file else client.file(UserFolders.of_user())
    change_file = clients.disconnect if undo else clients.connect
    try:
        change = change_file(client, path, name, server)
    except Unreadable as fault:
        if not undo:
            _say_what_to_paste(client, name, server)
        raise fault
    backup = clients.write(change) if change.is_needed and not dry_run else None
    if as_json:
        print(_masked(json_text(_as_json(client, change, backup, server, dry_run=dry_run))))
        return None
    _print_result(client, change, backup, dry_run=dry_run, undo=undo)
    if not undo and not http:
        _warn(settings)
    if not undo and http and settings.auth == "keys" and server.key is None:
        print(
            "Note: AUTH=keys is set here. Make a key with `mcp-memory keys create` and connect "
            "again with --key-file.",
            file=sys.stderr,
        )
    return None


def _read_key(key_file: str | None) -> str | None:
    """Read from a file or from stdin: every user of the machine can see command-line arguments."""
    if key_file is None:
        return None
    try:
        text = sys.stdin.read() if key_file == "-" else Path(key_file).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{key_file} cannot be read: {type(error).__name__}.") from None
    key = text.strip()
    if keys.prefix_of(key) is None:
        raise InvalidInput("That is not a key: it must be mcpmem_… and nothing else.")
    return key


def _masked(text: str) -> str:
    return keys.PATTERN.sub(r"\1_***", text)


def _server(settings: Settings, *, http: bool) -> Server:
    memory = memory_in_use(settings)
    addresses = []
    if memory.stack is not None and memory.stack.mcp_url is not None:
        addresses.append(memory.stack.mcp_url)
    if settings.mcp_port:
        addresses.append(mcp_url(settings))
    ours = frozenset(addresses)
    if not http:
        env = {} if memory.path == default_data_dir().resolve() else {"DATA_DIR": str(memory.path)}
        return Server(command=(*program(), "serve", "--stdio"), env=env, addresses=ours)
    if not addresses:
        raise InvalidInput("MCP_PORT=0 is another port at every start: set one for --http.")
    return Server(url=addresses[0], addresses=ours)


def program() -> tuple[str, ...]:
    """Absolute, because a client does not have our PATH."""
    script = Path(sys.executable).parent / "mcp-memory"
    return (str(script),) if script.is_file() else (sys.executable, "-m", "mcp_server.cli")


def _print_result(
    client: Client, change: ConfigEdit, backup: Path | None, *, dry_run: bool, undo: bool
) -> None:
    out = terminal_tables.console()
    if not change.is_needed:
        state = "does not list the memory" if undo else "lists the memory already"
        out.print(f"{client.title} {state}: {change.file} was left as it is.", soft_wrap=True)
        return
    if dry_run:
        out.print(f"{change.file} would become:", soft_wrap=True, highlight=False)
        before, after = (_masked(text).splitlines() for text in (change.before or "", change.after))
        for line in list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]:
            print(line)
        return
    done = "no longer lists the memory" if undo else "lists the memory now"
    out.print(f"{client.title} {done}: {change.file}", soft_wrap=True)
    if backup is not None:
        out.print(f"The file as it was: {backup}", soft_wrap=True)
    if not undo:
        out.print(client.afterwards)
        if client.name == "claude":
            out.print("For Claude Code: mcp-memory connect claude-code")


def _say_what_to_paste(client: Client, name: str, server: Server) -> None:
    print(f"To connect {client.title} by hand, add this to its {client.key!r}:", file=sys.stderr)
    print(_masked(json.dumps({name: server.entry(client)}, indent=2, ensure_ascii=False)))


def _warn(settings: Settings) -> None:
    """Warn about settings that the client's environment will not have."""
    chosen = [name.upper() for name in _NOT_HANDED_OVER if name in settings.model_fields_set]
    if chosen:
        print(
            f"Note: {', '.join(chosen)} is set here, and is not written into the client's file. "
            "With `mcp-memory up` running, use --http; else add it to the entry's env yourself.",
            file=sys.stderr,
        )


def _tell_inspector(server: Server, *, undo: bool, as_json: bool) -> None:
    """The Inspector keeps no file: it is started for one server."""
    if undo:
        raise InvalidInput("The Inspector keeps no list of servers: there is nothing to undo.")
    command = ["npx", "@modelcontextprotocol/inspector"]
    if server.url is not None:
        command += ["--transport", "http", "--server-url", server.url]
    else:
        command += [part for item in server.env.items() for part in ("-e", "=".join(item))]
        program, *arguments = server.command
        command += [program, "--", *arguments]
    if as_json:
        print(json_text({"client": INSPECTOR, "command": command}))
        return
    typer.echo(shlex.join(command))


def _as_json(
    client: Client, change: ConfigEdit, backup: Path | None, server: Server, *, dry_run: bool
) -> dict[str, Any]:
    return {
        "client": client.name,
        "file": str(change.file),
        "changed": change.is_needed and not dry_run,
        "backup": str(backup) if backup else None,
        "entry": server.entry(client),
        "content": change.after if dry_run else None,
    }
