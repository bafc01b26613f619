"""Canonicalisation: every occurrence told once, nothing invented, nothing lost."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.events.event_ids import event_id
from memory_core.extraction import canonical as canonical_module
from memory_core.extraction.canonical import canonicalise
from memory_core.extraction.ledger import Ledger
from memory_core.extraction.model import (
    Actor,
    ActorRole,
    CanonicalEvent,
    Category,
    ChunkEvent,
    Entity,
    EntityType,
    Evidence,
    Subject,
    SubjectType,
)

DECISION, COMMITMENT = Category.DECISION, Category.COMMITMENT
OWNER, REVIEWER = ActorRole.OWNER, ActorRole.REVIEWER
LAUNCH = "The team decided to launch the beta in May."
LAUNCH_AGAIN = "The team decided to launch the beta in May, after the audit."
PARKING = "Visitors park behind the warehouse."


def event(
    id_: str,
    start: int,
    end: int,
    *,
    chunk: int = 0,
    category: Category = DECISION,
    narrative: str = LAUNCH,
    subject: str = "beta",
    actors: tuple[Actor, ...] = (),
    confidence: float = 0.5,
    time: datetime | None = None,
) -> ChunkEvent:
    quote = "x" * (end - start)
    return ChunkEvent(
        id=id_,
        chunk_index=chunk,
        category=category,
        subject=Subject(SubjectType.OBJECT, subject),
        narrative=narrative,
        confidence=confidence,
        evidence=Evidence(start, end, quote, "exact", f"chunk {chunk}"),
        actors=actors,
        event_time=time,
    )


class Told:
    """A grouper that says what it is told to say, and remembers what it was asked."""

    version = "test"

    def __init__(self, *groups: list[str]) -> None:
        self.groups = [list(group) for group in groups]
        self.asked: list[list[str]] = []
        self.max_calls = 0

    async def group(
        self,
        blocks: list[list[ChunkEvent]],
        *,
        max_calls: int,
        answers_since: datetime | None = None,
        ledger: Ledger,
    ) -> list[list[str]]:
        self.asked = [sorted(event.id for event in block) for block in blocks]
        self.max_calls = max_calls
        return self.groups


async def canonical(
    events: list[ChunkEvent],
    *,
    grouper: Told | None = None,
    chunks: int = 2,
    entities: tuple[Entity, ...] = (),
) -> list[CanonicalEvent]:
    return await canonicalise(
        events, entities, chunks=chunks, grouper=grouper, ledger=Ledger(uuid4(), 1)
    )


def members(events: list[CanonicalEvent]) -> list[set[str]]:
    return [set(event.members) for event in events]


# --- what code merges by itself ---------------------------------------------------------------


async def test_the_same_words_found_in_two_overlapping_chunks_are_one_event() -> None:
    made = await canonical([event("c0e0", 10, 40, chunk=0), event("c1e0", 10, 40, chunk=1)])

    assert members(made) == [{"c0e0", "c1e0"}]
    assert [evidence.chunk_id for evidence in made[0].evidence] == ["chunk 0"]


async def test_spans_that_share_four_fifths_are_the_same_sentence() -> None:
    made = await canonical([event("c0e0", 10, 20), event("c1e0", 11, 20, chunk=1)])

    assert members(made) == [{"c0e0", "c1e0"}]
    assert [(item.start_char, item.end_char) for item in made[0].evidence] == [
        (10, 20),
        (11, 20),
    ]


async def test_spans_that_share_less_stay_apart() -> None:
    made = await canonical([event("c0e0", 10, 20), event("c1e0", 13, 23, chunk=1)])

    assert members(made) == [{"c0e0"}, {"c1e0"}]


async def test_two_categories_of_one_span_are_two_events() -> None:
    made = await canonical([event("c0e0", 10, 40), event("c0e1", 10, 40, category=COMMITMENT)])

    assert {item.category for item in made} == {DECISION, COMMITMENT}


ALICE, BOB = (Actor(name, ActorRole.OWNER) for name in ("Alice Chen", "Bob Roth"))


def promise(id_: str, who: Actor, what: str, chunk: int = 0) -> ChunkEvent:
    return replace(
        event(id_, 0, 60, chunk=chunk),
        actors=(who,),
        narrative=f"{who.ref} committed to {what}.",
        subject=Subject(SubjectType.OBJECT, what),
    )


async def test_two_promises_in_one_sentence_are_two_events_with_ids_of_their_own() -> None:
    both = [promise("c0e0", ALICE, "write the docs"), promise("c0e1", BOB, "test the release")]

    made = await canonical(both, chunks=1)

    assert members(made) == [{"c0e0"}, {"c0e1"}]
    assert [[actor.ref for actor in told.actors] for told in made] == [
        ["Alice Chen"],
        ["Bob Roth"],
    ]
    ids = {event_id("uid", "rev", told) for told in made}
    assert len(ids) == 2
    again = await canonical(both[::-1], chunks=1)
    assert {event_id("uid", "rev", told) for told in again} == ids, "whatever their order"


async def test_two_promises_in_one_sentence_of_two_chunks_are_still_two_events() -> None:
    made = await canonical(
        [
            promise("c0e0", ALICE, "write the docs"),
            promise("c0e1", BOB, "test the release"),
            promise("c1e0", BOB, "test the new release", chunk=1),
            promise("c1e1", Actor("Alice", ActorRole.OWNER), "write the docs", chunk=1),
        ]
    )

    assert members(made) == [{"c0e0", "c1e1"}, {"c0e1", "c1e0"}]


async def test_a_sentence_that_one_chunk_gives_to_alice_and_the_next_to_bob_is_two_events() -> None:
    made = await canonical(
        [
            promise("c0e0", ALICE, "write the docs"),
            promise("c1e0", BOB, "test the release", chunk=1),
        ]
    )

    assert members(made) == [{"c0e0"}, {"c1e0"}]


async def test_what_one_chunk_says_twice_in_the_same_words_is_one_event() -> None:
    made = await canonical(
        [promise("c0e0", ALICE, "write the docs"), promise("c0e1", ALICE, "write the docs")]
    )

    assert members(made) == [{"c0e0", "c0e1"}]


async def test_a_long_document_does_not_compare_all_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0
    plausible = canonical_module.plausible

    def counted(a: ChunkEvent, b: ChunkEvent) -> bool:
        nonlocal compared
        compared += 1
        return plausible(a, b)

    monkeypatch.setattr(canonical_module, "plausible", counted)
    many = [
        replace(
            event(f"c{n}e0", 100 * n, 100 * n + 60, chunk=n),
            narrative=f"The team decided to change part {n // 2} of the plan to kind{n // 2}.",
        )
        for n in range(3000)
    ]
    grouper = Told()

    await canonical(many, grouper=grouper, chunks=3000)

    assert compared < 20 * len(many)
    assert sorted(grouper.asked) == sorted(
        sorted([f"c{n}e0", f"c{n + 1}e0"]) for n in range(0, 3000, 2)
    ), "and yet finds every pair"


async def test_a_span_found_in_chunks_nine_and_ten_is_evidence_from_chunk_nine() -> None:
    made = await canonical(
        [event("c10e0", 10, 40, chunk=10), event("c9e0", 10, 40, chunk=9)], chunks=11
    )

    assert [evidence.chunk_id for evidence in made[0].evidence] == ["chunk 9"]


async def test_events_come_in_the_order_of_their_evidence() -> None:
    made = await canonical([event("c1e0", 70, 80, chunk=1), event("c0e0", 5, 9)])

    assert [item.members for item in made] == [("c0e0",), ("c1e0",)]


# --- what the grouper is asked ----------------------------------------------------------------


async def test_only_plausible_duplicates_are_asked_about() -> None:
    grouper = Told()
    await canonical(
        [
            event("c0e0", 0, 9, chunk=0),
            event("c1e0", 50, 60, chunk=1, narrative=LAUNCH_AGAIN),
            event("c1e1", 70, 80, chunk=1, narrative=PARKING, subject="parking"),
        ],
        grouper=grouper,
    )

    assert grouper.asked == [["c0e0", "c1e0"]]


async def test_the_same_subject_and_actor_make_less_similar_words_plausible() -> None:
    alice = (Actor("Alice", OWNER),)
    narrative = "Alice promised the report for Friday."
    retold = "Alice will send a report by Friday at noon."
    same, other = Told(), Told()
    for grouper, ref in ((same, "report"), (other, "invoice")):
        await canonical(
            [
                event("c0e0", 0, 9, narrative=narrative, subject="Report", actors=alice),
                event("c1e0", 50, 60, chunk=1, narrative=retold, subject=ref, actors=alice),
            ],
            grouper=grouper,
        )

    assert same.asked == [["c0e0", "c1e0"]]
    assert other.asked == []


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(event("c0e1", 50, 60, chunk=0), id="of the same chunk"),
        pytest.param(event("c1e0", 50, 60, chunk=1, category=COMMITMENT), id="another category"),
        pytest.param(event("c1e0", 50, 60, chunk=1, narrative=PARKING), id="other words"),
        pytest.param(
            event("c1e0", 50, 60, chunk=1, time=datetime(2026, 5, 2, tzinfo=UTC)), id="another day"
        ),
        pytest.param(event("c1e0", 0, 9, chunk=1), id="merged by its span already"),
    ],
)
async def test_what_is_no_plausible_duplicate_is_not_asked_about(second: ChunkEvent) -> None:
    grouper = Told([["c0e0", second.id]][0])
    first = event("c0e0", 0, 9, time=datetime(2026, 5, 1, tzinfo=UTC))
    made = await canonical([first, second], grouper=grouper)

    assert grouper.asked == []
    assert sum(len(item.members) for item in made) == 2


async def test_a_one_chunk_revision_asks_nothing() -> None:
    grouper = Told(["c0e0", "c0e1"])
    made = await canonical([event("c0e0", 0, 9), event("c0e1", 50, 60)], grouper=grouper, chunks=1)

    assert grouper.asked == []
    assert members(made) == [{"c0e0"}, {"c0e1"}]


async def test_what_code_has_merged_is_asked_about_once_by_its_most_detailed_member() -> None:
    grouper = Told()
    await canonical(
        [
            event("c0e0", 0, 9, chunk=0),
            event("c1e0", 0, 9, chunk=1, narrative=LAUNCH_AGAIN),
            event("c2e0", 90, 99, chunk=2),
        ],
        grouper=grouper,
        chunks=3,
    )

    assert grouper.asked == [["c1e0", "c2e0"]]


@pytest.mark.parametrize(("chunks", "calls"), [(2, 1), (10, 1), (19, 1), (20, 2), (35, 3)])
async def test_a_document_may_cost_one_question_per_ten_chunks(chunks: int, calls: int) -> None:
    grouper = Told()
    await canonical(
        [event("c0e0", 0, 9), event("c1e0", 50, 60, chunk=1)], grouper=grouper, chunks=chunks
    )

    assert grouper.max_calls == calls


# --- what its answer may do -------------------------------------------------------------------

THREE = [
    event("c0e0", 0, 9, chunk=0),
    event("c1e0", 50, 60, chunk=1, narrative=LAUNCH_AGAIN),
    event("c2e0", 90, 99, chunk=2),
]
OTHERS = [
    event("c2e1", 100, 110, chunk=2, category=COMMITMENT),
    event("c1e1", 120, 130, chunk=1, category=COMMITMENT, narrative=LAUNCH_AGAIN),
    event("c2e2", 140, 150, chunk=2, narrative=PARKING, subject="parking"),
]


async def test_a_group_becomes_one_event() -> None:
    made = await canonical(THREE, grouper=Told(["c0e0", "c2e0"]), chunks=3)

    assert members(made) == [{"c0e0", "c2e0"}, {"c1e0"}]


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param([["c0e0", "c7e7"], ["evt", "c1e0"]], id="ids that do not exist"),
        pytest.param([["c0e0", "c1e0"], ["c1e0", "c0e0"]], id="ids in two groups"),
        pytest.param([["c0e0", "c2e1"]], id="two categories in one group"),
        pytest.param([["c0e0", "c1e0", "c2e1"]], id="two and one of another category"),
        pytest.param([["c0e0", "c2e2"]], id="an id that was not in the question"),
        pytest.param([["c0e0"], [], ["c1e0", "c1e0"]], id="groups of fewer than two"),
    ],
)
async def test_an_answer_that_makes_no_sense_merges_nothing(groups: list[list[str]]) -> None:
    made = await canonical([*THREE, *OTHERS], grouper=Told(*groups), chunks=3)

    assert sorted(map(len, members(made))) == [1] * 6


async def test_an_id_in_two_groups_leaves_the_others_together() -> None:
    grouper = Told(["c0e0", "c1e0", "c2e0"], ["c2e0", "c2e0"])
    made = await canonical(THREE, grouper=grouper, chunks=3)

    assert members(made) == [{"c0e0", "c1e0"}, {"c2e0"}]


# --- how events are merged --------------------------------------------------------------------


async def test_a_merged_event_unites_what_its_members_know() -> None:
    day = datetime(2026, 5, 1, tzinfo=UTC)
    short = event("c0e0", 0, 9, actors=(Actor("Al", OWNER), Actor("Bob", OWNER)), confidence=0.9)
    long = event(
        "c1e0",
        50,
        60,
        chunk=1,
        narrative=LAUNCH_AGAIN,
        subject="the beta",
        actors=(Actor("ALICE CHEN", REVIEWER), Actor("Carol", REVIEWER)),
        confidence=0.4,
    )
    timed = event("c2e0", 90, 99, chunk=2, time=day)
    alice = Entity("Alice Chen", EntityType.PERSON, ("Al",))
    [merged] = await canonical(
        [long, timed, short], grouper=Told(["c0e0", "c1e0", "c2e0"]), chunks=3, entities=(alice,)
    )

    assert merged == CanonicalEvent(
        category=DECISION,
        subject=Subject(SubjectType.OBJECT, "the beta"),
        narrative=LAUNCH_AGAIN,
        confidence=0.9,
        evidence=(short.evidence, long.evidence, timed.evidence),
        members=("c0e0", "c1e0", "c2e0"),
        actors=(Actor("Alice Chen", OWNER), Actor("Bob", OWNER), Actor("Carol", REVIEWER)),
        event_time=day,
    )


async def test_an_alias_of_two_people_names_neither() -> None:
    entities = (
        Entity("Alice Chen", EntityType.PERSON, ("Al",)),
        Entity("Albert Roth", EntityType.PERSON, ("Al",)),
    )
    actors = (Actor("Al", OWNER), Actor("Alice Chen", OWNER))
    [found] = await canonical([event("c0e0", 0, 9, actors=actors)], entities=entities)

    assert found.actors == actors


# --- whatever comes in ------------------------------------------------------------------------

NARRATIVES = st.sampled_from([LAUNCH, LAUNCH_AGAIN, PARKING, "Bob left.", "Bob left early."])
ACTORS = st.lists(
    st.builds(Actor, st.sampled_from(["Al", "alice chen", "Bob"]), st.sampled_from(ActorRole)),
    max_size=3,
).map(tuple)
ENTITIES = st.lists(
    st.builds(
        Entity,
        st.sampled_from(["Alice Chen", "Bob", "Al"]),
        st.just(EntityType.PERSON),
        st.lists(st.sampled_from(["Al", "Bob", "boss"]), max_size=2).map(tuple),
    ),
    max_size=3,
).map(tuple)


@st.composite
def chunk_events(draw: st.DrawFn) -> list[ChunkEvent]:
    drawn = []
    for number in range(draw(st.integers(0, 12))):
        start, chunk = draw(st.integers(0, 60)), draw(st.integers(0, 3))
        drawn.append(
            event(
                f"c{chunk}e{number}",
                start,
                start + draw(st.integers(1, 20)),
                chunk=chunk,
                category=draw(st.sampled_from([DECISION, COMMITMENT])),
                narrative=draw(NARRATIVES),
                subject=draw(st.sampled_from(["beta", "Beta", "parking"])),
                actors=draw(ACTORS),
                confidence=draw(st.floats(0, 1)),
                time=draw(st.none() | st.just(datetime(2026, 5, 1, tzinfo=UTC))),
            )
        )
    return draw(st.permutations(drawn))


@settings(max_examples=200, deadline=None)
@given(data=st.data(), events=chunk_events(), entities=ENTITIES, chunks=st.integers(1, 40))
async def test_nothing_is_invented_and_nothing_is_lost(
    data: st.DataObject, events: list[ChunkEvent], entities: tuple[Entity, ...], chunks: int
) -> None:
    ids = [item.id for item in events]
    named = st.sampled_from([*ids, "c9e9", "", "groups"])
    answer = data.draw(st.lists(st.lists(named, max_size=5), max_size=6))
    made = await canonical(events, grouper=Told(*answer), chunks=chunks, entities=entities)

    by_id = {item.id: item for item in events}
    assert sorted(id_ for item in made for id_ in item.members) == sorted(ids)
    for merged in made:
        parts = [by_id[id_] for id_ in merged.members]
        assert {part.category for part in parts} == {merged.category}
        assert set(merged.evidence) <= {part.evidence for part in parts}
        assert spans(merged.evidence) == spans(part.evidence for part in parts)
        assert len(merged.evidence) == len(spans(merged.evidence))
        assert (merged.narrative, merged.subject) in {(p.narrative, p.subject) for p in parts}
        assert len(merged.narrative) == max(len(part.narrative) for part in parts)
        assert merged.confidence == max(part.confidence for part in parts)
        refs = {actor.ref for part in parts for actor in part.actors}
        assert {actor.ref for actor in merged.actors} <= refs | {item.name for item in entities}
        assert bool(merged.actors) == bool(refs)
    assert len({event_id("uid", "rev", item) for item in made}) == len(made)


def spans(evidence: object) -> set[tuple[int, int]]:
    return {(item.start_char, item.end_char) for item in evidence}  # type: ignore[attr-defined]
