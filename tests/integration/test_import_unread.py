"""Importing again: a file that looks as it did is not even read, and none is taken for unchanged
that is not."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory_core.artifacts.deletion import delete_artifact
from memory_core.artifacts.document import ArtifactType
from memory_core.importing import import_run, safe_files
from memory_core.importing.batch_store import Storing
from memory_core.importing.file_cache import FileCache, KnownItem, digests, key_of
from memory_core.importing.formats import mbox
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
    really = safe_files.read

    def watched(root: str, relative: str, limit: Callable[[bytes], int]) -> safe_files.FileContent:
        names.append(relative)
        return really(root, relative, limit)

    monkeypatch.setattr(safe_files, "read", watched)
    return names


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour after everything was written."""
    now = safe_files.time.time_ns
    monkeypatch.setattr(safe_files.time, "time_ns", lambda: now() + _AN_HOUR)


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

    now = safe_files.time.time_ns
    monkeypatch.setattr(safe_files.time, "time_ns", lambda: now() + _AN_HOUR)
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


# --- what is remembered ----------------------------------------------------------------------


def memo_file(importer: Importer) -> Path:
    [file] = (importer.data_dir / "imports").glob("*.json")
    return file


@pytest.mark.usefixtures("later")
async def test_another_type_for_one_file_does_not_forget_the_others(
    importer: Importer, notes: Path
) -> None:
    """A renamed folder is known by the bytes of its files."""
    await importer(notes)
    await importer(notes / "a.md", artifact_type=ArtifactType.DOC)

    assert counts(await importer(notes.rename(notes.with_name("renamed")))) == {"unchanged": 2}


@pytest.mark.usefixtures("later")
async def test_two_imports_at_once_remember_both(importer: Importer, notes: Path) -> None:
    here = [FileCache(importer.data_dir, "notes", "") for _ in range(2)]
    for number, cache in enumerate(here):
        cache.note(f"{number}.md", "digest", [KnownItem("uid_1", "hash")])
    for cache in here:
        cache.save()

    assert digests(importer.data_dir, "notes") == {
        key_of("0.md"): "digest",
        key_of("1.md"): "digest",
    }


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda entry: entry[:2], id="of an older version"),
        pytest.param(lambda entry: [entry[0], [["uid_1"]], entry[2]], id="too short"),
        pytest.param(lambda entry: [entry[0], [[*entry[1][0], "x"]], entry[2]], id="too long"),
        pytest.param(lambda entry: [entry[0], [], entry[2]], id="of nothing"),
        pytest.param(lambda entry: [entry[0], None, entry[2]], id="without an author"),
        pytest.param(lambda entry: [entry[0], [["uid_\0", "a"]], entry[2]], id="with a NUL"),
        pytest.param(lambda entry: [entry[0], [["\ud800", "a"]], entry[2]], id="no Unicode"),
        pytest.param(lambda entry: [1, {"a": 1}, 3], id="of other types"),
        pytest.param(lambda entry: "xyz", id="no list"),
    ],
)
async def test_damaged_memories_cost_time_alone(
    importer: Importer, notes: Path, damage: Callable[[Any], Any]
) -> None:
    await importer(notes)
    file = memo_file(importer)
    content = json.loads(file.read_text())
    content["files"] = {path: damage(entry) for path, entry in content["files"].items()}
    file.write_text(json.dumps(content))

    for _ in range(2):
        report, gone = await importer.with_gone(notes)
        assert counts(report) == {"unchanged": 2}
        assert gone == []


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", "[" * 100_000, r'{"label": "", "files": {"\ud800": ["", []]}}']
)
async def test_what_is_no_memory_costs_time_alone(
    importer: Importer, notes: Path, text: str
) -> None:
    await importer(notes)
    memo_file(importer).write_text(text)

    assert counts(await importer(notes)) == {"unchanged": 2}


