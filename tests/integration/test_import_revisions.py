"""Importing: ids stay, edits become revisions, and what is unchanged costs nothing."""

import json
import shutil
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from memory_core.artifacts.document import ArtifactType
from memory_core.importing import formats, safe_files, watch
from memory_core.importing.import_run import survey
from memory_core.importing.roots import ImportPlace, Registry, Root
from memory_core.kernel.errors import Conflict, InvalidInput
from memory_core.runtime import Runtime
from tests.importing import Importer, contents, counts, names


@pytest.fixture
def importer(runtime: Runtime, tmp_path: Path) -> Importer:
    return Importer(runtime, tmp_path / "data")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "kickoff.md").write_text("# Kick-off\n\nDecision: we launch in May.\n")
    (folder / "sub" / "risks.txt").write_text("The vendor may be late.\n")
    return folder


# --- identity --------------------------------------------------------------------------------


async def test_files_become_artifacts_with_the_name_of_their_folder(
    importer: Importer, notes: Path, sql: psycopg.Connection
) -> None:
    report = await importer(notes)

    assert counts(report) == {"created": 2}
    rows = sql.execute(
        "SELECT source_system, source_id, source_url, title, artifact_type FROM artifact_revision "
        "ORDER BY source_id"
    ).fetchall()
    assert rows == [
        ("files", "notes/kickoff.md", "import:notes/kickoff.md", "Kick-off", "note"),
        ("files", "notes/sub/risks.txt", "import:notes/sub/risks.txt", "risks", "note"),
    ]


async def test_a_moved_folder_does_not_duplicate(
    importer: Importer, notes: Path, tmp_path: Path
) -> None:
    await importer(notes)
    moved = tmp_path / "elsewhere" / "notes"
    moved.parent.mkdir()
    shutil.move(notes, moved)

    assert counts(await importer(moved, dry_run=True)) == {"unchanged": 2}
    assert counts(await importer(moved)) == {"unchanged": 2}
    assert "notes" in importer.told[-1]


async def test_a_renamed_folder_is_known_by_what_it_holds(
    importer: Importer, notes: Path, tmp_path: Path
) -> None:
    """Also when some of it was edited meanwhile. Folders within it that have names keep them."""
    await importer(notes)
    await importer(notes.parent)
    (notes.parent / "own.md").write_text("Of the outer folder.")
    (notes.parent / "more.md").write_text("Of the outer folder, too.")
    await importer(notes.parent)
    renamed = notes.parent.rename(tmp_path / "house")
    (renamed / "more.md").write_text("Edited.")

    report = await importer(renamed)

    assert counts(report) == {"unchanged": 3, "revised": 1}
    assert report.revised[0].source_id == "home/more.md"
    assert "it is 'home'" in importer.told[-1]


async def test_another_folder_does_not_take_over_the_name_of_a_vanished_one(
    importer: Importer, notes: Path, tmp_path: Path, sql: psycopg.Connection
) -> None:
    await importer(notes)
    notes.parent.rename(tmp_path / "unplugged")
    other = tmp_path / "work" / "notes"
    other.mkdir(parents=True)
    (other / "kickoff.md").write_text("Another kick-off altogether.\n")

    with pytest.raises(Conflict, match="--source notes"):
        await importer(other)
    assert sql.execute("SELECT count(*) FROM artifact_revision").fetchone() == (2,)
    assert counts(await importer(other, source="work notes")) == {"created": 1}
    (tmp_path / "unplugged").rename(notes.parent)
    assert counts(await importer(notes)) == {"unchanged": 2}


async def test_a_file_that_many_folders_have_does_not_make_them_one(
    importer: Importer, tmp_path: Path
) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    for folder in (small, large):
        folder.mkdir()
        (folder / "LICENSE").write_text("Do as you like.\n")
    await importer(small)
    small.rename(tmp_path / ".gone")
    for number in range(10):
        (large / f"{number}.md").write_text(f"Note {number}.")

    assert counts(await importer(large)) == {"created": 11}


