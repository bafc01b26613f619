"""Whatever documents come in and whatever a model says of them: only what is proved is stored."""

import random
from typing import Any

import pytest

from memory_core.events.event_ids import event_id
from memory_core.extraction.model import MAX_QUOTE_WORDS, ActorRole, Category, SubjectType
from memory_core.index.generation import CollectionName
from memory_core.queue.answers import Answers
from memory_core.runtime import Runtime
from memory_core.search.names import resolve_name
from tests.pipeline_client import SMALL_CHUNKS, Pipeline, with_openai
from tests.scripted_provider import (
    DropConnection,
    Fault,
    InvalidJson,
    RateLimit,
    Refusal,
    RefusesSchema,
    ScriptedProvider,
    ServerError,
    Truncated,
)

SEEDS = range(8)
INVENTED = "FABRICATED"
OTHER_PERSON = "Bob Stone"
# No document has these letters, so no quote made of them stands anywhere.
FOREIGN = "ᚠᚢᚦᚨᚱᚲᚷᚹᚺᚾᛁᛃ"
# Odd ones among them: marks, ligatures, emoji, letters whose case folds to two, no spaces at all.
WORDS = [
    *("Alice", "Bob", "decided", "will", "the", "“report”", "—", "launch", "10,000", "naïve"),
    *("café\N{NO-BREAK SPACE}bar", "beta", "shipped", "don't", "𝒳", "👩\u200d🚀", "ﬁnal", "Straße"),
    *("and/or", "e.g.", "(maybe)", "risk:", "blocked", "İstanbul", "会議で決定", "\u2400"),
]
FAULTS: list[Fault] = [
    RateLimit(retry_after=0),
    ServerError(),
    DropConnection(),
    InvalidJson(),
    Truncated(),
    Refusal("no"),
    RefusesSchema(),
]


def document(rng: random.Random) -> str:
    """Sentences, lines and paragraphs of odd words; now and then a passage comes twice."""
    pieces: list[str] = []
    for _ in range(rng.randint(1, 25)):
        if pieces and rng.random() < 0.15:
            pieces.append(rng.choice(pieces))
        else:
            pieces.append(" ".join(rng.choices(WORDS, k=rng.randint(1, 14))))
        pieces.append(rng.choice([". ", ".\n", "\n\n", "; ", "\t", "\r\n", " \x00 "]))
    return "".join(pieces)


def span(rng: random.Random, text: str, longest: int) -> str:
    words = text.split()
    if not words:
        return text
    start = rng.randrange(len(words))
    return " ".join(words[start : start + rng.randint(1, longest)])


def foreign(rng: random.Random) -> str:
    return " ".join("".join(rng.choices(FOREIGN, k=5)) for _ in range(rng.randint(1, 9)))


def quote(rng: random.Random, text: str) -> tuple[str, bool]:
    """A quote, and whether it is invented."""
    match rng.randrange(8):
        case 0:
            return foreign(rng), True
        case 1:
            return f"{span(rng, text, 4)} {foreign(rng)} {foreign(rng)}", True
        case 2:
            return span(rng, text, 60), False
        case 3:
            return span(rng, text, 12).upper(), False
        case 4:
            return f'"{span(rng, text, 12)}"', False
        case 5:
            return f"{span(rng, text, 5)} … {span(rng, text, 5)}", False
        case _:
            return span(rng, text, 12), False


def event(rng: random.Random, text: str) -> dict[str, Any]:
    words, invented = quote(rng, text)
    proposed: dict[str, Any] = {
        "category": rng.choice(list(Category)).value,
        "subject": {"type": rng.choice(list(SubjectType)).value, "ref": rng.choice(WORDS)},
        "actors": [
            {"ref": rng.choice(["Alice", "alice", "Bob"]), "role": rng.choice(list(ActorRole))}
            for _ in range(rng.randint(0, 3))
        ],
        "event_time": rng.choice([None, "2026-05-01", "2026-05-01T10:00:00+09:00"]),
        "narrative": f"{INVENTED} story." if invented else f"Told of {words[:40]}.",
        "evidence": {
            "quote": words,
            "start_char": rng.choice([None, -5, 0, 3, 10**12, "x"]),
            "end_char": rng.choice([None, 0, 9, 10**12]),
        },
        "confidence": rng.random(),
    }
    if rng.random() < 0.15:
        field = rng.choice(list(proposed))
        proposed[field] = rng.choice([None, "", "\x00", 7, float("nan"), [], {"type": "x"}])
    return proposed


