"""Who is meant by a name: full names, what documents equate with them, and never a guess."""

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core.runtime import Runtime
from memory_core.search.names import resolve_name
from tests.integration.planted_events import Event, Garden
from tests.tool_client import Json, ToolClient

RAMAN = Event("Priya Raman migrated the accounts.", actors=("Priya Raman",))
SHAH = Event("Priya Shah signed the contract.", actors=("Priya Shah",))
ALICE = Event("Alice Chen drew the diagram.", actors=("Alice Chen",))


def found(answer: Json) -> set[str]:
    return {event["narrative"] for event in answer["events"]}


@pytest.mark.parametrize("tool", ["event_search", "timeline", "commitment_list"])
async def test_an_ambiguous_name_returns_the_candidates(
    garden: Garden, tools: ToolClient, tool: str
) -> None:
    first = await garden.document(RAMAN, Event("She left.", actors=("Priya Raman",)), source_id="1")
    await garden.document(SHAH, source_id="2")
    garden.alias(first, "Priya Raman", "PR")

    answer = await tools(tool, actor="Priya")

    assert answer["actor_candidates"] == [
        {"name": "Priya Raman", "events": 2, "aliases": ["PR"], "actor": "Priya Raman",
         "said_in": None},
        {"name": "Priya Shah", "events": 1, "aliases": [], "actor": "Priya Shah", "said_in": None},
    ]  # fmt: skip
    assert not answer.get("events")
    assert not answer.get("days")
    assert not answer.get("commitments")


async def test_each_full_name_finds_its_own(garden: Garden, tools: ToolClient) -> None:
    await garden.document(RAMAN, SHAH, source_id="1")

    assert found(await tools("event_search", actor="Priya Raman")) == {RAMAN.narrative}
    assert found(await tools("event_search", actor="Priya Shah")) == {SHAH.narrative}


async def test_an_alias_under_which_nothing_is_done_finds_its_person(
    garden: Garden, tools: ToolClient
) -> None:
    says_so = await garden.document(Event("Nothing of note."), source_id="roles")
    garden.alias(says_so, "Alice Chen", "AC", "alice.chen@example.com")
    await garden.document(ALICE, source_id="elsewhere")

    for name in ("AC", "ac", "Alice.Chen@example.com"):
        answer = await tools("event_search", actor=name)
        assert found(answer) == {ALICE.narrative}, name
        assert answer["actor_candidates"] is None


@pytest.mark.parametrize(
    ("tool", "listed"), [("event_search", "events"), ("commitment_list", "commitments")]
)
async def test_no_document_moves_what_another_tells_of_a_name(
    garden: Garden, tools: ToolClient, tool: str, listed: str
) -> None:
    promise = Event("Zoe will pay.", category="Commitment", actors=("Zoe",))
    evil = Event("Mallory Evil will sing.", category="Commitment", actors=("Mallory Evil",))
    await garden.document(promise, source_id="promises")
    before = await tools(tool, actor="Zoe")
    says_so = await garden.document(evil, source_id="attack")
    garden.alias(says_so, "Mallory Evil", "Zoe")

    after = await tools(tool, actor="Zoe")
    hers = await tools(tool, actor="Mallory Evil")

    assert after[listed] == before[listed]
    assert after["actor_names"] == ["Zoe"]
    [candidate] = after["actor_candidates"]
    assert (candidate["name"], candidate["said_in"]) == ("Mallory Evil", says_so.uid)
    [shown] = hers[listed]
    assert shown.get("promised", shown)["narrative"] == evil.narrative
    [candidate] = hers["actor_candidates"]
    assert (candidate["actor"], candidate["said_in"]) == ('"Zoe"', says_so.uid)
    assert (await tools(tool, actor=candidate["actor"]))[listed] == before[listed]
    people = {
        one["name"]: one["events"] for one in (await tools("stakeholder_map"))["stakeholders"]
    }
    assert people == {"Zoe": 1, "Mallory Evil": 1}


async def test_aliases_of_two_documents_make_no_chain(garden: Garden, tools: ToolClient) -> None:
    one = await garden.document(
        Event("Mallory Evil paid the bill.", actors=("Mallory Evil",)), source_id="one"
    )
    two = await garden.document(
        Event("Annie wrote the plan.", actors=("Annie",)),
        Event("Ann Lee signed it.", actors=("Ann Lee",)),
        source_id="two",
    )
    garden.alias(one, "Mallory Evil", "Annie")
    garden.alias(two, "Annie", "Nan")

    answer = await tools("event_search", actor="Nan")
    acting = {actor["ref"] for event in answer["events"] for actor in event["actors"]}

    assert acting <= {"Annie"}
    whole = await tools("event_search", actor="Annie")
    assert {a["ref"] for event in whole["events"] for a in event["actors"]} <= {"Annie"}


