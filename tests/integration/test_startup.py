"""Start-up: a command loads what it needs, so that a client is greeted within its patience."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

_IMPORTED = re.compile(r"^import time:\s+\d+ \|\s+\d+ \|\s*(\S+)$", re.MULTILINE)
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
# Each costs a tenth of a second or more, and a greeting needs none of them.
NOT_FOR_A_GREETING = {
    "chromadb",
    "dagster",
    "grpc",
    "numpy",
    "openai",
    "sqlalchemy",
    "tiktoken",
    "wordllama",
}
NOT_FOR_A_VERSION = NOT_FOR_A_GREETING | {"httpx", "mcp", "psycopg", "pydantic", "rich"}


def loaded(*words: str, said: str = "", cwd: Path) -> tuple[str, set[str]]:
    """What the command printed, and the packages that it imported until its input ended."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "mcp_server.cli", *words],
        input=said,
        capture_output=True,
        text=True,
        cwd=cwd,
        check=True,
    )
    return done.stdout, {name.partition(".")[0] for name in _IMPORTED.findall(done.stderr)}


def test_the_version_is_told_without_loading_the_product(tmp_path: Path) -> None:
    printed, packages = loaded("--version", cwd=tmp_path)
    assert printed.startswith("mcp-memory ")
    assert packages & NOT_FOR_A_VERSION == set()


def test_a_client_is_greeted_before_anything_heavy_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    printed, packages = loaded("serve", "--stdio", said=json.dumps(HELLO) + "\n", cwd=tmp_path)
    info = json.loads(printed)["result"]["serverInfo"]
    assert (info["name"], info["title"]) == ("mcp-memory", "Memory")
    assert "mcp" in packages
    assert packages & NOT_FOR_A_GREETING == set()
    assert not (tmp_path / "data").exists()
