"""What is gone from the disk is offered for deletion; a watched folder is kept in step."""

import asyncio
import shutil
from pathlib import Path

import psycopg
import pytest

from memory_core.importing import prune, watch
from memory_core.importing.given_paths import admit
from memory_core.importing.import_run import survey
from memory_core.importing.roots import ImportPlace, Registry, Root
from memory_core.runtime import Runtime
from tests.importing import Importer, counts
from tests.patience import PATIENCE


@pytest.fixture
def importer(runtime: Runtime, tmp_path: Path) -> Importer:
    return Importer(runtime, tmp_path / "data")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.md", "b.md", "sub/c.md", "sub/d.md"):
        (folder / name).write_text(f"Note {name}.")
    return folder


async def test_only_what_is_really_gone_is_pruned(
    importer: Importer, runtime: Runtime, notes: Path, sql: psycopg.Connection
) -> None:
    await importer(notes)
    (notes / "a.md").unlink()
    (notes / "b.md").write_bytes(b"\x00\x01\x02\x03" * 100)  # there, but not understood
    (notes / "sub" / "c.md").rename(notes / "sub" / "e.md")
    (notes / "sub" / "d.md").unlink()
    (notes / "sub" / "d.md").symlink_to(notes / "b.md")  # there, but passed over

    report, gone = await importer.with_gone(notes)
    assert counts(report) == {"created": 1, "skipped": 2}
    assert [entry.path for entry in gone] == ["notes/a.md", "notes/sub/c.md"]
    _, below = await importer.with_gone(notes / "sub")
    assert [entry.path for entry in below] == ["notes/sub/c.md"], "only what was asked for"

    deleted = await prune.delete(runtime, [*gone, gone[0]])
    assert len(deleted) == 2, "a second time is no error"
    left = sql.execute("SELECT source_id FROM artifact_revision ORDER BY 1").fetchall()
    assert left == [("notes/b.md",), ("notes/sub/d.md",), ("notes/sub/e.md",)]


async def test_messages_that_left_their_mailbox_are_pruned_and_an_empty_disk_prunes_nothing(
    importer: Importer, notes: Path
) -> None:
    mail = b"From a Mon Mar  9 09:26:00 2026\nFrom: a@example.com\nMessage-ID: <%d@x>\n\nHi %d.\n\n"
    box = notes / "in.mbox"
    box.write_bytes(mail % (1, 1) + mail % (2, 2))
    await importer(notes)
    box.write_bytes(mail % (2, 2))
    _, gone = await importer.with_gone(notes)
    assert [(entry.source_id, entry.reason) for entry in gone] == [("1@x", "no longer in its file")]

    for file in [*notes.rglob("*.md"), box]:
        file.unlink()
    _, gone = await importer.with_gone(notes)
    assert gone == []


def mail(number: int, words: str = "Hello.") -> bytes:
    head = f"From: a@example.com\nSubject: s\nMessage-ID: <{number}@x>\n\n"
    return f"{head}{words}\n".encode()


async def test_a_message_is_gone_when_it_is_at_none_of_its_addresses(
    importer: Importer, runtime: Runtime, tmp_path: Path, sql: psycopg.Connection
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "m.eml").write_bytes(mail(1))
        (folder / "stays.md").write_text(f"In {folder.name}.")
    assert counts(await importer(one)) == {"created": 2}
    assert counts(await importer(other)) == {"created": 1, "skipped": 1}

    (one / "m.eml").unlink()
    assert (await importer.with_gone(one))[1] == []
    other.rename(tmp_path / "unplugged")
    assert (await importer.with_gone(one))[1] == [], "the importer cannot tell"
    (tmp_path / "unplugged").rename(other)
    (other / "m.eml").unlink()
    _, gone = await importer.with_gone(one)
    assert [entry.source_id for entry in gone] == ["1@x"]
    assert (await importer.with_gone(other))[1] == gone, "wherever one looks"
    await prune.delete(runtime, gone)
    assert sql.execute("SELECT count(*) FROM import_address").fetchone() == (0,)