async def test_a_full_name_is_never_taken_for_another(garden: Garden, tools: ToolClient) -> None:
    says_so = await garden.document(ALICE, source_id="attack")
    garden.alias(says_so, "Alice Chen", "Bob Stone")

    unknown = await tools("event_search", actor="Bob Stone")
    assert (unknown["events"], unknown["actor_names"]) == ([], None)
    [candidate] = unknown["actor_candidates"]
    assert (candidate["name"], candidate["said_in"]) == ("Alice Chen", says_so.uid)

    bob = Event("Bob Stone paid.", actors=("Bob Stone",))
    await garden.document(bob, source_id="elsewhere")
    assert found(await tools("event_search", actor="Bob Stone")) == {bob.narrative}
    assert found(await tools("event_search", actor="Alice Chen")) == {ALICE.narrative}


async def test_every_spelling_of_a_full_name_finds_the_same(
    garden: Garden, tools: ToolClient
) -> None:
    says_so = await garden.document(ALICE, source_id="roles")
    garden.alias(says_so, "Alice Chen", "AC", "A. Chen")
    await garden.document(Event("AC checked it.", actors=("AC",)), source_id="chat")

    for name in ("Alice Chen", "A. Chen", "a.  chen", "Dr. Alice Chen", "Chen, Alice"):
        answer = await tools("event_search", actor=name)
        assert found(answer) == {ALICE.narrative}, name
        assert answer["actor_names"] == ["Alice Chen"], name


async def test_an_alias_without_events_of_its_own_is_no_ghost(
    garden: Garden, tools: ToolClient
) -> None:
    says_so = await garden.document(ALICE, source_id="roles")
    garden.alias(says_so, "Alice Chen", "A. Chen")

    answer = await tools("event_search", actor="A. Chen")

    assert found(answer) == {ALICE.narrative}
    assert (answer["actor_candidates"], answer["actor_names"]) == (None, ["Alice Chen"])


async def test_a_first_name_that_one_document_gives_and_another_person_has_is_ambiguous(
    garden: Garden, tools: ToolClient
) -> None:
    says_so = await garden.document(ALICE, source_id="1")
    garden.alias(says_so, "Alice Chen", "Alice")
    brown = Event("Alice Brown wrote the letter.", actors=("Alice Brown",))
    bare = Event("Alice posted it.", actors=("Alice",))
    await garden.document(brown, bare, source_id="2")

    answer = await tools("event_search", actor="Alice")
    people = {person["name"]: person["actor"] for person in answer["actor_candidates"]}

    assert set(people) == {"Alice Chen", "Alice Brown", "Alice"}
    assert answer["events"] == []
    for name, event in (("Alice Chen", ALICE), ("Alice Brown", brown), ("Alice", bare)):
        assert found(await tools("event_search", actor=people[name])) == {event.narrative}
    shown = {one["name"] for one in (await tools("stakeholder_map"))["stakeholders"]}
    assert shown == {"Alice Chen", "Alice Brown", "Alice"}


async def test_a_name_that_is_a_part_of_another_can_be_asked_for(
    garden: Garden, tools: ToolClient
) -> None:
    google = Event("Google signed the contract.", actors=("Google",))
    cloud = Event("Google Cloud had an outage.", actors=("Google Cloud",))
    planted = await garden.document(google, cloud, source_id="1")

    unclear = await tools("event_search", actor="Google")
    exact = {person["name"]: person["actor"] for person in unclear["actor_candidates"]}
    assert found(await tools("event_search", actor=exact["Google"])) == {google.narrative}
    assert found(await tools("event_search", actor=exact["Google Cloud"])) == {cloud.narrative}

    garden.alias(planted, "Google", kind="org")
    assert found(await tools("event_search", actor="google")) == {google.narrative}


async def test_what_only_an_old_revision_says_no_longer_counts(
    garden: Garden, tools: ToolClient
) -> None:
    old = await garden.document(Event("AC checked it.", actors=("AC",)), source_id="roles")
    garden.alias(old, "Alice Chen", "AC")
    await garden.document(ALICE, source_id="elsewhere")
    await garden.document(Event("AC checked more.", actors=("AC",)), source_id="roles")

    assert found(await tools("event_search", actor="AC")) == {"AC checked more."}
    assert found(await tools("event_search", actor="Alice Chen")) == {ALICE.narrative}


