"""Versions are ordered, and prompts of one's own obey the rules of the shipped ones."""

from pathlib import Path

import pytest

from memory_core.extraction import prompts
from memory_core.extraction.current_versions import current
from memory_core.kernel.errors import ConfigurationFault
from memory_core.kernel.settings import Settings
from memory_core.queue.versions import Versions, number


def versions(extract: int, merge: int, extractor: str = "openai") -> Versions:
    return Versions(extractor, "gpt-4o", f"{extract}-abcdef01", f"{merge}-01abcdef")


@pytest.mark.parametrize(
    ("text", "expected"), [("2-0a1b2c3d", 2), ("10-x", 10), ("1-rules", 1), ("none", 0), ("", 0)]
)
def test_the_leading_number_orders(text: str, expected: int) -> None:
    assert number(text) == expected


@pytest.mark.parametrize(
    ("ours", "wanted", "reaches"),
    [
        (versions(2, 1), versions(2, 1), True),
        (versions(3, 1), versions(2, 1), True),
        (versions(2, 1), versions(3, 1), False),
        (versions(3, 1), versions(2, 2), False),  # newer in one, older in the other
        (versions(2, 2, "rules"), versions(2, 1), False),
    ],
)
def test_work_for_a_version_is_done_by_nothing_older(
    ours: Versions, wanted: Versions, reaches: bool
) -> None:
    assert ours.reach(wanted) is reaches


def settings(folder: Path) -> Settings:
    return Settings(  # type: ignore[call-arg]
        _env_file=None, extractor="openai", openai_api_key="sk-test", prompts_dir=folder
    )


def test_the_highest_number_counts_wherever_it_is(tmp_path: Path) -> None:
    (tmp_path / "extract.10.md").write_text("Ten.")
    (tmp_path / "extract.9.md").write_text("Nine.")
    (tmp_path / "README.txt").write_text("Not a prompt.")

    ours = current(settings(tmp_path))

    assert (ours.extract_number, ours.merge_number) == (10, prompts.load("merge").number)
    assert prompts.load("extract", tmp_path).text == "Ten."


def test_a_shipped_prompt_may_be_copied_but_not_changed(tmp_path: Path) -> None:
    shipped = prompts.load("merge")
    file = tmp_path / f"merge.{shipped.number}.md"
    file.write_text(shipped.text)
    assert prompts.versions("merge", tmp_path)[shipped.number] == shipped

    file.write_text(shipped.text + "!")
    with pytest.raises(ConfigurationFault, match=rf"merge\.{shipped.number + 1}\.md"):
        prompts.versions("merge", tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("extract.md", b"no number"),
        ("extract.0.md", b"numbers begin with one"),
        ("extract.02.md", b"one number has one name"),
        ("extarct.2.md", b"misspelt"),
        ("extract.3.md", b"  \n"),
        ("extract.3.md", b"\xff\xfe not UTF-8"),
    ],
)
def test_a_file_that_is_no_prompt_stops_the_start(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)

    with pytest.raises(ConfigurationFault, match=name):
        prompts.versions("extract", tmp_path)


def test_the_folder_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memory_core.kernel.settings import load_settings

    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationFault, match=r"PROMPTS_DIR=.* there is no such folder"):
        load_settings(prompts_dir=tmp_path / "missing")
