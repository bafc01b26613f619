"""Files that are hostile, broken or in motion: each is reported, and the rest is imported."""

import asyncio
import io
import os
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from memory_core.importing import safe_files, sandbox
from memory_core.importing.batch_store import Storing
from memory_core.importing.file_cache import KnownItem
from memory_core.importing.file_walk import FoundFile
from memory_core.importing.limits import Limits
from memory_core.importing.reader import ParsedFile, Reader
from memory_core.importing.report import ImportReport
from memory_core.importing.roots import Root
from memory_core.kernel.database import Database, Session
from memory_core.kernel.errors import PostgresUnavailable
from memory_core.runtime import Runtime
from tests.importing import Importer, counts, names
from tests.patience import PATIENCE


@pytest.fixture
def importer(runtime: Runtime, tmp_path: Path) -> Importer:
    return Importer(runtime, tmp_path / "data")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "inbox"
    made.mkdir()
    (made / "good.md").write_text("Good words.\n")
    return made


def bomb(size: int) -> bytes:
    """A DOCX whose one part unpacks to that many bytes."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("word/document.xml", "w", force_zip64=True) as part,
    ):
        for _ in range(size // 1_000_000):
            part.write(b"<" * 1_000_000)
    return out.getvalue()


def grown_by_reading(folder: Path) -> int:
    """Bytes by which a process of its own grows at most when it reads all of it. Ours may have been
    larger before, and would then not grow."""
    code = """
import resource, sys
from pathlib import Path
from memory_core.importing.file_cache import FileCache
from memory_core.importing.reader import Reader
from memory_core.importing.roots import ImportPlace, Registry, Root
from memory_core.importing.import_run import survey

def peak():
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in ru_maxrss what the parent held when it started us.
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

folder, empty = map(Path, sys.argv[1:])
reader = Reader({"inbox": FileCache(empty, "inbox", "")})
surveyed = survey([ImportPlace(Root("inbox", folder), ".", False)], Registry(empty), empty)
before = peak()
for one in surveyed.files:
    reader.read(one)
