"""How far an import is, told while it runs."""

import asyncio
from pathlib import Path

import pytest

from memory_core.importing.given_paths import admit
from memory_core.importing.import_run import Import, Options, Survey, survey
from memory_core.importing.roots import Registry
from memory_core.runtime import Runtime

NOTES = 60


@pytest.fixture
async def found(runtime: Runtime, tmp_path: Path) -> Survey:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(NOTES):
        (folder / f"{number:02}.md").write_text(f"Note {number} tells of otters.\n")
    mails = "".join(
        f"From me@example.com Thu Jan  1 00:00:00 2026\nMessage-ID: <{number}@example.com>\n"
        f"From: me@example.com\nSubject: Mail {number}\n\nHello {number}.\n\n"
        for number in range(3)
    )
    (folder / "mail.mbox").write_text(mails)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 no")
    registry = Registry(tmp_path)
    places = await admit(runtime, registry, [folder])
    return survey(places, registry, tmp_path / "data")


async def steps(runtime: Runtime, found: Survey) -> list[tuple[int, int]]:
    """Each step's weight, and how many documents were stored by then."""
    steps_seen: list[tuple[int, int]] = []
    work = Import(runtime, Options(), asyncio.Event())
    await work.run(found, lambda weight: steps_seen.append((weight, len(work.report.created))))
    return steps_seen


async def test_it_moves_from_the_first_document_on_and_ends_at_the_whole(
    runtime: Runtime, found: Survey
) -> None:
    reported = await steps(runtime, found)

    assert sum(weight for weight, _ in reported) == found.weight
    assert max(weight for weight, _ in reported) < found.weight / 10, "no step is a leap"
    assert {stored for _, stored in reported} >= {1, 8, 9, 30}, "documents are counted one by one"


async def test_what_is_unchanged_counts_as_well(runtime: Runtime, found: Survey) -> None:
    await steps(runtime, found)

    again = await steps(runtime, found)

    assert sum(weight for weight, _ in again) == found.weight