async def test_a_folder_that_cannot_be_told_from_a_vanished_one_is_hinted_at(
    importer: Importer, notes: Path, tmp_path: Path
) -> None:
    """Nothing is remembered of the bytes of a chat: its path alone proves nothing."""
    for file in (notes / "kickoff.md", notes / "sub" / "risks.txt"):
        file.unlink()
    (notes / "other.json").write_text('{"a": "json"}')
    await importer(notes)
    renamed = notes.rename(notes.parent / "papers")

    await importer(renamed)

    assert "--source notes" in importer.told[-1]


async def test_a_folder_and_the_parts_of_it_agree(importer: Importer, notes: Path) -> None:
    """Also when one above it is imported later: a folder keeps its name."""
    await importer(notes)

    assert counts(await importer(notes / "sub")) == {"unchanged": 1}
    assert counts(await importer(notes / "sub" / "risks.txt")) == {"unchanged": 1}
    assert counts(await importer(notes.parent)) == {"unchanged": 2}
    outer = ImportPlace(Root("home", notes.parent), "notes/sub/risks.txt", is_file=True)
    [found] = survey([outer], Registry(importer.data_dir), importer.data_dir).files
    assert (found.root.name, found.relative) == ("notes", "sub/risks.txt")
    assert counts(await importer(notes, notes / "sub", notes / "kickoff.md")) == {"unchanged": 2}


async def test_two_folders_of_one_name_are_refused_until_one_has_another(
    importer: Importer, notes: Path, tmp_path: Path, sql: psycopg.Connection
) -> None:
    await importer(notes)
    other = tmp_path / "work" / "notes"
    other.mkdir(parents=True)
    (other / "kickoff.md").write_text("Another kick-off altogether.\n")

    with pytest.raises(Conflict, match="--source"):
        await importer(other)
    with pytest.raises(Conflict, match="--source"):
        await importer(other, source="notes")
    assert sql.execute("SELECT count(*) FROM artifact_revision").fetchone() == (2,)

    assert counts(await importer(other, source="work notes")) == {"created": 1}
    assert counts(await importer(other)) == {"unchanged": 1}, "the name is remembered"


async def test_a_lost_data_dir_does_not_guess(
    importer: Importer, runtime: Runtime, notes: Path, tmp_path: Path
) -> None:
    await importer(notes)
    fresh = Importer(runtime, tmp_path / "fresh")

    with pytest.raises(Conflict, match="--source notes"):
        await fresh(notes)
    assert counts(await fresh(notes, source="notes")) == {"unchanged": 2}


@pytest.mark.parametrize("name", ["", "a/b", "x" * 101, "a\nb"])
async def test_a_name_that_cannot_be_part_of_an_id_is_refused(
    importer: Importer, notes: Path, name: str
) -> None:
    with pytest.raises(InvalidInput):
        await importer(notes, source=name or " ")


