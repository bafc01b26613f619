"""Clients that others wrote: the TypeScript SDK, and the Inspector's command line, from npm.

Installed once into a cache folder outside the repository (MCP_INSPECTOR_CACHE, or the user's own).
Where Node or the packages cannot be had, the tests that need them are skipped and say so.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memory_core.kernel.file_locks import holding

Json = dict[str, Any]

# The Inspector runs on the Node that it was made for; npm would choose in the same way.
_NEWEST, _NEEDS_NODE = "2.12.0", (22, 19)
_OLDER = "0.15.0"
_SDK = {"1": "@modelcontextprotocol/sdk@1.32.2", "2": "@modelcontextprotocol/client@2.3.1"}
_SECONDS = 300

# Reads one request a line, writes one answer a line. Tools are listed first: only then does the
# SDK know the output schemas that it checks answers against.
_DRIVER = """
import { createInterface } from "node:readline";
const [version, target] = [process.argv[1], JSON.parse(process.argv[2])];
const [first, second] = ["@modelcontextprotocol/sdk/client", "@modelcontextprotocol/client"];
const { Client } = await import(version === "1" ? first + "/index.js" : second);
const http = version === "1" ? first + "/streamableHttp.js" : second;
const stdio = version === "1" ? first + "/stdio.js" : second + "/stdio";
const transport = target.url
  ? new (await import(http)).StreamableHTTPClientTransport(new URL(target.url))
  : new (await import(stdio)).StdioClientTransport({ ...target, stderr: "ignore" });
const client = new Client({ name: "test", version: "1" });
const heard = [];
client.fallbackNotificationHandler = async ({ method, params }) => {
  heard.push({ method, uri: params?.uri });
};
await client.connect(transport);
const hello = { server: client.getServerVersion(), tools: (await client.listTools()).tools };
console.log(JSON.stringify(hello));
for await (const line of createInterface({ input: process.stdin })) {
  const { method, params } = JSON.parse(line);
  if (method === "heard") {
    while (heard.length < params.number) await new Promise((wake) => setTimeout(wake, 20));
    console.log(JSON.stringify({ result: heard.splice(0) }));
    continue;
  }
  try {
    if (method === "listen") {
      await client.listen(params);
      console.log(JSON.stringify({ result: {} }));
      continue;
    }
    console.log(JSON.stringify({ result: await client[method](params) }));
  } catch (error) {
    const { code, message, data } = error;
    console.log(JSON.stringify({ thrown: { code, message, data } }));
  }
}
await client.close();
"""


@dataclass(frozen=True, slots=True)
class Target:
    """A server to speak to: a URL, or a command to start."""

    url: str | None = None
    command: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None


class TypeScriptClient:
    """A client of the SDK in a Node process of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        hello = self._read()
        self.server: Json = hello["server"]
        self.tools: list[Json] = hello["tools"]

    def ask(self, method: str, **params: Any) -> Json:
        """{"result": …}, or {"thrown": …} where the SDK throws at its user."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"method": method, "params": params}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def call(self, tool: str, arguments: Json) -> Json:
        answer = self.ask("callTool", name=tool, arguments=arguments)
        assert "result" in answer, f"{tool}: the SDK throws {answer}"
        result: Json = answer["result"]
        return result

    def _read(self) -> Json:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the Node process has ended; its complaint is on standard error"
        answer: Json = json.loads(line)
        return answer


class Npm:
    """The packages in their cache folder, and the Node that runs them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def client(self, version: str, target: Target) -> Iterator[TypeScriptClient]:
        """`version`: of the SDK's two generations, "1" or "2"."""
        settings: Json = {"url": target.url}
        if target.command:
            command, *args = target.command
            settings = {"command": command, "args": args, "env": dict(target.env or {})}
        process = subprocess.Popen(
            ["node", "--input-type=module", "-e", _DRIVER, version, json.dumps(settings)],
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield TypeScriptClient(process)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(timeout=_SECONDS) == 0
        finally:
            process.kill()
            process.wait()

    def inspector(self, target: Target, method: str, *options: str) -> Json:
        """What the Inspector's command line prints."""
        variables = [f"-e{name}={value}" for name, value in (target.env or {}).items() if value]
        where = [target.url, "--transport", "http"] if target.url else target.command
        done = subprocess.run(
            [
                self._folder / "node_modules" / ".bin" / "mcp-inspector",
                "--cli", *map(str, where), "--method", method, *options, *variables,
            ],
            cwd=self._folder, capture_output=True, text=True, timeout=_SECONDS,
        )  # fmt: skip
        assert done.stdout.strip(), f"the Inspector printed nothing but: {done.stderr}"
        printed: Json = json.loads(done.stdout)
        return printed

    def inspect(self, target: Target, tool: str, arguments: Json) -> Json:
        """One call of a tool by the Inspector's command line."""
        given = [
            f"{name}={value if isinstance(value, str) else json.dumps(value)}"
            for name, value in arguments.items()
        ]
        options = ["--tool-name", tool, *(["--tool-arg", *given] if given else [])]
        return self.inspector(target, "tools/call", *options)


def installed() -> Npm:
    """The cache folder, filled the first time. Skips where that is not possible."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node and npm are not installed: TypeScript clients are not tried")
    packages = [f"@modelcontextprotocol/inspector@{_inspector_version()}", *_SDK.values()]
    default = Path.home() / ".cache" / "mcp-memory-tests"
    cache = Path(os.environ.get("MCP_INSPECTOR_CACHE", default))
    folder = cache / f"inspector-{_inspector_version()}"
    folder.mkdir(parents=True, exist_ok=True)
    complete = folder / "complete.json"
    with holding(folder / "lock", timeout=_SECONDS) as held:
        if not held:
            pytest.skip(f"{folder} is being filled by another test for longer than we wait")
        if not complete.is_file() or json.loads(complete.read_text()) != packages:
            _install(folder, packages)
            complete.write_text(json.dumps(packages))
    return Npm(folder)


def _inspector_version() -> str:
    printed = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    major, minor, _ = printed.stdout.strip().lstrip("v").split(".")
    return _NEWEST if (int(major), int(minor)) >= _NEEDS_NODE else _OLDER


def _install(folder: Path, packages: list[str]) -> None:
    # Without a network it is to say so soon.
    patience = ["--fetch-retries=0", "--fetch-timeout=60000"]
    command = [
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        *patience,
        "--prefix",
        folder,
        *packages,
    ]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm took too long: TypeScript clients are not tried")
    if done.returncode != 0:
        pytest.skip(f"npm could not install them: TypeScript clients are not tried. {done.stderr}")
