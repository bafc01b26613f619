"""`mcp-memory events …`, `jobs` and `reindex events` as people and scripts run them."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from memory_core.index.generation import CollectionName
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.search.similarity import NO_TEXT_HAS_A_WORD
from tests.indexing import ids as indexed_ids
from tests.indexing import remove
from tests.integration.commands import Command, answer, words
from tests.integration.planted_events import Event, Garden, Planted, ingest
from tests.tool_client import Json, ToolClient

TEXT = (
    "The sun shone. After lunch Alice Chen said we charge per seat from May on. Then they left.\n"
    "Alice Chen will write the price list.\n"
    "Bob Ray will \x1b[31mpaint\x1b[0m the hall.\n"
)
PRICE = Event(
    "Alice Chen decided to charge per seat.", time="2026-03-01", actors=("Alice Chen",),
    subject="pricing", quote="we charge per seat",
)  # fmt: skip
LIST = Event(
    "Alice Chen will write the price list.", category="Commitment", time="2999-01-01",
    actors=("Alice Chen",), subject="price list",
)  # fmt: skip
PAINT = Event(
    "Bob Ray will \x1b[31mpaint\x1b[0m the hall.", category="Commitment", actors=("Bob Ray",),
    subject="hall",
)  # fmt: skip

UNKNOWN_EVENT = "6f0c7a52-8d0e-4f43-9b1d-3f3f2f1f6a11"


@pytest.fixture
async def planted(garden: Garden) -> Planted:
    return await garden.document(
        PRICE, LIST, PAINT, source_id="minutes", content=TEXT, title="Minutes\x1b[31m of March"
    )


def test_search(command: Command, planted: Planted) -> None:
    text = words(command("events", "search", "charge", "--category", "Decision"))

    assert f"{planted.ids[0][:8]} 2026-03-01 Decision {PRICE.narrative}" in text
    assert "Minutes[31m of March" in text
    assert "1 of 1" in text
    assert "“we charge per seat”" not in text
    shown = answer(command, "events", "search", "charge", "--category", "Decision")
    assert [event["event_id"] for event in shown["events"]] == planted.ids[:1]


@pytest.mark.usefixtures("planted")
def test_a_search_says_that_no_word_of_it_occurs(command: Command) -> None:
    assert NO_TEXT_HAS_A_WORD in words(command("search", "zzzqqq"))
    assert NO_TEXT_HAS_A_WORD not in words(command("search", "lunch"))


def test_search_in_full(command: Command, planted: Planted) -> None:
    text = command("events", "search", "--full")

    price, price_list = (
        next(part for part in text.split("\n\n") if part.startswith(id_[:8]))
        for id_ in planted.ids[:2]
    )
    assert "“we charge per seat”" in price
    assert "Alice Chen (owner)" in price
    assert planted.uid[:12] in price
    assert price_list.count("write the price list") == 1, "the narrative is the quote"


@pytest.mark.parametrize("width", ["80", None])
def test_lines_fit_and_ids_are_whole(
    command: Command, planted: Planted, monkeypatch: pytest.MonkeyPatch, width: str | None
) -> None:
    """Without a width, in a pipe, nothing is cut off."""
    if width is None:
        monkeypatch.delenv("COLUMNS")
    else:
        monkeypatch.setenv("COLUMNS", width)

    lines = command("events", "search").splitlines()

    assert {line.split()[0] for line in lines[1:-1]} == {id_[:8] for id_ in planted.ids}
    assert all(len(line) <= 80 for line in lines) == (width is not None)
    assert any(PRICE.narrative in line for line in lines) == (width is None)


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(
    ("options", "narratives"),
    [
        (["--subject", "hall"], [PAINT.narrative]),
        (["--actor", "Alice"], [LIST.narrative, PRICE.narrative]),
        (["--sort", "time", "--offset", "1", "--limit", "1"], [PRICE.narrative]),
        (["--artifact", "uid_0000000000000000"], []),
        (["--to", "2026-03-01"], [PRICE.narrative]),
    ],
)
def test_search_by_what_the_tool_can(
    command: Command, options: list[str], narratives: list[str]
) -> None:
    shown = answer(command, "events", "search", *options)

    assert [event["narrative"] for event in shown["events"]] == narratives


def test_search_says_who_is_meant_or_may_be(command: Command, planted: Planted) -> None:
    assert "of Alice Chen" in words(command("events", "search", "--actor", "alice"))
    unknown = words(command("events", "search", "--actor", "Zoe Nobody"))
    assert "No event has a person of that name." in unknown
    assert "No event matches in 1 document" in unknown


def test_show(command: Command, planted: Planted) -> None:
    text = words(command("events", "show", planted.ids[0]))

    assert "After lunch Alice Chen said we charge per seat from May on." in text
    assert "The sun shone" not in text
    assert "Then they left" not in text
    assert "Alice Chen (owner)" in text
    assert "2026-03-01" in text
    assert planted.ids[0] in text
    assert words(command("events", "show", planted.ids[0][:8])) == text
    assert "paint" in command("events", "show", planted.ids[2])
    shown = answer(command, "events", "show", planted.ids[0])
    assert shown["evidence"][0]["quote"] == "we charge per seat"


@pytest.fixture
async def revised(garden: Garden, planted: Planted) -> Planted:
    return await garden.document(
        LIST,
        Event("Alice Chen decided to charge per site.", quote="we charge per site"),
        source_id="minutes",
        content=TEXT.replace("per seat", "per site"),
    )


def test_diff(command: Command, planted: Planted, revised: Planted) -> None:
    text = words(command("events", "diff", planted.uid))

    assert f"{planted.revision} → {revised.revision}" in text
    assert "changed Alice Chen decided to charge per site." in text
    assert "kept (1)" in text
    assert "removed (1)" in text
    assert "+The sun shone. After lunch Alice Chen said we charge per site" in text
    given = ("--from-revision", revised.revision[:12], "--to-revision", planted.revision)
    backwards = answer(command, "events", "diff", planted.uid[:12], *given)
    assert [event["narrative"] for event in backwards["added"]] == [PAINT.narrative]


@pytest.mark.usefixtures("planted")
def test_timeline(command: Command) -> None:
    text = command("events", "timeline")

    order = ("2026-03-01", PRICE.narrative, "2999-01-01", LIST.narrative, "no date", "paint")
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "3 of 3" in text
    only = answer(command, "events", "timeline", "--subject", "hall")
    assert [day["day"] for day in only["days"]] == [None]


@pytest.mark.usefixtures("planted")
def test_commitments(command: Command) -> None:
    text = words(command("events", "commitments"))

    assert f"open 2999-01-01 Alice Chen {LIST.narrative} Minutes" in text
    assert "open Bob Ray Bob Ray will" in text
    assert "2 of 2" in text
    assert "no due date" in command("events", "commitments", "--full")
    opened = answer(command, "events", "commitments", "--status", "open", "--due-to", "2999-01-01")
    assert [item["promised"]["narrative"] for item in opened["commitments"]] == [LIST.narrative]


@pytest.fixture
async def failed(planted: Planted, tools: ToolClient, sql: psycopg.Connection) -> Json:
    stored = await ingest(tools, "Something.", source_id="failed", title="A \x1b[31mbad one")
    sql.execute(
        "UPDATE event_jobs SET status = 'FAILED', attempts = 5, "
        "last_error_code = 'OPENAI_TIMEOUT', last_error_message = %s WHERE job_id = %s",
        ["no \x1b]0;answer", stored["job_id"]],
    )
    return stored


def test_jobs(command: Command, failed: Json) -> None:
    text = words(command("jobs"))

    assert "PENDING 0 PROCESSING 0 DONE 1 FAILED 1" in text
    assert f"{failed['artifact_uid'][:12]} FAILED 5/5" in text
    assert "A [31mbad one" in text
    assert "OPENAI_TIMEOUT: no ]0;answer" in text
    only = answer(command, "jobs", "--status", "failed")
    assert [job["job_id"] for job in only["jobs"]] == [failed["job_id"]]
    assert only["counts"] == {"DONE": 1, "FAILED": 1}


@pytest.fixture
async def emptied(runtime: Runtime, planted: Planted) -> None:
    entries = await indexed_ids(runtime, CollectionName.EVENTS)
    await remove(runtime, CollectionName.EVENTS, list(entries))


@pytest.mark.usefixtures("emptied")
def test_reindex(command: Command) -> None:
    # No word of it is in the event: only the index knows that they are near.
    query = ("events", "search", "she chose a fee for every chair", "--category", "Decision")
    before = answer(command, *query)
    text = command("reindex")
    after = answer(command, *query)

    assert "documents and memories" in text
    assert before["total"] == 0
    assert [event["narrative"] for event in after["events"]] == [PRICE.narrative]


def test_what_is_not_there_is_one_line_and_exit_code_1(settings: Settings, tmp_path: Path) -> None:
    """In a process of its own, as it ends."""
    done = subprocess.run(
        [sys.executable, "-m", "mcp_server.cli", "events", "show", UNKNOWN_EVENT],
        env={**os.environ, **settings.environment()}, cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"There is no event {UNKNOWN_EVENT}")
    assert "Traceback" not in done.stderr
