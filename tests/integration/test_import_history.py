"""git history as revisions, pruning, and watching."""

import os
import shutil
from pathlib import Path

import psycopg
import pytest

from memory_core.kernel.errors import InvalidInput
from memory_core.runtime import Runtime
from tests.importing import Importer, contents, counts, git, names


@pytest.fixture
def importer(runtime: Runtime, tmp_path: Path) -> Importer:
    return Importer(runtime, tmp_path / "data")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return folder


def commit(folder: Path, text: str | None, name: str = "plan.md", **about: object) -> None:
    if text is not None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x", **about)  # type: ignore[arg-type]


# --- history ---------------------------------------------------------------------------------


async def test_history_becomes_revisions_with_time_and_author(
    importer: Importer, runtime: Runtime, repository: Path, sql: psycopg.Connection
) -> None:
    commit(repository, "one", when=1_700_000_000, author="Alice")
    commit(repository, "two", when=1_700_100_000, author="Bob")
    commit(repository, "one", when=1_700_200_000, author="Alice")
    commit(repository, "three", when=1_700_300_000, author="Carol")

    report = await importer.git(repository)

    assert counts(report) == {"created": 1, "revised": 3}
    uid = report.created[0].artifact_uid
    assert uid is not None
    assert await contents(runtime, uid) == ["one", "two", "three"]
    rows = sql.execute(
        "SELECT author, extract(epoch FROM source_ts)::int, is_latest, source_url "
        "FROM artifact_revision ORDER BY ingested_at"
    ).fetchall()
    assert [row[:3] for row in rows] == [
        ("Alice", 1_700_000_000, False), ("Bob", 1_700_100_000, False),
        ("Carol", 1_700_300_000, True),
    ]  # fmt: skip
    head = git(repository, "rev-parse", "HEAD").strip()
    assert rows[-1][3] == f"import:project/plan.md?commit={head}"
    assert counts(await importer(repository / "plan.md")) == {"unchanged": 1}, "the same artifact"


async def test_again_it_adds_only_new_commits(
    importer: Importer, runtime: Runtime, repository: Path, sql: psycopg.Connection
) -> None:
    for text in ("one", "two", "one"):
        commit(repository, text)
    first = await importer.git(repository)
    since = sql.execute("SELECT max(latest_since) FROM artifact_revision").fetchone()
    assert counts(await importer.git(repository)) == {"unchanged": 1}
    assert sql.execute("SELECT max(latest_since) FROM artifact_revision").fetchone() == since

    commit(repository, "two")  # all its states are known: it only returns to one of them
    assert counts(await importer.git(repository)) == {"revised": 1}
    commit(repository, "four")
    assert counts(await importer.git(repository)) == {"revised": 1}

    uid = first.created[0].artifact_uid
    assert uid is not None
    assert await contents(runtime, uid) == ["one", "two", "four"]


async def test_a_renamed_file_brings_its_past_along(
    importer: Importer, runtime: Runtime, repository: Path
) -> None:
    text = "\n".join(f"line {n}" for n in range(30))
    commit(repository, text, "old name.md")
    git(repository, "mv", "old name.md", "new.md")
    commit(repository, None)
    commit(repository, text + "\nmore", "new.md")
    commit(repository, "another file with the old name", "old name.md")
    commit(repository, "gone soon", "deleted.md")
    git(repository, "rm", "-q", "deleted.md")
    commit(repository, None)

    whole = await importer.git(repository)
    alone = await importer.git(repository / "new.md")

    by_name = {Path(entry.path).name: entry.artifact_uid or "" for entry in whole.created}
    assert sorted(by_name) == ["new.md", "old name.md"], "of the files that are there"
    assert await contents(runtime, by_name["new.md"]) == [text, text + "\nmore"]
    assert await contents(runtime, by_name["old name.md"]) == ["another file with the old name"]
    assert counts(alone) == {"unchanged": 1}