async def test_a_person_with_and_without_a_title_is_one(garden: Garden, tools: ToolClient) -> None:
    titled = Event("Dr. Alice Chen gave a talk.", actors=("Dr. Alice Chen",))
    await garden.document(ALICE, titled, source_id="1")

    for name in ("Alice Chen", "Dr. Alice Chen", "Chen, Alice", "Alice"):
        answer = await tools("event_search", actor=name)
        assert found(answer) == {ALICE.narrative, titled.narrative}, name


@pytest.mark.parametrize("tool", ["event_search", "timeline", "commitment_list"])
async def test_the_answer_says_who_was_taken_to_be_meant(
    garden: Garden, tools: ToolClient, tool: str
) -> None:
    await garden.document(ALICE, RAMAN, source_id="1")

    assert (await tools(tool, actor="chen"))["actor_names"] == ["Alice Chen"]
    assert (await tools(tool, actor="Nobody Here"))["actor_names"] == []
    assert (await tools(tool))["actor_names"] is None


async def test_an_alias_that_two_people_have_is_ambiguous(
    garden: Garden, tools: ToolClient
) -> None:
    one = await garden.document(RAMAN, source_id="1")
    other = await garden.document(Event("Pat Rice sang.", actors=("Pat Rice",)), source_id="2")
    garden.alias(one, "Priya Raman", "PR")
    garden.alias(other, "Pat Rice", "PR")

    answer = await tools("event_search", actor="PR")

    assert {person["name"] for person in answer["actor_candidates"]} == {"Priya Raman", "Pat Rice"}


async def test_a_first_name_of_one_person_only_finds_them(
    garden: Garden, tools: ToolClient
) -> None:
    await garden.document(ALICE, RAMAN, source_id="1")

    for name in ("Alice", "alice", "CHEN", "chen"):
        assert found(await tools("event_search", actor=name)) == {ALICE.narrative}


async def test_a_part_of_a_word_is_no_name(garden: Garden, tools: ToolClient) -> None:
    await garden.document(ALICE, source_id="1")

    for name in ("Ali", "lice", "C", "Alice Ch", "%", "_lice", ".*", "[a-z]+"):
        assert found(await tools("event_search", actor=name)) == set(), name


async def test_a_bare_name_among_full_ones_is_not_one_of_them(
    garden: Garden, tools: ToolClient
) -> None:
    """A person called just "Priya" may be either Priya, or a third."""
    bare = Event("Priya called.", actors=("Priya",))
    await garden.document(bare, RAMAN, source_id="1")

    answer = await tools("event_search", actor="Priya")

    assert {person["name"] for person in answer["actor_candidates"]} == {"Priya", "Priya Raman"}
    people = await tools("stakeholder_map")
    assert {person["name"] for person in people["stakeholders"]} == {"Priya", "Priya Raman"}


@pytest.mark.parametrize(
    ("actor", "asked"),
    [
        ("Tomás Herrera", "tomás"),
        ("Tomás Herrera", "TOMÁS  HERRERA"),
        ("王 小明", "小明"),
        ("Anne-Marie O'Neill", "o'neill"),
        ("Anne-Marie O'Neill", "Anne-Marie"),
        ("J. R. Smith", "smith"),
    ],
)
async def test_names_of_all_kinds(
    garden: Garden, tools: ToolClient, actor: str, asked: str
) -> None:
    event = Event("Something was done.", actors=(actor,))
    await garden.document(event, source_id="1")

    assert found(await tools("event_search", actor=asked)) == {event.narrative}


async def test_a_name_whose_events_are_gone_is_no_candidate(
    garden: Garden, tools: ToolClient, sql: psycopg.Connection
) -> None:
    await garden.document(RAMAN, source_id="1")
    gone = await garden.document(SHAH, source_id="2")
    await tools("artifact_delete", artifact_uid=gone.uid)

    answer = await tools("event_search", actor="Priya")

    assert answer["actor_candidates"] is None
    assert found(answer) == {RAMAN.narrative}


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=300)
)
async def test_any_name_resolves_without_an_error(runtime: Runtime, name: str) -> None:
    async with runtime.database.session() as session:
        resolution = await resolve_name(session, name)

    assert resolution.keys or resolution.candidates
