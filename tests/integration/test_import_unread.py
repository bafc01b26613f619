"""Importing again: a file that looks as it did is not even read, and none is taken for unchanged
that is not."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_core.artifacts.deletion import delete_artifact
from memory_core.importing import files
from memory_core.runtime import Runtime
from tests.importing import Importer, counts, names

_AN_HOUR = 3_600_000_000_000


@pytest.fixture
def importer(runtime: Runtime, tmp_path: Path) -> Importer:
    return Importer(runtime, tmp_path / "data")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text(f"Decision: we launch {name} in May.\n")
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read, in order."""
    names: list[str] = []
    really = files.read

    def watched(root: str, relative: str, limit: Callable[[bytes], int]) -> files.Content:
        names.append(relative)
        return really(root, relative, limit)

    monkeypatch.setattr(files, "read", watched)
    return names


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour after everything was written."""
    now = files.time.time_ns
    monkeypatch.setattr(files.time, "time_ns", lambda: now() + _AN_HOUR)


@pytest.mark.usefixtures("later")
async def test_what_looks_as_it_did_is_not_read(
    importer: Importer, notes: Path, read: list[str]
) -> None:
    await importer(notes)
    read.clear()

    assert counts(await importer(notes)) == {"unchanged": 2}
    assert read == []


@pytest.mark.usefixtures("later")
async def test_it_is_read_when_asked_for(importer: Importer, notes: Path, read: list[str]) -> None:
    await importer(notes)
    read.clear()

    assert counts(await importer(notes, reread=True)) == {"unchanged": 2}
    assert read == ["a.md", "b.md"]


@pytest.mark.usefixtures("later")
async def test_an_edit_that_keeps_size_and_time_is_noticed(
    importer: Importer, notes: Path, read: list[str]
) -> None:
    """The time of change cannot be set by a program."""
    await importer(notes)
    before = (notes / "a.md").stat()
    (notes / "a.md").write_text("Decision: we launch a.md in Mai.\n")
    os.utime(notes / "a.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    after = (notes / "a.md").stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    read.clear()

    report = await importer(notes)

    assert names(report, "revised") == ["a.md"]
    assert read == ["a.md"]


@pytest.mark.usefixtures("later")
async def test_a_file_exchanged_for_another_is_noticed(importer: Importer, notes: Path) -> None:
    await importer(notes)
    (notes / "a.md").replace(notes / "b.md")

    assert names(await importer(notes), "revised") == ["b.md"]


async def test_what_was_just_written_is_read_once_more(
    importer: Importer, notes: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been written again within the same tick of the file system's clock."""
    await importer(notes)
    read.clear()
    assert counts(await importer(notes)) == {"unchanged": 2}
    assert read == ["a.md", "b.md"]

    now = files.time.time_ns
    monkeypatch.setattr(files.time, "time_ns", lambda: now() + _AN_HOUR)
    await importer(notes)
    read.clear()
    assert counts(await importer(notes)) == {"unchanged": 2}
    assert read == []


@pytest.mark.usefixtures("later")
async def test_what_was_deleted_from_the_memory_is_read_and_stored_again(
    importer: Importer, notes: Path, runtime: Runtime, read: list[str]
) -> None:
    report = await importer(notes)
    [uid] = [entry.artifact_uid for entry in report.created if entry.path.endswith("a.md")]
    assert uid is not None
    await delete_artifact(runtime, artifact_uid=uid)
    read.clear()

    report = await importer(notes)

    assert names(report, "created") == ["a.md"]
    assert read == ["a.md"]