async def test_a_message_that_moved_is_not_gone_from_where_it_was(
    importer: Importer, tmp_path: Path
) -> None:
    inbox, archive = tmp_path / "mail" / "inbox", tmp_path / "mail" / "archive"
    for folder in (inbox, archive):
        folder.mkdir(parents=True)
    for number in (1, 2):
        (inbox / f"{number}.eml").write_bytes(mail(number))
    await importer(inbox.parent)
    (inbox / "1.eml").rename(archive / "1.eml")

    assert counts(await importer(inbox.parent)) == {"unchanged": 2}
    assert (await importer.with_gone(inbox))[1] == []


async def test_the_first_copy_of_a_message_counts_as_long_as_it_is_there(
    importer: Importer, runtime: Runtime, tmp_path: Path
) -> None:
    direct, listed = tmp_path / "direct", tmp_path / "listed"
    for folder, words in ((direct, "Hello."), (listed, "Hello.\n--\nThe list's footer")):
        folder.mkdir()
        (folder / "m.eml").write_bytes(mail(1, words))

    done = [await importer(folder) for folder in (direct, listed, direct, listed)]

    assert [counts(report) for report in done] == [
        {"created": 1}, {"skipped": 1}, {"unchanged": 1}, {"skipped": 1},
    ]  # fmt: skip
    assert "direct/m.eml" in (done[1].skipped[0].reason or "")
    (direct / "m.eml").write_bytes(mail(1, "Hello again."))
    assert counts(await importer(listed, direct)) == {"skipped": 1, "revised": 1}
    (direct / "m.eml").unlink()
    (direct / "other.md").write_text("The disk is there.")
    assert counts(await importer(listed)) == {"revised": 1}


@pytest.fixture
async def nested(importer: Importer, notes: Path) -> Path:
    """A folder with another inside that has a name of its own."""
    await importer(notes / "sub")
    await importer(notes)
    return notes


async def test_a_change_in_a_folder_within_the_watched_one_prunes_nothing_outside_it(
    importer: Importer, runtime: Runtime, nested: Path
) -> None:
    registry = Registry(importer.data_dir)
    places = await admit(runtime, registry, [nested])
    changed = nested / "sub" / "c.md"
    changed.write_text("Changed.")

    report, gone = await importer.sync(watch.narrowed_to(places, {str(changed)}), registry)

    assert (counts(report), gone, importer.warnings) == ({"revised": 1}, [], [])
    changed.unlink()
    _, gone = await importer.sync(watch.narrowed_to(places, {str(nested / "sub")}), registry)
    assert [entry.path for entry in gone] == ["sub/c.md"]


async def test_a_part_given_by_the_name_of_the_folder_above_prunes_only_itself(
    importer: Importer, nested: Path
) -> None:
    (nested / "sub" / "deep").mkdir()
    for name in ("e.md", "f.md"):
        (nested / "sub" / "deep" / name).write_text(f"Deep {name}.")
    await importer(nested)
    (nested / "sub" / "deep" / "e.md").unlink()
    (nested / "sub" / "c.md").unlink()

    _, gone = await importer.with_gone(nested / "sub" / "deep", source="notes")

    assert [entry.path for entry in gone] == ["sub/deep/e.md"]
    assert importer.warnings == []
    _, gone = await importer.with_gone(nested)
    assert [entry.path for entry in gone] == ["sub/c.md", "sub/deep/e.md"], "walked from its top"


async def test_what_lies_at_its_address_is_never_offered(
    importer: Importer, notes: Path, tmp_path: Path
) -> None:
    """Named by the outer folder once, by the inner one now."""
    (notes / "sub" / "cafe\u0301.md").write_text("Its accent is written in two characters.")
    await importer(notes)
    await importer(notes / "sub", source="inner")

    report, gone = await importer.with_gone(notes)

    assert (counts(report), gone) == ({"unchanged": 5}, [])


# --- watching --------------------------------------------------------------------------------


