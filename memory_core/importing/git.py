"""Calls git so that a repository cannot make it run or fetch anything."""

import os
import select
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from memory_core.kernel.child_environment import minimal_environment
from memory_core.kernel.errors import InvalidInput

# A repository's own configuration may name programs; these options keep git from running them.
_SAFE = (
    "--no-pager", "--no-replace-objects", "--no-optional-locks", "--literal-pathspecs",
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat",
    "-c", "log.showSignature=false", "-c", "log.showRoot=true", "-c", "protocol.allow=never",
    "-c", "core.sshCommand=false", "-c", "core.askPass=false", "-c", "credential.helper=",
    "-c", "log.follow=false", "-c", "log.mailmap=false", "-c", "diff.renameLimit=2000",
    "-c", "color.ui=false", "-c", "diff.ignoreSubmodules=all", "-c", "submodule.recurse=false",
    "-c", "diff.orderFile=/dev/null",
)  # fmt: skip
_SECONDS = 600
# How often to check for a stop while git log is silent.
_LOOK_SECONDS = 0.2
_LAST_SECOND = int(datetime(9999, 12, 30, tzinfo=UTC).timestamp())
_SYMLINK, _SUBMODULE = "120000", "160000"


@dataclass(frozen=True, slots=True)
class GitCommit:
    id: str
    author: str
    when: datetime | None


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file in one commit. `before` is its earlier path, if it was renamed."""

    path: str
    blob: str
    kind: str  # A, M, D, R, T
    before: str | None = None


Step = tuple[GitCommit, list[FileChange]]
# Called regularly; True ends the work early.
Stopped = Callable[[], bool]


class Repository:
    def __init__(self, inside: Path) -> None:
        folder = inside if inside.is_dir() else inside.parent
        top = self._run(folder, "rev-parse", "--show-toplevel").rstrip(b"\n")
        self.top = Path(os.fsdecode(top)).resolve()

    def files(self, below: str) -> list[str]:
        """Regular files of HEAD, as paths from the top."""
        listed = self._run(self.top, "ls-tree", "-r", "-z", "--full-tree", "HEAD", "--", below)
        paths = []
        for entry in filter(None, listed.split(b"\x00")):
            about, _, path = entry.partition(b"\t")
            if about.split()[0].decode() not in (_SYMLINK, _SUBMODULE):
                paths.append(os.fsdecode(path))
        return paths

    def log(self, below: str, *, follow: bool, stopped: Stopped) -> Iterator[Step]:
        """Commits, newest first, along the first parents: one state of the branch after the other.
        A merge is one step."""
        arguments = [
            "log", "--first-parent", "--diff-merges=first-parent", "--raw", "-z", "--no-abbrev",
            "--find-renames=50%", "--no-ext-diff", "--no-textconv", "--no-show-signature",
            "--no-color", "--encoding=UTF-8", "--format=%H%x00%an%x00%ct%x00",
            *(["--follow"] if follow else []), "HEAD", "--", below,
        ]  # fmt: skip
        with self._open(self.top, *arguments) as process:
            assert process.stdout is not None
            try:
                yield from _steps(_parts(process.stdout, stopped))
            finally:
                if process.poll() is None and stopped():
                    process.kill()  # it may take long until git writes again
        if process.returncode != 0 and not stopped():
            raise InvalidInput(f"git log failed in {self.top}: is the repository sound?")

    def blobs(self) -> "Blobs":
        return Blobs(self._open(self.top, "cat-file", "--batch", stdin=subprocess.PIPE))

    def _run(self, folder: Path, *arguments: str) -> bytes:
        try:
            done = subprocess.run(
                ["git", *_SAFE, *arguments], cwd=folder, env=_environment(), check=False,
                stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise InvalidInput("--git needs the program git, which is not installed.") from error
        except subprocess.TimeoutExpired as error:
            raise InvalidInput(f"git {arguments[0]} takes too long in {folder}.") from error
        if done.returncode != 0:
            why = done.stderr.decode(errors="replace").strip().split("\n")[0][:200]
            raise InvalidInput(f"{folder} has no git history that can be read: {why}")
        return done.stdout

    def _open(
        self, folder: Path, *arguments: str, stdin: int = subprocess.DEVNULL
    ) -> "subprocess.Popen[bytes]":
        # In its own process group, so that Ctrl-C reaches only us, and we end git.
        return subprocess.Popen(
            ["git", *_SAFE, *arguments], cwd=folder, env=_environment(), stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0,
        )  # fmt: skip


class Blobs:
    """Reads blobs by id, one after the other, through one process."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def read(self, blob: str, limit: int) -> bytes | None:
        """None for a blob that is too large or missing. Never holds more than `limit` bytes in
        memory."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{blob}\n".encode())
        self._process.stdin.flush()
        head = self._process.stdout.readline().split()
        if len(head) != 3:
            return None
        size = int(head[2])
        if size > limit:
            self._skip(size + 1)
            return None
        data = self._process.stdout.read(size)
        self._process.stdout.read(1)
        return data

    def _skip(self, size: int) -> None:
        assert self._process.stdout is not None
        while size > 0 and (part := self._process.stdout.read(min(size, 1 << 20))):
            size -= len(part)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _environment() -> dict[str, str]:
    return {
        **minimal_environment(),
        # The user's configuration lists folders of other accounts that the user trusts.
        **{name: os.environ[name] for name in ("XDG_CONFIG_HOME",) if name in os.environ},
        # This overrides every configuration, even a repository's own `protocol.ext.allow`.
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_PAGER": "cat",
        "LC_ALL": "C.UTF-8",
    }


def _parts(stream: IO[bytes], stopped: Stopped) -> Iterator[bytes]:
    """The parts between NULs, which neither names nor paths can contain, without holding the whole
    log in memory."""
    rest = b""
    while not stopped():
        if not select.select([stream], [], [], _LOOK_SECONDS)[0]:
            continue
        part = os.read(stream.fileno(), 1 << 16)
        if not part:
            return
        *whole, rest = (rest + part).split(b"\x00")
        yield from whole


def _steps(parts: Iterator[bytes]) -> Iterator[Step]:
    """Fields are identified by position alone, so that no content can pose as another field."""
    commit: GitCommit | None = None
    changes: list[FileChange] = []
    for part in parts:
        about = part.lstrip(b"\n")
        if about.startswith(b":"):
            changes += _change(about, parts)
        elif about:
            if commit is not None:
                yield commit, changes
            commit, changes = _commit(about, next(parts, b""), next(parts, b"")), []
    if commit is not None:
        yield commit, changes


def _commit(commit_id: bytes, author: bytes, seconds: bytes) -> GitCommit:
    try:
        name = author.decode()
    except UnicodeDecodeError:  # it claims to be UTF-8, but is from before that was common
        name = author.decode("latin-1")
    return GitCommit(commit_id.decode(), name, _time(seconds))


def _time(text: bytes) -> datetime | None:
    """A commit may claim any time, even one that cannot be parsed."""
    try:
        seconds = int(text)
    except ValueError:
        return None
    return datetime.fromtimestamp(min(max(seconds, 0), _LAST_SECOND), tz=UTC)


def _change(about: bytes, parts: Iterator[bytes]) -> Iterator[FileChange]:
    """`:oldmode newmode oldid newid KIND` NUL path [NUL path]."""
    _, mode, _, blob, kind = about.decode().split()
    path = os.fsdecode(next(parts, b""))
    before = None
    if kind[0] in "RC":
        before, path = path, os.fsdecode(next(parts, b""))
    if path and mode not in (_SYMLINK, _SUBMODULE):
        yield FileChange(path, blob, kind[0], before if kind[0] == "R" else None)