async def test_a_repository_that_misses_contents_does_not_fetch_them(
    importer: Importer, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a git older than GIT_NO_LAZY_FETCH is installed, too."""
    # Given a repository that names a program as the place of the contents that it lacks
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    commit(repository, "one\n")
    commit(repository, "two\n")
    blob = git(repository, "rev-parse", "HEAD~1:plan.md").strip()
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::{trap}"),
        ("protocol.ext.allow", "always"),
    ):
        git(repository, "config", name, value)
    # And a git that fetches what is missing
    older = tmp_path / "bin" / "git"
    older.parent.mkdir()
    older.write_text(f'#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec {shutil.which("git")} "$@"\n')
    older.chmod(0o755)
    monkeypatch.setenv("PATH", f"{older.parent}:{os.environ['PATH']}")

    report = await importer.git(repository)

    assert not (tmp_path / "sprung").exists()
    assert names(report, "created") == ["plan.md"]


async def test_a_repository_runs_nothing_and_leads_nowhere(
    importer: Importer, repository: Path, tmp_path: Path
) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    (tmp_path / "secret.md").write_text("SECRET")
    commit(repository, "one\n")
    commit(repository, "* diff=trap filter=trap\n", ".gitattributes")
    (repository / "link.md").symlink_to(tmp_path / "secret.md")
    (repository / "*.md").write_text("a name that is a pattern\n")
    commit(repository, "two\n")
    for name in ("core.fsmonitor", "diff.external", "diff.trap.textconv", "diff.trap.command",
                 "filter.trap.clean", "filter.trap.smudge", "core.pager", "pager.log",
                 "gpg.program", "core.sshCommand"):  # fmt: skip
        git(repository, "config", name, str(trap))
    git(repository, "config", "log.showSignature", "true")

    report = await importer.git(repository)

    assert not (tmp_path / "sprung").exists()
    assert names(report, "created") == ["*.md", "plan.md"]
    assert counts(await importer.git(repository / "*.md")) == {"unchanged": 1}
    assert not report.failed


async def test_a_binary_in_history_is_skipped_and_its_text_imported(
    importer: Importer, repository: Path
) -> None:
    (repository / "x.dat").write_bytes(bytes(range(256)) * 20)
    commit(repository, "one")
    commit(repository, "now it is text", "x.dat")

    report = await importer.git(repository)
    assert counts(report) == {"created": 2, "skipped": 1}


async def test_files_keep_their_roots_above_and_within_the_repository(
    importer: Importer, repository: Path, tmp_path: Path
) -> None:
    commit(repository, "one")
    commit(repository, "inner one", "docs/inner.md")
    await importer(repository / "docs", source="handbook")
    (tmp_path / "beside.md").write_text("Makes the folder above a root.")
    await importer(tmp_path)

    commit(repository, "two")
    commit(repository, "inner two", "docs/inner.md")
    whole = await importer.git(repository)

    assert sorted(entry.source_id or "" for entry in whole.revised) == [
        "handbook/inner.md", f"{tmp_path.name}/project/plan.md",
    ]  # fmt: skip
    assert whole.created == []
    assert counts(await importer(tmp_path)) == {"unchanged": 3, "skipped": 2}


async def test_what_came_by_merges_is_there_whatever_the_configuration_says(
    importer: Importer, runtime: Runtime, repository: Path
) -> None:
    commit(repository, "one")
    git(repository, "checkout", "-q", "-b", "side")
    commit(repository, "from the side", "side.md")
    commit(repository, "from the side, again", "side.md")
    git(repository, "checkout", "-q", "main")
    commit(repository, "two")
    git(repository, "merge", "-q", "--no-ff", "-m", "merge", "side")
    for way in ("off", "combined", "dense-combined", "separate"):
        git(repository, "config", "log.diffMerges", way)
        report = await importer.git(repository, dry_run=True)
        assert names(report, "created") == ["plan.md", "side.md"], way
    report = await importer.git(repository)
    uid = {Path(entry.path).name: entry.artifact_uid or "" for entry in report.created}
    assert await contents(runtime, uid["side.md"]) == ["from the side, again"], (
        "a merge is one step"
    )


@pytest.mark.parametrize("part", [".", "plan.md"])
async def test_a_file_that_was_away_brings_its_earlier_life_along(
    importer: Importer, runtime: Runtime, repository: Path, part: str
) -> None:
    commit(repository, "one")
    commit(repository, "beside", "beside.md")
    commit(repository, "two")
    (repository / "plan.md").unlink()
    commit(repository, None)
    commit(repository, "three")

    report = await importer.git(repository / part)

    [uid] = [e.artifact_uid for e in report.created if e.path.endswith("plan.md")]
    assert await contents(runtime, uid or "") == ["one", "two", "three"]


async def test_names_times_and_authors_may_be_anything(
    importer: Importer, repository: Path, sql: psycopg.Connection
) -> None:
    odd = ["a\x1eb.md", "c\x1fd.md", "line\nbreak.md", ":100644 trap.md"]
    for number, name in enumerate(odd):
        commit(repository, f"Text {number}.", name, author="A\x1f\x1e B")
    commit(repository, "late", "late.md", when=1_000_000_000_000)
    git(repository, "config", "i18n.commitEncoding", "latin1")
    commit(repository, "old", "old.md", author=os.fsdecode("Jörg".encode("latin-1")))

    report = await importer.git(repository)

    assert names(report, "created") == sorted([*odd, "late.md", "old.md"])
    assert not report.failed
    rows = sql.execute("SELECT title, author, source_ts FROM artifact_revision").fetchall()
    about = {title: (author, when) for title, author, when in rows}
    assert about["late"][1].year == 9999
    assert about["old"][0] == "Jörg"
    assert counts(await importer.git(repository)) == {"unchanged": 6}


async def test_a_commit_without_a_readable_time_is_a_state_like_any_other(
    importer: Importer, runtime: Runtime, repository: Path, tmp_path: Path
) -> None:
    commit(repository, "one")
    before = git(repository, "rev-parse", "HEAD").strip()
    (repository / "plan.md").write_text("two")
    git(repository, "add", "-A")
    tree = git(repository, "write-tree").strip()
    raw = tmp_path / "commit"
    raw.write_text(f"tree {tree}\nparent {before}\nauthor nobody\ncommitter nobody\n\nx\n")
    made = git(repository, "hash-object", "-t", "commit", "-w", "--literally", str(raw)).strip()
    git(repository, "update-ref", "refs/heads/main", made)

    report = await importer.git(repository)

    assert counts(report) == {"created": 1, "revised": 1}
    assert await contents(runtime, report.created[0].artifact_uid or "") == ["one", "two"]


async def test_a_repository_that_keeps_its_files_elsewhere_is_refused(
    importer: Importer, repository: Path, tmp_path: Path
) -> None:
    commit(repository, "one")
    (tmp_path / "elsewhere").mkdir()
    git(repository, "config", "core.worktree", str(tmp_path / "elsewhere"))
    with pytest.raises(InvalidInput, match="elsewhere"):
        await importer.git(repository)


async def test_reading_a_history_ends_when_asked_to(importer: Importer, repository: Path) -> None:
    for number in range(3):
        commit(repository, f"{number}")
    importer.stop.set()
    report = await importer.git(repository)
    assert report.interrupted
    assert counts(report) == {}
