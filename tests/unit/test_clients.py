"""The memory in the files of MCP clients: nothing of them is ever damaged."""

import json
import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mcp_server import clients
from mcp_server.cli import app
from mcp_server.clients import CLIENTS, Server, Unreadable, UserFolders
from memory_core.access import keys
from memory_core.kernel.errors import Conflict, InvalidInput

STDIO = Server(command=("/opt/bin/mcp-memory", "serve", "--stdio"))
ADDRESS = "http://127.0.0.1:3000/mcp"
HTTP = Server(url=ADDRESS, addresses=frozenset({ADDRESS}))
OTHERS = {"mcpServers": {"github": {"command": "gh-mcp", "args": []}}, "theme": "dark"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


def connect(file: Path, server: Server = STDIO, client: str = "cursor") -> Path | None:
    return clients.write(clients.connect(CLIENTS[client], file, "memory", server))


def disconnect(file: Path, server: Server = STDIO, client: str = "cursor") -> None:
    clients.write(clients.disconnect(CLIENTS[client], file, "memory", server))


# --- what is written -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "server", "content"),
    [
        ("claude", STDIO, {"mcpServers": {"memory": {"command": "/opt/bin/mcp-memory",
                                                     "args": ["serve", "--stdio"]}}}),
        ("cursor", HTTP, {"mcpServers": {"memory": {"url": ADDRESS}}}),
        ("claude-code", HTTP, {"mcpServers": {"memory": {"type": "http", "url": ADDRESS}}}),
        ("vscode", HTTP, {"servers": {"memory": {"type": "http", "url": ADDRESS}}}),
        ("vscode", STDIO, {"servers": {"memory": {"type": "stdio",
                                                  "command": "/opt/bin/mcp-memory",
                                                  "args": ["serve", "--stdio"]}}}),
    ],
)  # fmt: skip
def test_each_client_gets_its_own_format(
    file: Path, client: str, server: Server, content: dict[str, object]
) -> None:
    assert connect(file, server, client) is None, "there was nothing to copy"

    assert json.loads(file.read_text()) == content


@pytest.mark.parametrize(
    ("platform", "claude", "vscode"),
    [
        ("linux", ".config/Claude/claude_desktop_config.json", ".config/Code/User/mcp.json"),
        (
            "darwin",
            "Library/Application Support/Claude/claude_desktop_config.json",
            "Library/Application Support/Code/User/mcp.json",
        ),
        (
            "win32",
            "AppData/Roaming/Claude/claude_desktop_config.json",
            "AppData/Roaming/Code/User/mcp.json",
        ),
    ],
)
def test_each_platform_has_its_own_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, claude: str, vscode: str
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("APPDATA", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    place = UserFolders.of_user()

    assert CLIENTS["claude"].file(place) == tmp_path / claude
    assert CLIENTS["vscode"].file(place) == tmp_path / vscode
    assert CLIENTS["cursor"].file(place) == tmp_path / ".cursor/mcp.json"
    assert CLIENTS["claude-code"].file(place) == tmp_path / ".claude.json"


# --- what is kept ----------------------------------------------------------------------------


def test_other_servers_and_settings_stay(file: Path) -> None:
    file.write_text(json.dumps(OTHERS))

    connect(file)

    content = json.loads(file.read_text())
    assert content["theme"] == "dark"
    assert content["mcpServers"]["github"] == OTHERS["mcpServers"]["github"]
    assert set(content["mcpServers"]) == {"github", "memory"}


def test_a_copy_of_the_file_is_kept_as_it_was(file: Path) -> None:
    file.write_text(json.dumps(OTHERS))
    file.chmod(0o600)

    backup = connect(file)

    assert backup is not None
    assert json.loads(backup.read_text()) == OTHERS
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert sorted(file.parent.iterdir()) == sorted([file, backup]), "no draft is left behind"


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"a": {"command": "x",\n  "args": ["1", "2"]}}, "ä": "ü"}',
        '{\r\n\t"mcpServers": {}\r\n}\r\n',
        '\ufeff{\n    "other": 1\n}\n',
    ],
)
def test_undoing_brings_back_every_byte(file: Path, text: str) -> None:
    file.write_bytes(text.encode())

    connect(file)
    assert file.read_bytes() != text.encode()
    disconnect(file)

    after = json.loads(file.read_text(encoding="utf-8-sig"))
    if "mcpServers" in text:
        assert file.read_bytes() == text.encode()
    else:
        assert after == {"other": 1, "mcpServers": {}}


def test_what_was_changed_since_survives_undoing(file: Path) -> None:
    file.write_text(json.dumps(OTHERS))
    connect(file)
    content = json.loads(file.read_text())
    content["theme"] = "light"
    file.write_text(json.dumps(content))

    disconnect(file)

    assert json.loads(file.read_text()) == {**OTHERS, "theme": "light"}


def test_connecting_twice_changes_nothing_the_second_time(file: Path) -> None:
    connect(file)

    assert not clients.connect(CLIENTS["cursor"], file, "memory", STDIO).is_needed


