"""`mcp-memory log …`, `projections …` and `deadletters …` over the stores of the test session."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from memory_core.kernel.database import Database
from memory_core.kernel.errors import InvalidInput, NotFound
from memory_core.kernel.settings import Settings
from memory_core.log import checkpoint, deadletters
from memory_core.log.change import START, ChangeType, of_memory
from memory_core.log.log_reader import read
from memory_core.log.log_writer import append
from tests.integration.commands import Command, answer

MEMORY = "mem_0123456789abcdef"


@pytest.fixture
def logged(settings: Settings) -> None:
    """Two changes, of which a projection without a leader could not take in the first."""

    async def prepare(database: Database) -> None:
        async with database.session() as session:
            await checkpoint.lead(session, "index", "gone")
        for kind in (ChangeType.MEMORY_STORED, ChangeType.MEMORY_DELETED):
            async with database.transaction() as session:
                await append(session, [of_memory(kind, MEMORY)])
        async with database.transaction() as session:
            [change, _] = await read(session, START, 10)
            await deadletters.put(session, "index", change, ValueError("no such vector"), 5)
            await checkpoint.advance(session, "index", "gone", change, 1)

    _with_database(settings, prepare)


def _with_database(settings: Settings, work: Callable[[Database], Awaitable[None]]) -> None:
    async def run() -> None:
        database = Database(settings.dsn, unasked="a test looks at what is stored")
        await database.open()
        try:
            await work(database)
        finally:
            await database.close()

    asyncio.run(run())


def test_the_tail_of_the_log(command: Command, logged: None) -> None:
    lines = command("log", "tail").splitlines()
    one = json.loads(command("log", "tail", "--json", "-n", "1"))
    deleted = command("log", "tail", "--types", "*.deleted").splitlines()

    assert ["memory.stored" in lines[0], "memory.deleted" in lines[1]] == [True, True]
    assert one["event_type"] == "memory.deleted"
    assert one["payload"] == {"memory_id": MEMORY}
    assert len(deleted) == 1


def test_a_type_that_does_not_exist_is_refused(command: Command, logged: None) -> None:
    with pytest.raises(InvalidInput, match=r"artifact\.created"):
        command("log", "tail", "--types", "memory.eaten")


def test_the_state_of_a_memory(command: Command, logged: None) -> None:
    state = json.loads(command("log", "state", MEMORY))

    assert (state["version"], state["state"]["exists"]) == (2, False)


def test_what_the_log_does_not_know_is_said(command: Command, logged: None) -> None:
    with pytest.raises(NotFound, match="knows nothing"):
        command("log", "state", "uid_0000000000000000")
    with pytest.raises(InvalidInput, match="names no aggregate"):
        command("log", "state", "something")


def test_a_shortened_id_of_a_document_will_do(command: Command, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("We decided to launch the beta in May.")
    [stored] = answer(command, "ingest", str(tmp_path / "note.md"))["created"]
    uid = stored["artifact_uid"]

    shortened = json.loads(command("log", "state", uid[:12]))

    assert shortened == json.loads(command("log", "state", uid))
    assert shortened["state"]["exists"] is True


def test_projections_and_why_one_is_behind(command: Command, logged: None) -> None:
    index = answer(command, "projections", "status")["projections"][0]

    assert (index["projection"], index["lag_changes"], index["dead_letters"]) == ("index", 1, 1)
    assert index["is_led"] is False
    assert "no worker runs" in index["reason"]
    shown = command("projections", "status")
    assert all(name in shown for name in ("index", "webhooks", "resource notifications"))


def test_pausing_resuming_and_rebuilding(command: Command, logged: None) -> None:
    def status() -> str:
        return str(answer(command, "projections", "status")["projections"][0]["status"])

    for order, becomes in (("pause", "paused"), ("rebuild", "rebuilding")):
        command("projections", order, "index")
        assert status() == becomes
    command("projections", "pause", "index")
    command("projections", "resume", "index")
    # It was not rebuilt to its end: it goes on with that.
    assert status() == "rebuilding"
    with pytest.raises(NotFound, match="There are: index"):
        command("projections", "pause", "nothing")


def test_dead_letters_are_shown_and_resolved_by_a_person(command: Command, logged: None) -> None:
    [letter] = answer(command, "deadletters", "list")["dead_letters"]
    shown = json.loads(command("deadletters", "show", str(letter["id"])))
    assert "no such vector" in command("deadletters", "list")
    assert shown["change"]["payload"] == {"memory_id": MEMORY}

    command("deadletters", "retry", str(letter["id"]))
    [waiting] = answer(command, "deadletters", "list", "--status", "retrying")["dead_letters"]
    command("deadletters", "resolve", "--all")

    assert waiting["id"] == letter["id"]
    assert command("deadletters", "list").strip() == "There are none."
    [done] = answer(command, "deadletters", "list", "--status", "resolved")["dead_letters"]
    assert done["resolved_by"]
    assert done["resolved_at"]


def test_which_letters_are_meant_must_be_said(command: Command, logged: None) -> None:
    with pytest.raises(InvalidInput, match="--all"):
        command("deadletters", "retry")


@pytest.mark.parametrize("order", ["retry", "resolve"])
def test_a_letter_that_is_not_there_is_said(command: Command, logged: None, order: str) -> None:
    with pytest.raises(NotFound, match="No dead letter 999999 is open: nothing was changed"):
        command("deadletters", order, "999999")


def test_rebasing_keeps_what_is_left_to_do(command: Command, logged: None) -> None:
    said = command("log", "rebase")

    index = answer(command, "projections", "status")["projections"][0]
    assert "2 changes and 1 checkpoints" in said
    assert index["lag_changes"] == 1
