"""Prompts are versioned: a text never changes under its number."""

import hashlib
import json
import re
from importlib import resources

import pytest

from memory_core.extraction import prompts
from memory_core.extraction.model import Category
from memory_core.extraction.prompts import Prompt
from tests.documented import ROOT

NAMES = ("extract", "merge")
# What was shipped under a number keeps its text. A new prompt is a new line here, and no line ever
# changes: text and checksums.json could be edited together.
SHIPPED = {
    "extract.1.md": "997ccb9dc8281124f57a62b4fa97894279ebe06418542c4bfb7b790898d76a17",
    "extract.2.md": "af13b6028da6ecdbdf640e39ad562829dc5c7faf970d4116ed166f34b9a5ea98",
    "extract.3.md": "ee643b8665fc1e001a1d53270aaf8c27cc987522a30640867b0f2f4b7eed9b3b",
    "merge.1.md": "3249bbeed2b32568e0864ab1141cf94f32b0de9d0ebc533746849b998355efb1",
}


def files() -> dict[str, str]:
    texts = {}
    for file in resources.files(prompts).iterdir():
        if file.name.endswith(".md"):
            texts[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return texts


def recorded() -> dict[str, str]:
    """The checksum of every prompt file ever shipped."""
    text = resources.files(prompts).joinpath("checksums.json").read_text(encoding="utf-8")
    checksums: dict[str, str] = json.loads(text)
    return checksums


def test_every_file_is_as_it_was_recorded() -> None:
    assert files() == recorded(), (
        "a prompt was changed: give the new text the next number and record its checksum"
    )


def test_what_was_shipped_is_as_it_was_shipped() -> None:
    assert files() == SHIPPED, "a prompt was changed: give the new text the next number"


def test_the_newest_prompt_and_the_readme_have_every_category() -> None:
    categories = [category.value for category in Category]
    explained = re.findall(r"^- ([A-Z]\w+): ", prompts.load("extract").text, re.MULTILINE)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())

    assert explained == categories
    assert f"({', '.join(categories)})" in readme


def test_a_changed_text_no_longer_matches_its_record() -> None:
    shipped = prompts.load("extract")
    changed = Prompt(shipped.name, shipped.number, shipped.text + " ")

    assert recorded()[f"extract.{shipped.number}.md"] == shipped.checksum
    assert changed.checksum != shipped.checksum
    assert changed.version != shipped.version


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_contiguous_from_one_and_the_newest_is_loaded(name: str) -> None:
    numbers = sorted(
        int(match[1]) for file in files() if (match := re.fullmatch(rf"{name}\.(\d+)\.md", file))
    )

    assert numbers == list(range(1, len(numbers) + 1))
    assert prompts.load(name).number == numbers[-1]


def test_every_prompt_is_loaded() -> None:
    assert {file.partition(".")[0] for file in files()} == set(NAMES)


def test_versions_are_ordered_by_their_leading_number() -> None:
    versions = [Prompt("extract", number, "text").version for number in (2, 10, 9)]

    assert sorted(versions, key=lambda version: int(version.partition("-")[0])) == [
        versions[0],
        versions[2],
        versions[1],
    ]
    assert re.fullmatch(r"2-[0-9a-f]{8}", versions[0])


def test_prompts_have_no_placeholders_so_that_providers_can_cache_them() -> None:
    for name in NAMES:
        assert not re.search(r"[{}]", prompts.load(name).text)
