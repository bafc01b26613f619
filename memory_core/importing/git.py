"""git, asked so that a repository cannot make it run or fetch anything."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from memory_core.errors import InvalidInput

# A repository's own configuration may name programs: none of them is run.
_SAFE = (
    "--no-pager", "--no-replace-objects", "--no-optional-locks", "--literal-pathspecs",
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat",
    "-c", "log.showSignature=false", "-c", "log.showRoot=true", "-c", "protocol.allow=never",
    "-c", "core.sshCommand=false", "-c", "core.askPass=false", "-c", "credential.helper=",
    "-c", "log.follow=false", "-c", "log.mailmap=false", "-c", "diff.renameLimit=2000",
    "-c", "color.ui=false", "-c", "diff.ignoreSubmodules=all", "-c", "submodule.recurse=false",
)  # fmt: skip
_SECONDS = 600
_RECORD, _FIELD = "\x1e", "\x1f"
_SYMLINK, _SUBMODULE = "120000", "160000"


@dataclass(frozen=True, slots=True)
class Commit:
    id: str
    author: str
    when: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """One file in one commit. `before` is where the file was, if it was elsewhere."""

    path: str
    blob: str
    kind: str  # A, M, D, R, T
    before: str | None = None


class Repository:
    def __init__(self, inside: Path) -> None:
        folder = inside if inside.is_dir() else inside.parent
        top = self._run(folder, "rev-parse", "--show-toplevel").rstrip(b"\n")
        self.top = Path(os.fsdecode(top)).resolve()

    def files(self, below: str) -> list[str]:
        """Regular files of HEAD, as paths from the top."""
        listed = self._run(self.top, "ls-tree", "-r", "-z", "--full-tree", "HEAD", "--", below)
        found = []
        for entry in filter(None, listed.split(b"\x00")):
            about, _, path = entry.partition(b"\t")
            if about.split()[0].decode() not in (_SYMLINK, _SUBMODULE):
                found.append(os.fsdecode(path))
        return found

    def log(self, below: str, *, follow: bool) -> Iterator[tuple[Commit, list[Change]]]:
        """Newest first, along the first parents: what the branch held, one state after the
        other. A merge is one step."""
        arguments = [
            "log", "--first-parent", "-m", "--raw", "-z", "--no-abbrev", "--find-renames=50%",
            "--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-color",
            f"--format={_RECORD}%H{_FIELD}%an{_FIELD}%ct{_FIELD}",
            *(["--follow"] if follow else []), "HEAD", "--", below,
        ]  # fmt: skip
        with self._open(self.top, *arguments) as process:
            assert process.stdout is not None
            for record in _records(process.stdout):
                yield _commit(record)
        if process.returncode != 0:
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
        return subprocess.Popen(
            ["git", *_SAFE, *arguments], cwd=folder, env=_environment(), stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip


class Blobs:
    """Contents by their ids, one after the other, through one process."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def read(self, blob: str, limit: int) -> bytes | None:
        """None for one that is too large or missing. Never more than `limit` in memory."""
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
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_PAGER": "cat",
        "LC_ALL": "C.UTF-8",
    }


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    """What stands between record separators, without holding the whole log."""
    rest = b""
    mark = _RECORD.encode()
    while part := stream.read(1 << 16):
        *whole, rest = (rest + part).split(mark)
        yield from filter(None, whole)
    if rest:
        yield rest


def _commit(record: bytes) -> tuple[Commit, list[Change]]:
    commit_id, author, seconds, rest = record.split(_FIELD.encode(), 3)
    commit = Commit(
        commit_id.decode(),
        author.decode(errors="replace"),
        datetime.fromtimestamp(int(seconds), tz=UTC),
    )
    return commit, list(_changes(rest.lstrip(b"\x00\n").split(b"\x00")))


def _changes(parts: list[bytes]) -> Iterator[Change]:
    """`:oldmode newmode oldid newid KIND` NUL path [NUL path]."""
    queue = iter(parts)
    for about in queue:
        if not about.startswith(b":"):
            continue
        _, mode, _, blob, kind = about.decode().split()
        path = os.fsdecode(next(queue))
        before = None
        if kind[0] in "RC":
            before, path = path, os.fsdecode(next(queue))
        if mode not in (_SYMLINK, _SUBMODULE):
            yield Change(path, blob, kind[0], before if kind[0] == "R" else None)