print(peak() - before)
"""
    command = [sys.executable, "-c", code, str(folder), str(folder.parent / "none")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout)


async def test_hostile_files_are_reported_and_stop_no_import(
    importer: Importer, folder: Path, tmp_path: Path, sql: psycopg.Connection
) -> None:
    await importer(folder)
    secret = tmp_path / "secret.txt"
    secret.write_text("TOP SECRET")
    (folder / "link.txt").symlink_to(secret)
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.txt")
    os.mknod(folder / "socket.txt", stat.S_IFSOCK | 0o600)
    with (folder / "line.txt").open("wb") as line:  # 100 MB in one line, of no size on disk
        line.truncate(100_000_000)
    (folder / "bomb.docx").write_bytes(bomb(300_000_000))
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4\n" + b"\xff" * 1000)
    (folder / "empty.md").write_bytes(b"")
    (folder / "binary.dat").write_bytes(bytes(range(256)) * 50)
    (folder / "nul.md").write_bytes(b"before \x00 after")
    (folder / "bidi.js").write_text("/*\u202e } \u2066if (admin)\u2069 */")
    (folder / "deep.json").write_text("[" * 200_000)
    (folder / os.fsdecode(b"b\xe4d name.txt")).write_text("A name that is no UTF-8.")
    (folder / ".git").mkdir()

    report = await importer(folder)

    assert grown_by_reading(folder) < 50_000_000, "none of the large ones was ever held"
    created = {Path(entry.path).name for entry in report.created}
    assert created >= {"nul.md", "bidi.js", "deep.json"}
    assert os.fsdecode(b"b\xe4d name.txt") in created
    reasons = {Path(e.path).name: e.reason or "" for e in [*report.skipped, *report.failed]}
    for name, words in {
        "link.txt": "symbolic link", "loop": "symbolic link", "pipe.txt": "pipe",
        "socket.txt": "socket", "line.txt": "too large", "bomb.docx": "zip bomb",
        "broken.pdf": "not a readable PDF", "empty.md": "empty", "binary.dat": "not text",
        ".git": "hidden",
    }.items():  # fmt: skip
        assert words in reasons[name], name
    stored = sql.execute("SELECT string_agg(content, '') FROM revision_text").fetchone()
    assert stored is not None
    assert "SECRET" not in stored[0]
    assert "before \u2400 after" in stored[0]
    assert "\u202e } \u2066if (admin)\u2069" in stored[0], "text is evidence: kept as it is"
    assert counts(await importer(folder)) == {
        "unchanged": len(created) + 1, "skipped": len(report.skipped), "failed": len(report.failed),
    }  # fmt: skip


async def test_a_parser_that_runs_away_is_stopped(
    importer: Importer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "LIMITS", Limits(parser_seconds=0.01))
    (folder / "slow.pdf").write_bytes(b"%PDF-1.4\n")

    report = await importer(folder)

    assert names(report, "created") == ["good.md"]
    [failed] = report.failed
    assert "takes longer" in (failed.reason or "")


async def test_as_many_slow_files_are_read_at_once_as_jobs_are_given(
    importer: Importer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        (folder / f"{number}.pdf").write_text("Not really.")
    together = threading.Barrier(3)
    really = Reader.read

    def read(reader: Reader, found: FoundFile, **how: bool) -> ParsedFile:
        if found.relative.endswith(".pdf"):
            together.wait(PATIENCE)  # for two others
        return really(reader, found, **how)

    monkeypatch.setattr(Reader, "read", read)
    assert counts(await importer(folder, jobs=3)) == {"created": 1, "skipped": 6}


async def test_a_file_that_changes_while_it_is_read_is_read_again_and_then_reported(
    importer: Importer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restless = folder / "restless.md"
    restless.write_text("version 0")
    really = safe_files.read_all
    writes = iter(range(1, 100))

    def while_reading(descriptor: int, limit: int) -> bytes:
        data = really(descriptor, limit)
        if os.fstat(descriptor).st_ino == restless.stat().st_ino:
            with restless.open("a") as file:
                file.write(f" and {next(writes)}")
        return data

    monkeypatch.setattr(safe_files, "read_all", while_reading)
    report = await importer(folder)

    assert names(report, "created") == ["good.md"]
    assert "changes while it is read" in (report.failed[0].reason or "")
    monkeypatch.setattr(safe_files, "read_all", really)
    assert counts(await importer(folder)) == {"created": 1, "unchanged": 1}


async def test_a_mailbox_that_changes_while_it_is_read_is_reported_and_prunes_nothing(
    importer: Importer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = folder / "in.mbox"
    mails = [
        b"From a Mon Mar  9 09:26:00 2026\nFrom: a@x\nMessage-ID: <%d@x>\n\n%s\n\n"
        % (number, b"words " * 2_000)
        for number in range(20)
    ]
    box.write_bytes(b"".join(mails))
    assert counts(await importer(folder)) == {"created": 21}
    really = Reader.message_of

    def while_reading(
        reader: Reader, found: FoundFile, number: int, data: bytes | None
    ) -> ParsedFile:
        if number == 1:
            os.truncate(box, box.stat().st_size // 2)
        return really(reader, found, number, data)

    monkeypatch.setattr(Reader, "message_of", while_reading)
    report, gone = await importer.with_gone(folder)

    assert names(report, "failed") == ["in.mbox"]
    assert "changes while it is read" in (report.failed[0].reason or "")
    assert gone == []
    monkeypatch.undo()
    report, gone = await importer.with_gone(folder)
    assert not report.failed
    assert len(gone) == 20 - (len(report.unchanged) + len(report.revised) - 1) > 0


async def test_a_folder_exchanged_for_a_link_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("SECRET")
    (tmp_path / "root" / "inner").symlink_to(tmp_path / "outside")
    for relative in ("inner/x.md", "../outside/x.md", "/etc/passwd"):
        with pytest.raises(safe_files.Unusable):
            safe_files.read(str(tmp_path / "root"), relative, lambda _: 1000)


async def test_the_same_message_twice_is_one_artifact(importer: Importer, folder: Path) -> None:
    message = b"From: a@example.com\nMessage-ID: <one@example.com>\nSubject: x\n\n%s\n"
    (folder / "1.eml").write_bytes(message % b"Hello.")
    (folder / "2.eml").write_bytes(message % b"Hello, with a footer.")

    report = await importer(folder)

    assert counts(report) == {"created": 2, "skipped": 1}
    assert "1.eml" in (report.skipped[0].reason or "")
    assert counts(await importer(folder)) == {"unchanged": 2, "skipped": 1}


async def test_mailboxes_and_maildirs_are_imported_message_by_message(
    importer: Importer, folder: Path
) -> None:
    mails = [
        b"From: a@example.com\nMessage-ID: <%d@example.com>\nSubject: s\n\nBody %d.\n" % (n, n)
        for n in range(150)
    ]
    mailbox = b"".join(b"From a Mon Mar  9 09:26:00 2026\n" + mail + b"\n" for mail in mails[:100])
    (folder / "archive.mbox").write_bytes(mailbox)
    for name in ("cur", "new", "tmp", ".Sent/cur", ".Sent/new"):
        (folder / "Maildir" / name).mkdir(parents=True)
    for number, mail in enumerate(mails[100:140]):
        (folder / "Maildir" / "cur" / f"{number}.host:2,S").write_bytes(mail)
    (folder / "Maildir" / ".Sent" / "cur" / "1.host:2,").write_bytes(mails[141])
    (folder / "Maildir" / "tmp" / "half").write_bytes(mails[142])
    nameless = b"From: a@example.com\nSubject: no id\n\nWords.\n"
    (folder / "Maildir" / "new" / "77.host").write_bytes(nameless)

    first = await importer(folder)
    (folder / "Maildir" / "new" / "77.host").rename(folder / "Maildir/new/77.host:2,S")
    with (folder / "archive.mbox").open("ab") as file:
        file.write(b"From a Mon Mar  9 09:26:00 2026\n" + mails[145] + b"\n")
    second = await importer(folder)

    assert counts(first) == {"created": 100 + 40 + 1 + 1 + 1}
    assert counts(second) == {"created": 1, "unchanged": 143}, "flags in a name are no change"


async def test_without_a_store_it_stops_and_is_continued_later(
    importer: Importer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def missing(_: Database) -> AsyncIterator[Session]:
        raise PostgresUnavailable("Postgres does not answer.")
        yield

    with monkeypatch.context() as without:
        without.setattr(Database, "transaction", missing)
        stopped = await importer(folder)

    assert stopped.stopped == "Postgres does not answer."
    assert counts(stopped) == {}
    assert counts(await importer(folder)) == {"created": 1}


async def test_two_imports_of_one_folder_at_once_store_each_file_once(
    importer: Importer, folder: Path, sql: psycopg.Connection
) -> None:
    for number in range(60):
        (folder / f"{number}.md").write_text(f"Note {number}.\n")
    one, other = await asyncio.gather(importer(folder), importer(folder))

    assert not one.failed
    assert not other.failed
    assert len(one.created) + len(other.created) == 61
    assert sql.execute("SELECT count(*) FROM artifact_revision").fetchone() == (61,)
    assert sql.execute("SELECT count(*) FROM event_jobs").fetchone() == (61,)


async def test_what_was_known_and_vanished_meanwhile_is_said_to_have_changed(
    runtime: Runtime,
) -> None:
    report = ImportReport()
    storing = Storing(runtime, report)
    file = FoundFile(Root("x", Path("/x")), "a.md", 1)
    await storing.keep(file, KnownItem("uid_1", "hash", "x/a.md"), None, {})
    assert "changes while it is read" in (report.failed[0].reason or "")