def mail(number: int) -> str:
    message = f"From: a@example.com\nMessage-ID: <{number}@example.com>\n\nBody {number}.\n"
    return f"From a@example.com Mon Jan  1 00:00:00 2024\n{message}\n"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The mailboxes that are read."""
    names: list[str] = []
    really = mbox.messages

    def watched(file: Any) -> Any:
        names.append("in.mbox")
        return really(file)

    monkeypatch.setattr(mbox, "messages", watched)
    return names


@pytest.mark.usefixtures("later")
async def test_a_mailbox_that_looks_as_it_did_is_not_read(
    importer: Importer, notes: Path, runtime: Runtime, parsed: list[str]
) -> None:
    box = notes / "in.mbox"
    box.write_text(mail(1) + mail(2) + mail(3))
    first = await importer(notes)
    assert counts(first) == {"created": 5}

    again, gone = await importer.with_gone(notes)
    assert counts(again) == {"unchanged": 5}
    assert gone == []
    assert parsed == ["in.mbox"]

    assert counts(await importer(notes, reread=True)) == {"unchanged": 5}
    assert parsed == 2 * ["in.mbox"]

    box.write_text(mail(1) + mail(3) + mail(4))
    changed, gone = await importer.with_gone(notes)
    assert counts(changed) == {"created": 1, "unchanged": 4}
    assert len(gone) == 1

    [uid] = [entry.artifact_uid for entry in changed.created]
    assert uid is not None
    await delete_artifact(runtime, artifact_uid=uid)
    assert counts(await importer(notes)) == {"created": 1, "unchanged": 4}
    assert counts(await importer(notes)) == {"unchanged": 5}
    assert parsed == 4 * ["in.mbox"]


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("why", ["just written", "a bad message", "more than are remembered"])
async def test_a_mailbox_is_read_again(
    importer: Importer,
    notes: Path,
    parsed: list[str],
    monkeypatch: pytest.MonkeyPatch,
    why: str,
) -> None:
    content = mail(1) + mail(2)
    if why == "just written":
        monkeypatch.setattr(safe_files, "SETTLED_NS", 2 * _AN_HOUR)
    elif why == "a bad message":
        monkeypatch.setattr(mbox, "LIMITS", replace(mbox.LIMITS, message_bytes=100))
        content += mail(3) + "too long " * 10
    else:
        monkeypatch.setattr(import_run, "REMEMBERED_MESSAGES", 1)
    (notes / "in.mbox").write_text(content)
    await importer(notes)

    assert counts(await importer(notes))["unchanged"] == 4
    assert parsed == 2 * ["in.mbox"]


@pytest.mark.usefixtures("later")
async def test_what_has_become_a_mailbox_is_read_as_one(
    importer: Importer, notes: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at it and the reading; and its document is not in the memory."""
    (notes / "inbox").write_text("Just a note.\n")
    report = await importer(notes)
    [uid] = [entry.artifact_uid for entry in report.created if entry.path.endswith("inbox")]
    assert uid is not None
    await delete_artifact(runtime, artifact_uid=uid)
    really = Storing.latest

    async def meanwhile(self: Storing, uids: list[str]) -> Any:
        mail = "From a@example.com Mon Jan  1 00:00:00 2024\nFrom: a@example.com\n\nHello.\n"
        (notes / "inbox").write_text(mail)
        return await really(self, uids)

    monkeypatch.setattr(Storing, "latest", meanwhile)

    report = await importer(notes)

    assert names(report, "created") == ["inbox"]
    assert counts(report) == {"created": 1, "unchanged": 2}


@pytest.mark.usefixtures("later")
async def test_no_path_is_remembered_and_those_of_an_earlier_version_go(
    importer: Importer, notes: Path
) -> None:
    await importer(notes)
    file = memo_file(importer)
    earlier = file.with_name(file.name.replace(".hashes.json", ".json"))
    earlier.write_text('{"label": "", "files": {"a.md": ["digest", [["uid", "notes/a.md", "h"]]]}}')

    assert counts(await importer(notes)) == {"unchanged": 2}

    assert memo_file(importer) == file
    assert "a.md" not in file.read_text()