def unreliable_model(seed: int) -> Any:
    """Says the same of the same passage, true or not."""

    def extract(text: str, _: Any) -> dict[str, Any]:
        rng = random.Random(f"{seed} {text}")
        aliases = ["alice", "Bob"][: rng.randint(0, 2)]
        return {
            "events": [event(rng, text) for _ in range(rng.randint(0, 5))],
            "entities": [{"name": "Alice", "type": "person", "aliases": aliases}],
        }

    return extract


def liar(seed: int) -> Any:
    """Quotes the passage and lies in every other field, at times mixed with the passage's words."""

    def extract(text: str, _: Any) -> dict[str, Any]:
        rng = random.Random(f"{seed} {text}")

        def lie() -> str:
            return rng.choice(
                [foreign(rng), f"{span(rng, text, 3)} {foreign(rng)}", OTHER_PERSON, "Mallory Evil"]
            )

        def told() -> dict[str, Any]:
            return {
                "category": rng.choice(list(Category)).value,
                "subject": {"type": "person", "ref": lie()},
                "actors": [{"ref": lie(), "role": "owner"} for _ in range(rng.randint(1, 3))],
                "event_time": None,
                "narrative": f"{lie()} {rng.choice(['promised', 'paid', INVENTED])} {lie()}.",
                "evidence": {"quote": span(rng, text, 12), "start_char": 0, "end_char": 1},
                "confidence": 1.0,
            }

        return {
            "events": [told() for _ in range(rng.randint(1, 4))],
            "entities": [
                {"name": name, "type": "person", "aliases": [lie(), span(rng, text, 1), "Zoe"]}
                for name in (lie(), OTHER_PERSON, span(rng, text, 1))
            ],
        }

    return extract


def unreliable_grouper(seed: int) -> Any:
    def merge(candidates: Any, _: Any) -> dict[str, Any]:
        rng = random.Random(f"{seed} {candidates}")
        names = [*(item["id"] for item in candidates), "c0e0", "nonsense"]
        members = [rng.choices(names, k=rng.randint(0, 4)) for _ in range(rng.randint(0, 4))]
        return {"groups": [{"members": item, "narrative": INVENTED} for item in members]}

    return merge


async def work_until_done(pipeline: Pipeline) -> None:
    for attempt in range(20):
        await pipeline.extract(f"run-{attempt}")
        await pipeline.all_due()
        await pipeline.rows("UPDATE event_jobs SET attempts = 0 WHERE status = 'PENDING'")
        if {job["status"] for job in await pipeline.jobs()} == {"DONE"}:
            return
    raise AssertionError("some documents are never done")


async def check_everything_is_proved(pipeline: Pipeline, texts: dict[str, str]) -> None:
    rows = await pipeline.events()
    for row in rows:
        text = texts[row["artifact_uid"]]
        assert text[row["start_char"] : row["end_char"]] == row["quote"]
        assert 1 <= len(row["quote"].split()) <= MAX_QUOTE_WORDS
        assert not set(FOREIGN) & set(row["quote"] + row["narrative"])
        assert INVENTED not in row["narrative"]
    assert await pipeline.broken_evidence() == []
    assert await pipeline.events_without_evidence() == []


def check_every_event_is_traceable(pipeline: Pipeline, stored: set[str]) -> None:
    last = {o.job.artifact_uid: o.extraction for o in pipeline.outcomes if o.extraction}
    traced = set()
    for extraction in last.values():
        by_id = {item.id: item for item in extraction.chunk_events}
        members = [id_ for item in extraction.events for id_ in item.members]
        assert sorted(members) == sorted(by_id), "each chunk event is in exactly one event"
        for item in extraction.events:
            assert {by_id[id_].category for id_ in item.members} == {item.category}
            assert item.narrative in {by_id[id_].narrative for id_ in item.members}
            job = extraction.job
            traced.add(str(event_id(job.artifact_uid, job.revision_id, item)))
    assert stored == traced