async def test_what_does_not_exist_is_refused(importer: Importer, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be found"):
        await importer(tmp_path / "missing")


async def test_our_own_data_is_never_imported(importer: Importer, tmp_path: Path) -> None:
    own = importer.data_dir
    (own / "imports").mkdir()
    (own / "imports" / "x.json").write_text('{"ours": true}')
    (tmp_path / "mine.md").write_text("Mine.")

    for path in (own, own / "imports", own / "imports" / "x.json"):
        report = await importer(path, source=path.name, dry_run=True)
        assert counts(report) == {"skipped": 1}
        assert report.skipped[0].reason == "our own data"
    assert counts(await importer(tmp_path)) == {"created": 1, "skipped": 1}
    place = ImportPlace(Root("all", tmp_path), ".", is_file=False)
    changed = {str(own / "imports" / "x.json"), str(own / "imports.json"), str(own)}
    assert watch.narrowed_to([place], changed, without=own) == [], "no import starts the next one"


# --- revisions -------------------------------------------------------------------------------


async def test_an_edit_makes_a_revision_and_a_revert_restores(
    importer: Importer, runtime: Runtime, notes: Path
) -> None:
    file = notes / "kickoff.md"
    before = file.read_text()
    [first, _] = (await importer(notes)).created

    file.write_text("# Kick-off\n\nDecision: we launch in June.\n")
    revised = await importer(notes)
    file.write_text(before)
    restored = await importer(notes)

    assert counts(revised) == counts(restored) == {"revised": 1, "unchanged": 1}
    assert restored.revised[0].reason == "as it was before"
    assert first.artifact_uid is not None
    texts = await contents(runtime, first.artifact_uid)
    assert texts == [before, "# Kick-off\n\nDecision: we launch in June.\n"]


async def test_of_two_exports_of_a_chat_the_newer_tells_of_a_day(
    importer: Importer, tmp_path: Path, sql: psycopg.Connection
) -> None:
    def export(day: str, *words: str) -> None:
        folder = tmp_path / "telegram" / f"ChatExport_{day}"
        folder.mkdir(parents=True)
        said = [
            {"id": n, "type": "message", "date": f"2026-03-01T10:0{n}:00", "from": "Ann", "text": w}
            for n, w in enumerate(words)
        ]
        chat = {"name": "Ann", "type": "personal_chat", "id": 7, "messages": said}
        (folder / "result.json").write_text(json.dumps(chat))

    def told() -> list[int]:
        rows = sql.execute(
            "SELECT content FROM revision_text JOIN artifact_revision "
            "USING (artifact_uid, revision_id) WHERE is_latest"
        )
        return [content.count("said") for (content,) in rows]

    export("2026-03-01", "said one")
    assert counts(await importer(tmp_path / "telegram")) == {"created": 1}
    export("2026-04-01", "said one", "said two", "said three")
    assert counts(await importer(tmp_path / "telegram")) == {"revised": 1, "skipped": 1}
    assert told() == [3]
    assert counts(await importer(tmp_path / "telegram")) == {"unchanged": 1, "skipped": 1}


async def test_an_unchanged_file_keeps_its_type_and_that_is_said(
    importer: Importer, notes: Path, sql: psycopg.Connection
) -> None:
    await importer(notes)
    (notes / "kickoff.md").write_text("Alice: we launch in June.\n")
    report = await importer(notes, artifact_type=ArtifactType.TRANSCRIPT)

    assert counts(report) == {"revised": 1, "unchanged": 1}
    assert (report.unchanged[0].reason or "").startswith("stays note: --type")
    rows = sql.execute("SELECT source_id, artifact_type FROM artifact_revision WHERE is_latest")
    assert dict(rows.fetchall()) == {
        "notes/kickoff.md": "transcript", "notes/sub/risks.txt": "note",
    }  # fmt: skip
    again = await importer(notes)
    assert [entry.reason for entry in again.unchanged] == [None, None]


async def test_an_import_heals_a_text_that_was_lost(
    importer: Importer, notes: Path, sql: psycopg.Connection
) -> None:
    await importer(notes)
    sql.execute("DELETE FROM revision_text WHERE content LIKE '%vendor%'")

    assert counts(await importer(notes)) == {"revised": 1, "unchanged": 1}
    assert counts(await importer(notes)) == {"unchanged": 2}
    assert len(sql.execute("SELECT 1 FROM revision_text").fetchall()) == 2


async def test_a_restored_file_keeps_the_labels_that_were_given_to_it(
    importer: Importer, notes: Path, sql: psycopg.Connection
) -> None:
    before = (notes / "kickoff.md").read_text()
    await importer(notes)
    sql.execute("UPDATE artifact_revision SET title = 'Named by hand'")
    (notes / "kickoff.md").write_text("Something else.\n")
    await importer(notes)
    (notes / "kickoff.md").write_text(before)

    assert counts(await importer(notes)) == {"revised": 1, "unchanged": 1}
    titles = sql.execute("SELECT title FROM artifact_revision WHERE is_latest").fetchall()
    assert titles == [("Named by hand",), ("Named by hand",)]


async def test_an_unchanged_file_is_neither_parsed_nor_embedded(
    importer: Importer, runtime: Runtime, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await importer(notes)
    fail = AssertionError("this is not asked for")

    def refuse(*_: object, **__: object) -> None:
        raise fail

    monkeypatch.setattr(formats, "parse", refuse)
    monkeypatch.setattr(runtime.embedder, "embed", refuse)
    assert counts(await importer(notes)) == {"unchanged": 2}


async def test_what_is_remembered_of_files_is_only_a_cache(
    importer: Importer, runtime: Runtime, notes: Path, sql: psycopg.Connection
) -> None:
    await importer(notes)
    sql.execute("SET session_replication_role = replica")
    sql.execute("DELETE FROM artifact_revision; DELETE FROM revision_text")
    sql.execute("DELETE FROM revision_chunk; DELETE FROM chunk_entry; DELETE FROM event_jobs")

    assert counts(await importer(notes)) == {"created": 2}, "Postgres says what is stored"

    for file in (importer.data_dir / "imports").iterdir():
        file.write_text("no JSON")
    assert counts(await importer(notes)) == {"unchanged": 2}


async def test_a_dry_run_changes_nothing(
    importer: Importer, notes: Path, sql: psycopg.Connection
) -> None:
    would = await importer(notes, dry_run=True)

    assert counts(would) == {"created": 2}
    assert sql.execute("SELECT count(*) FROM artifact_revision").fetchone() == (0,)
    assert list(importer.data_dir.iterdir()) == []

    await importer(notes)
    (notes / "kickoff.md").write_text("Changed.\n")
    assert counts(await importer(notes, dry_run=True)) == {"revised": 1, "unchanged": 1}
    assert counts(await importer(notes)) == {"revised": 1, "unchanged": 1}


async def test_stopped_it_is_continued_by_running_it_again(importer: Importer, notes: Path) -> None:
    importer.stop.set()
    stopped = await importer(notes)
    importer.stop.clear()

    assert stopped.interrupted
    assert counts(stopped) == {}
    assert counts(await importer(notes)) == {"created": 2}


TEXTS = st.sampled_from(["one", "two", "three", "four \u00e9", "five\r\nlines", "nul \x00 inside"])
EDITS = st.lists(st.dictionaries(st.sampled_from(["a.md", "b.txt", "c.rst"]), TEXTS), max_size=6)


@hypothesis_settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(EDITS)
async def test_the_revisions_are_what_the_edits_say(
    runtime: Runtime,
    tmp_path_factory: pytest.TempPathFactory,
    edits: list[dict[str, str]],
) -> None:
    """Import, edit, import, revert, import: a model of it knows every outcome. Some of the files
    are old enough not to be read again, others are not."""
    folder = tmp_path_factory.mktemp("home") / "notes"
    folder.mkdir()
    importer = Importer(runtime, folder.parent / "data")
    source = folder.parent.name  # each example has documents of its own
    current: dict[str, str] = {}
    past: dict[str, list[str]] = {}
    uids: dict[str, str] = {}
    for edit in edits:
        expected = {"created": set(), "revised": set(), "unchanged": set()}
        for name in {**current, **edit}:
            text = edit.get(name, current.get(name, ""))
            outcome = "created" if name not in current else (
                "unchanged" if current[name] == text else "revised")  # fmt: skip
            expected[outcome].add(name)
            if text not in past.setdefault(name, []):
                past[name].append(text)
            if outcome != "unchanged":
                (folder / name).write_bytes(text.encode())
            current[name] = text
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(safe_files, "SETTLED_NS", 20_000_000)  # this file system's clock is finer
            report = await importer(folder, source=source)

        for outcome, expected_names in expected.items():
            assert names(report, outcome) == sorted(expected_names), outcome
        for entry in [*report.created, *report.revised]:
            assert entry.artifact_uid is not None
            uids[Path(entry.path).name] = entry.artifact_uid
    for name, uid in uids.items():
        assert await contents(runtime, uid) == past[name]