async def test_the_last_files_of_a_folder_are_missed_while_watching(
    importer: Importer, runtime: Runtime, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "DEBOUNCE_MS", 50)
    for folder in ("box/cur", "box/new", "box/.Sent/cur", "box/.Sent/new", "box/.Old/cur"):
        (notes / folder).mkdir(parents=True)
    for number, name in enumerate(("cur/1:2,S", ".Sent/cur/2:2,S", ".Old/cur/3:2,S")):
        (notes / "box" / name).write_bytes(mail(number))
    registry = Registry(importer.data_dir)
    places = await admit(runtime, registry, [notes])
    stop, looked = asyncio.Event(), asyncio.Queue[set[str]]()

    async def sync(wanted: list[ImportPlace] | None) -> bool:
        _, gone = await importer.sync(wanted or places, registry)
        await looked.put({entry.path for entry in gone})
        return True

    async def missed(*wanted: str) -> None:
        missing = set(wanted)
        async with asyncio.timeout(PATIENCE):
            while missing:
                missing -= await looked.get()

    watching = asyncio.create_task(watch.watch(places, sync, stop, deletions=True))
    await looked.get()
    for name in ("c.md", "d.md"):
        (notes / "sub" / name).unlink()
    await missed("notes/sub/c.md", "notes/sub/d.md")
    (notes / "box" / ".Sent" / "cur" / "2:2,S").unlink()
    await missed("notes/box/.Sent/cur/2:2,S")
    shutil.rmtree(notes / "box")
    await missed("notes/box/cur/1:2,S", "notes/box/.Old/cur/3:2,S")
    stop.set()
    async with asyncio.timeout(PATIENCE):
        await watching


async def test_a_message_below_a_maildir_is_what_it_is_in_the_whole(
    importer: Importer, notes: Path
) -> None:
    """Without a Message-ID its name is its id, less the flags that change."""
    for folder in ("cur", "new"):
        (notes / "box" / folder).mkdir(parents=True)
    message = notes / "box" / "cur" / "1.host:2,S"
    message.write_bytes(b"From: a@example.com\nSubject: no id\n\nWords.\n")
    await importer(notes)
    for path in (message, message.parent):
        assert counts(await importer(path)) == {"unchanged": 1}


async def test_looking_for_files_ends_when_asked_to(importer: Importer, notes: Path) -> None:
    asked = iter([False, False, True])
    place = ImportPlace(Root("notes", notes), ".", is_file=False)
    registry = Registry(importer.data_dir)
    assert len(survey([place], registry, importer.data_dir, lambda: next(asked)).files) == 2


async def test_a_watched_folder_is_kept_in_step(
    importer: Importer, runtime: Runtime, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "DEBOUNCE_MS", 50)
    monkeypatch.setattr(watch, "RETRY_FIRST", 0.01)
    registry = Registry(importer.data_dir)
    places = await admit(runtime, registry, [notes])
    stop, synced = asyncio.Event(), asyncio.Queue[dict[str, int]]()
    fail_once = iter([True])

    async def sync(wanted: list[ImportPlace] | None) -> bool:
        if next(fail_once, False):
            return False  # a store was missing: everything is looked at again
        paths = [place.root.path / place.relative for place in wanted or places]
        await synced.put(counts(await importer(*paths)))
        return True

    async def next_change(wanted: str) -> int:
        async with asyncio.timeout(PATIENCE):
            # A write may be seen in two parts, the second of which changes nothing more.
            while wanted not in (paths := await synced.get()):
                assert set(paths) <= {"unchanged"}
            return paths[wanted]

    watching = asyncio.create_task(watch.watch(places, sync, stop))
    assert await next_change("created") == 4
    (notes / "a.md").write_text("Changed.")
    assert await next_change("revised") == 1
    (notes / ".hidden").mkdir()
    (notes / ".hidden" / "x.md").write_text("Not ours.")
    (notes / "fresh").mkdir()
    (notes / "fresh" / "new.md").write_text("New.")
    assert await next_change("created") == 1
    stop.set()
    async with asyncio.timeout(PATIENCE):
        await watching