@pytest.mark.parametrize(("first", "second"), [(STDIO, HTTP), (HTTP, STDIO)])
def test_our_own_entry_is_replaced_by_another_transport(
    file: Path, first: Server, second: Server
) -> None:
    registered = Server(second.command, url=second.url, addresses=frozenset({ADDRESS}))
    connect(file, first)
    connect(file, registered)

    entry = json.loads(file.read_text())["mcpServers"]["memory"]
    assert entry == second.entry(CLIENTS["cursor"])


def test_a_file_behind_a_link_is_changed_and_the_link_stays(file: Path) -> None:
    real = file.with_name("real.json")
    real.write_text("{}")
    file.symlink_to(real)

    connect(file)

    assert file.is_symlink()
    assert "memory" in real.read_text()


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{\n  // a comment\n  "mcpServers": {}\n}',
        '{"mcpServers": {},}',
        '{"mcpServers": {"a": 1}, "mcpServers": {}}',
        "[]",
        '{"mcpServers": []}',
        '{"mcpServers": {',
        b"\xff\xfe{\x00}\x00",
    ],
    ids=["comment", "comma", "repeated key", "list", "no object", "cut off", "utf-16"],
)
def test_what_cannot_be_read_is_left_alone(file: Path, text: str | bytes) -> None:
    raw = text if isinstance(text, bytes) else text.encode()
    file.write_bytes(raw)

    with pytest.raises(Unreadable, match="left as it is"):
        connect(file)

    assert file.read_bytes() == raw
    assert list(file.parent.iterdir()) == [file]


def test_another_server_of_that_name_is_not_replaced(file: Path) -> None:
    theirs = {"mcpServers": {"memory": {"command": "npx", "args": ["server-memory"]}}}
    file.write_text(json.dumps(theirs))

    with pytest.raises(Conflict, match="--name"):
        connect(file)
    with pytest.raises(Conflict):
        disconnect(file)

    assert json.loads(file.read_text()) == theirs


# --- the command -----------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["connect", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def entry(home: Path) -> dict[str, object]:
    return dict(json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["memory"])


def test_the_command_writes_an_absolute_program_and_no_default_folder(home: Path) -> None:
    run("cursor")

    written = entry(home)
    assert os.path.isabs(str(written["command"]))  # noqa: PTH117
    assert written["args"] == ["serve", "--stdio"]
    assert "env" not in written


def test_another_memory_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA_DIR", "elsewhere")

    run("cursor")

    assert entry(home)["env"] == {"DATA_DIR": str(home / "elsewhere")}


def test_secrets_are_not_written_and_that_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-do-not-write")

    output = run("cursor")

    assert "OPENAI_API_KEY" in output
    assert "do-not-write" not in (home / ".cursor/mcp.json").read_text() + output


def test_a_dry_run_writes_nothing(home: Path) -> None:
    assert '+    "memory": {' in run("cursor", "--dry-run")
    assert list(home.iterdir()) == []


def test_over_http_and_back(home: Path) -> None:
    run("cursor", "--http")
    assert entry(home) == {"url": ADDRESS}

    output = run("cursor", "--undo")

    assert "Cursor no longer lists the memory: " in output
    assert json.loads((home / ".cursor/mcp.json").read_text()) == {"mcpServers": {}}
    assert "does not list the memory" in run("cursor", "--undo")


def test_a_file_with_comments_gets_the_entry_to_paste(home: Path) -> None:
    file = home / ".config/Code/User/mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text('{\n  // mine\n  "servers": {}\n}')

    done = CliRunner().invoke(app, ["connect", "vscode"])

    assert isinstance(done.exception, Unreadable)
    assert json.loads(done.stdout)["memory"]["args"] == ["serve", "--stdio"]
    assert "// mine" in file.read_text()


@pytest.mark.usefixtures("home")
def test_the_inspector_is_a_command_to_run() -> None:
    assert run("inspector").startswith("npx @modelcontextprotocol/inspector /")
    assert run("inspector").strip().endswith(" -- serve --stdio")
    assert run("inspector", "--http").strip().endswith(f"--server-url {ADDRESS}")


def test_a_key_is_written_for_the_client_and_shown_nowhere(home: Path) -> None:
    key = keys.new_text()
    (home / "key").write_text(f"{key}\n")

    shown = run("cursor", "--http", "--key-file", str(home / "key"), "--dry-run")
    shown += run("cursor", "--http", "--key-file", str(home / "key"))

    assert entry(home) == {"url": ADDRESS, "headers": {"Authorization": f"Bearer {key}"}}
    assert key[18:] not in shown
    assert f"{key[:17]}_***" in shown
    assert stat.S_IMODE((home / ".cursor/mcp.json").stat().st_mode) == 0o600


@pytest.mark.usefixtures("home")
def test_with_keys_a_client_without_one_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTH", "keys")
    assert "mcp-memory keys create" in run("cursor", "--http")


@pytest.mark.parametrize("words", [["--key-file", "key"], ["--http", "--key-file", "nothing"]])
def test_a_key_that_cannot_be_used_is_refused(home: Path, words: list[str]) -> None:
    (home / "key").write_text("mcpmem_no")
    done = CliRunner().invoke(app, ["connect", "cursor", *words])
    assert isinstance(done.exception, InvalidInput)
    assert not (home / ".cursor").exists()