@pytest.mark.parametrize("seed", SEEDS)
async def test_only_what_is_proved_is_ever_stored(
    runtime: Runtime, provider: ScriptedProvider, seed: int
) -> None:
    rng = random.Random(seed)
    changes = {} if seed % 5 == 0 else SMALL_CHUNKS
    settings = with_openai(runtime.settings, provider, **changes)
    pipeline = Pipeline(runtime, **settings.model_dump())
    provider.on_extract, provider.on_merge = unreliable_model(seed), unreliable_grouper(seed)
    texts = {}
    for number in range(4):
        content = document(rng)
        stored = await pipeline.remember(content, f"doc-{number}")
        texts[stored.artifact_uid] = content.replace("\x00", "\u2400")

    provider.enqueue(*rng.choices(FAULTS, k=rng.randint(0, 8)))
    await work_until_done(pipeline)
    first = await pipeline.events()
    await check_everything_is_proved(pipeline, texts)
    check_every_event_is_traceable(pipeline, {str(row["event_id"]) for row in first})

    # Doing it again replaces: the same events under the same ids, none doubled.
    await pipeline.extract("again", asked_by="backfill")
    again = await pipeline.events()
    assert [comparable(row) for row in again] == [comparable(row) for row in first]
    ids = {str(row["event_id"]) for row in first}
    assert await runtime.vectors.count(CollectionName.EVENTS) == len(ids)

    # An attempt that fails leaves them alone.
    provider.enqueue(*(ServerError() for _ in range(1000)))
    failed = await pipeline.extract("failing", asked_by="ui", answers=Answers.NEW)
    assert all(outcome.failure for outcome in failed)
    assert await pipeline.events() == again


@pytest.mark.parametrize("seed", range(4))
async def test_a_model_that_lies_in_every_field_stores_no_lie_and_changes_no_other_document(
    runtime: Runtime, provider: ScriptedProvider, seed: int
) -> None:
    rng = random.Random(seed)
    settings = with_openai(runtime.settings, provider, **SMALL_CHUNKS)
    pipeline = Pipeline(runtime, **settings.model_dump())
    victim = await pipeline.remember(f"{OTHER_PERSON} will pay. Zoe Park decided it.", "victim")
    await pipeline.extract("honest")
    before = await pipeline.events()
    assert [row["actors_json"] for row in before] == [[{"ref": n, "role": "owner"}] for n in
                                                      (OTHER_PERSON, "Zoe Park")]  # fmt: skip

    provider.on_extract = liar(seed)
    texts = {}
    for number in range(4):
        content = document(rng)
        stored = await pipeline.remember(content, f"doc-{number}")
        texts[stored.artifact_uid] = content.replace("\x00", "\u2400")
    await work_until_done(pipeline)

    after = await pipeline.events()
    assert [row for row in after if row["artifact_uid"] == victim.artifact_uid] == before
    lies = [row for row in after if row["artifact_uid"] in texts]
    assert lies
    for row in lies:
        text = " ".join(texts[row["artifact_uid"]].split())
        assert row["actors_json"] == []
        assert not set(FOREIGN) & set(row["narrative"] + row["subject_json"]["ref"])
        assert row["narrative"] in text
        assert row["subject_json"]["ref"] in text
    entities = await pipeline.rows("SELECT artifact_uid, name, aliases FROM revision_entity")
    for row in entities:
        if row["artifact_uid"] in texts:
            text = " ".join(texts[row["artifact_uid"]].split())
            assert all(name in text for name in (row["name"], *row["aliases"]))
    async with runtime.database.session() as session:
        for name in (OTHER_PERSON, "Zoe Park"):
            resolution = await resolve_name(session, name)
            assert (resolution.keys, resolution.candidates) == ([name.lower()], [])


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "created_at"}


async def test_the_property_is_about_something(
    runtime: Runtime, provider: ScriptedProvider
) -> None:
    """The unreliable model does tell truths and untruths, and both are met."""
    pipeline = Pipeline(runtime, **with_openai(runtime.settings, provider).model_dump())
    provider.on_extract = unreliable_model(99)
    for number in range(8):
        await pipeline.remember(document(random.Random(number)), f"doc-{number}")
    await pipeline.extract()

    kinds = {row["match_kind"] for row in await pipeline.events()}
    reasons = {
        item["reason"]
        for row in await pipeline.rows("SELECT rejections FROM extraction")
        for item in row["rejections"]
    }
    assert {"exact", "normalised"} <= kinds
    assert {"not_found", "INVALID_FIELD"} <= reasons
