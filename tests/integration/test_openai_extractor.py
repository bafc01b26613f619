"""The extractor behind a chat model: what it asks, and every way an answer can go wrong."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from memory_core.database import Database
from memory_core.errors import ErrorCode, ProviderFault
from memory_core.extraction import prompts
from memory_core.extraction.cache import AnswerCache
from memory_core.extraction.chat import ChatModel
from memory_core.extraction.model import (
    Category,
    ChunkEvent,
    DocumentContext,
    Evidence,
    ModelCall,
    Proposal,
    Subject,
    SubjectType,
)
from memory_core.extraction.openai import OpenAIExtractor, OpenAIGrouper, describe
from memory_core.extraction.proof import prove
from memory_core.extraction.schema import EXTRACTION_SCHEMA, MERGE_SCHEMA
from memory_core.settings import Settings
from memory_core.text.chunk import Chunk
from tests.pipeline_client import API_KEY, with_openai
from tests.scripted_provider import (
    Answer,
    AuthError,
    DropConnection,
    Fault,
    InvalidJson,
    RateLimit,
    RawBody,
    Refusal,
    RefusesSchema,
    ScriptedProvider,
    ServerError,
    Timeout,
    Truncated,
    UnknownModel,
)

TEXT = "Decision: we launch the beta in May.\nBob Roth will test it. Nobody was blocked by rain."
NOTHING: dict[str, Any] = {"events": [], "entities": []}
CONTEXT = DocumentContext(
    artifact_type="note",
    title="Kick-off",
    author="Alice Chen",
    participants=("Alice Chen", "Bob Roth"),
    date=datetime(2026, 3, 13, tzinfo=UTC),
)


class Asking:
    """An extractor in use, with what it logged."""

    def __init__(self, extractor: OpenAIExtractor, grouper: OpenAIGrouper) -> None:
        self.extractor, self.grouper = extractor, grouper
        self.calls: list[ModelCall] = []

    async def __call__(self, text: str = TEXT, *, fresh: bool = False) -> Proposal:
        chunk = Chunk(0, 0, len(text), text, len(text) // 4)
        return await self.extractor.extract(chunk, CONTEXT, fresh=fresh, log=self.calls.append)

    async def fault(self, text: str = TEXT) -> ProviderFault:
        with pytest.raises(ProviderFault) as caught:
            await self(text)
        return caught.value

    @property
    def outcomes(self) -> list[str]:
        return [call.outcome for call in self.calls]


Opened = Callable[..., Any]


@pytest.fixture(scope="module")
async def stores(services: Settings) -> AsyncIterator[Database]:
    database = Database(services.dsn)
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def opened(
    services: Settings, stores: Database, provider: ScriptedProvider
) -> AsyncIterator[Opened]:
    """Opens extractors over an empty cache."""
    async with stores.session() as session:
        await session.connection.execute("DELETE FROM extraction_cache")
    chats: list[ChatModel] = []

    def open_(**changes: Any) -> Asking:
        chat = ChatModel(with_openai(services, provider, **changes))
        chats.append(chat)
        return Asking(OpenAIExtractor(chat, AnswerCache(stores)), OpenAIGrouper(chat))

    yield open_
    for chat in chats:
        await chat.close()


def completion(message: dict[str, Any], *, finish_reason: str = "stop", **rest: Any) -> RawBody:
    """An answer in the protocol's shape, with whatever can be escaped in JSON."""
    choice = {"index": 0, "finish_reason": finish_reason, "message": message}
    return RawBody(json.dumps({"choices": [choice], **rest}))


def narratives(proposal: Proposal) -> list[str]:
    return [event.narrative for event in proposal.events]


# --- the question -----------------------------------------------------------------------------


async def test_a_question_is_the_prompt_the_context_and_the_bare_chunk(
    opened: Opened, provider: ScriptedProvider
) -> None:
    await opened(openai_event_model="some-model")()

    [call] = provider.chats
    assert call.body["model"] == "some-model"
    assert call.body["temperature"] == 0
    assert call.body["messages"] == [
        {"role": "system", "content": prompts.load("extract").text},
        {"role": "user", "content": describe(CONTEXT)},
        {"role": "user", "content": TEXT},
    ]


def test_the_context_tells_what_is_known_of_the_document() -> None:
    assert describe(CONTEXT).splitlines() == [
        "Document type: note",
        "Title: Kick-off",
        "Author: Alice Chen",
        "Participants: Alice Chen, Bob Roth",
        "Date: 2026-03-13 (Friday)",
    ]
    assert describe(DocumentContext("chat")) == "Document type: chat"


async def test_the_answer_is_asked_for_by_a_strict_schema(
    opened: Opened, provider: ScriptedProvider
) -> None:
    await opened()()

    assert provider.chats[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "chunk_extraction", "strict": True, "schema": EXTRACTION_SCHEMA},
    }


@pytest.mark.parametrize("schema", [EXTRACTION_SCHEMA, MERGE_SCHEMA])
def test_a_strict_schema_requires_every_property_and_allows_no_other(schema: Any) -> None:
    def objects(node: Any) -> list[Any]:
        if isinstance(node, dict):
            inner = [found for value in node.values() for found in objects(value)]
            return [node, *inner] if node.get("type") == "object" else inner
        return []

    found = objects(schema)
    assert found
    for node in found:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])


async def test_the_answer_becomes_a_proposal(opened: Opened) -> None:
    extract = opened()
    proposal = await extract()

    assert [event.category.value for event in proposal.events] == [
        "Decision",
        "Commitment",
        "QualityRisk",
    ]
    assert [entity.name for entity in proposal.entities] == ["Bob Roth"]
    assert proposal.refusal is None
    assert not proposal.from_cache


async def test_usage_and_latency_of_a_call_are_logged(opened: Opened) -> None:
    extract = opened(openai_event_model="some-model")
    await extract()

    [call] = extract.calls
    assert (call.kind, call.model, call.outcome) == ("extract", "some-model", "ok")
    assert call.prompt_tokens > 0
    assert call.completion_tokens > 0
    assert call.latency_ms > 0


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": "many"}])
async def test_a_server_that_counts_no_tokens_is_good_enough(
    opened: Opened, provider: ScriptedProvider, usage: Any
) -> None:
    provider.enqueue(completion({"content": json.dumps(NOTHING)}, usage=usage))
    extract = opened()
    await extract()

    [call] = extract.calls
    assert (call.prompt_tokens, call.completion_tokens, call.cached_tokens) == (0, 0, 0)


# --- servers without schemas ------------------------------------------------------------------


async def test_a_server_that_refuses_schemas_is_asked_for_plain_json_from_then_on(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.refuses_schema = True
    extract = opened()
    first, second = await extract(), await extract("Bob Roth will do it.")

    assert len(first.events) == 3
    assert len(second.events) == 1
    formats = [call.body["response_format"]["type"] for call in provider.chats]
    assert formats == ["json_schema", "json_object", "json_object"]
    system = provider.chats[1].body["messages"][0]["content"]
    assert system.startswith(prompts.load("extract").text)
    assert json.dumps(EXTRACTION_SCHEMA) in system
    assert provider.chats[1].body["messages"][-1]["content"] == TEXT


async def test_a_crowd_of_first_questions_survives_the_refusal_of_schemas(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.refuses_schema, provider.latency = True, 0.1
    extract = opened()
    proposals = await asyncio.gather(*(extract(f"Bob will do {number}.") for number in range(8)))

    assert [len(proposal.events) for proposal in proposals] == [1] * 8


async def test_another_bad_request_is_no_reason_to_give_up_schemas(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(ServerError(400))
    extract = opened()

    assert (await extract.fault()).code == ErrorCode.OPENAI_ERROR
    await extract()
    assert provider.chats[-1].body["response_format"]["type"] == "json_schema"


# --- passing faults ---------------------------------------------------------------------------


async def test_a_rate_limit_is_waited_out_within_the_call(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(RateLimit(retry_after=0.3))
    extract = opened(openai_max_retries=1)
    await extract()

    first, second = provider.chats
    assert second.time - first.time >= 0.3
    assert extract.outcomes == ["OPENAI_RATE_LIMIT", "ok"]


async def test_a_rate_limit_too_long_to_wait_for_is_left_to_the_queue(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(RateLimit(retry_after=120))
    fault = await opened(openai_max_retries=5).fault()

    assert (fault.code, fault.retry_after) == (ErrorCode.OPENAI_RATE_LIMIT, 120)
    assert len(provider.chats) == 1


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (RateLimit(retry_after=0), ErrorCode.OPENAI_RATE_LIMIT),
        (RateLimit(retry_after=None), ErrorCode.OPENAI_RATE_LIMIT),
        (Timeout(1.0), ErrorCode.OPENAI_TIMEOUT),
        (ServerError(504), ErrorCode.OPENAI_TIMEOUT),
        (ServerError(500), ErrorCode.OPENAI_CONNECTION_ERROR),
        (ServerError(503), ErrorCode.OPENAI_CONNECTION_ERROR),
        (DropConnection(), ErrorCode.OPENAI_CONNECTION_ERROR),
        (AuthError(), ErrorCode.OPENAI_AUTH_ERROR),
        (UnknownModel(), ErrorCode.OPENAI_INVALID_MODEL),
        (RawBody("<html>It works!</html>"), ErrorCode.OPENAI_ERROR),
        (RawBody('"a string"'), ErrorCode.OPENAI_ERROR),
        (RawBody("[]"), ErrorCode.OPENAI_ERROR),
        (RawBody("{}"), ErrorCode.OPENAI_ERROR),
        (RawBody('{"choices": []}'), ErrorCode.OPENAI_ERROR),
        (RawBody('{"choices": [{}]}'), ErrorCode.OPENAI_ERROR),
    ],
    ids=repr,
)
async def test_a_fault_has_its_code_and_every_try_is_logged(
    opened: Opened, provider: ScriptedProvider, fault: Fault, code: ErrorCode
) -> None:
    provider.enqueue(fault, fault)
    extract = opened(openai_timeout=0.5)
    raised = await extract.fault()

    assert raised.code == code
    assert API_KEY not in raised.message
    assert len(extract.calls) == len(provider.chats)
    assert all(call.latency_ms > 0 for call in extract.calls)
    provider.reset()
    assert len((await extract()).events) == 3, "the next attempt finds everything in order"


async def test_no_server_at_all_is_a_connection_error(
    opened: Opened, provider: ScriptedProvider
) -> None:
    extract = opened(openai_base_url="http://127.0.0.1:1/v1")

    assert (await extract.fault()).code == ErrorCode.OPENAI_CONNECTION_ERROR


@pytest.mark.parametrize("fault", [AuthError(), UnknownModel(), ServerError(400)], ids=repr)
async def test_what_another_try_cannot_cure_is_not_tried_again(
    opened: Opened, provider: ScriptedProvider, fault: Fault
) -> None:
    provider.enqueue(fault)
    await opened(openai_max_retries=3).fault()

    assert len(provider.chats) == 1


# --- answers that are no JSON -----------------------------------------------------------------

NO_ANSWERS = [
    pytest.param(InvalidJson(), id="cut off"),
    pytest.param(InvalidJson(""), id="empty"),
    pytest.param(InvalidJson("I found three events."), id="prose"),
    pytest.param(InvalidJson("[1, 2]"), id="a list"),
    pytest.param(InvalidJson("[" * 100_000), id="bottomless"),
    pytest.param(InvalidJson('{"results": []}'), id="without events"),
    pytest.param(InvalidJson('{"events": {"0": {}}}'), id="events in an object"),
]


@pytest.mark.parametrize("fault", NO_ANSWERS)
async def test_an_answer_that_is_none_is_asked_for_once_more(
    opened: Opened, provider: ScriptedProvider, fault: Fault
) -> None:
    provider.enqueue(fault)
    extract = opened()

    assert len((await extract()).events) == 3
    assert extract.outcomes == ["invalid_json", "ok"]


@pytest.mark.parametrize("fault", NO_ANSWERS)
async def test_a_second_one_is_a_failed_attempt(
    opened: Opened, provider: ScriptedProvider, fault: Fault
) -> None:
    provider.enqueue(fault, fault)
    extract = opened(openai_max_retries=5)

    assert (await extract.fault()).code == ErrorCode.INVALID_JSON_SCHEMA
    assert extract.outcomes == ["invalid_json", "invalid_json"]
    assert all(call.prompt_tokens > 0 for call in extract.calls), "it was paid for all the same"


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "\n ```json\n{}```\n"])
async def test_json_in_a_fence_is_json(
    opened: Opened, provider: ScriptedProvider, fence: str
) -> None:
    answer = json.dumps(provider.on_extract(TEXT, {}))
    provider.enqueue(InvalidJson(fence.replace("{}", answer)))
    extract = opened()

    assert len((await extract()).events) == 3
    assert extract.outcomes == ["ok"]


# --- answers that did not fit -----------------------------------------------------------------

LONG = "\n".join(f"Line {n}: Bob Roth will deliver part {n} on time." for n in range(20))


async def test_a_truncated_answer_is_asked_for_in_halves_and_joined(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(Truncated())
    extract = opened()
    proposal = await extract(LONG)

    whole, left, right = (call.body["messages"][-1]["content"] for call in provider.chats)
    assert whole == LONG == left + right
    assert left.endswith("\n"), "cut between lines"
    assert len(proposal.events) == 20
    assert [entity.name for entity in proposal.entities] == ["Bob Roth", "Bob Roth"]
    assert extract.outcomes == ["truncated", "ok", "ok"]
    assert proposal.rejections == ()


async def test_quotes_of_halves_are_proved_in_the_whole_chunk(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(Truncated(), Truncated())
    proposal = await opened()(LONG)
    proved, rejected = prove(Chunk(3, 1000, 1000 + len(LONG), LONG, 1), None, proposal.events)

    assert len(proved) == 20
    assert rejected == []
    for event in proved:
        evidence = event.evidence
        assert LONG[evidence.start_char - 1000 : evidence.end_char - 1000] == evidence.quote
    assert len({event.evidence.start_char for event in proved}) == 20


async def test_a_passage_too_small_to_halve_is_a_result_with_a_reason(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(Truncated())
    proposal = await opened()()

    assert proposal.events == ()
    assert [item.reason for item in proposal.rejections] == ["TRUNCATED"]


async def test_halves_of_which_one_never_fits_keep_what_the_other_says(
    opened: Opened, provider: ScriptedProvider
) -> None:
    def hopeless(body: Any) -> bool:
        return "Line 0:" in body["messages"][-1]["content"]

    provider.enqueue(*(Truncated(only=hopeless) for _ in range(10)))
    proposal = await opened()(LONG)

    assert 0 < len(proposal.events) < 20
    assert [item.reason for item in proposal.rejections] == ["TRUNCATED"]


@pytest.mark.parametrize("entities", [None, {}, "Bob", 3])
async def test_halves_join_whatever_they_say_of_entities(
    opened: Opened, provider: ScriptedProvider, entities: Any
) -> None:
    provider.enqueue(Truncated())
    provider.on_extract = lambda text, _: {"events": [], "entities": entities}
    proposal = await opened()(LONG)

    assert proposal.entities == ()


# --- refusals ---------------------------------------------------------------------------------


async def test_a_refusal_is_a_result_with_a_reason(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(Refusal("I would rather not."))
    extract = opened()
    proposal = await extract()

    assert proposal.events == ()
    assert proposal.refusal == "I would rather not."
    assert extract.outcomes == ["refusal"]
    assert (await extract()).refusal == proposal.refusal, "also when it is known"
    assert len(provider.chats) == 1


@pytest.mark.parametrize("reason", ["no \x00", "no \ud800", "no" * 5_000, {"no": 1}])
async def test_whatever_a_refusal_says_can_be_stored(
    opened: Opened, provider: ScriptedProvider, reason: Any
) -> None:
    provider.enqueue(completion({"content": None, "refusal": reason}))
    refusal = (await opened()()).refusal

    assert refusal is not None
    assert refusal.encode()
    assert "\x00" not in refusal
    assert len(refusal) <= 2_000


async def test_a_content_filter_refuses_as_well(opened: Opened, provider: ScriptedProvider) -> None:
    provider.enqueue(completion({"content": '{"ev'}, finish_reason="content_filter"))

    assert (await opened()()).refusal == "stopped by a content filter"


async def test_only_the_protocol_can_refuse_not_the_text_of_an_answer(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(Answer({**NOTHING, "refusal": "hacked", "truncated": True}))
    proposal = await opened()()

    assert proposal == Proposal()


# --- answers that are believed in part --------------------------------------------------------


def answered(**changes: Any) -> dict[str, Any]:
    event = {
        "category": "Decision",
        "subject": {"type": "object", "ref": "beta"},
        "actors": [],
        "event_time": None,
        "narrative": "A decision.",
        "evidence": {"quote": "we launch the beta in May", "start_char": 0, "end_char": 9},
        "confidence": 0.5,
    }
    return {**event, **changes}


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (answered(category="Gossip"), "category"),
        (answered(actors=[{"ref": "Bob", "role": "king"}]), "actors.0.role"),
        (answered(event_time="soon"), "event_time"),
        (answered(confidence=float("nan")), "confidence"),
        (answered(confidence=1e400), "confidence"),
        (answered(narrative=""), "narrative"),
        (answered(narrative="a\x00b"), "narrative"),
        (answered(narrative="a\ud800b"), "narrative"),
        (answered(evidence={"quote": "we \udc00 launch"}), "evidence.quote"),
    ],
    ids=str,
)
async def test_a_faulty_event_costs_itself_now_and_when_it_is_known(
    opened: Opened, provider: ScriptedProvider, bad: dict[str, Any], field: str
) -> None:
    good = answered(narrative="A good one.")
    provider.enqueue(Answer({"events": [bad, good], "entities": []}))
    extract = opened()
    first, known = await extract(), await extract()

    assert known.from_cache
    for proposal in (first, known):
        assert narratives(proposal) == ["A good one."]
        [rejected] = proposal.rejections
        assert rejected.reason == "INVALID_FIELD"
        assert rejected.detail.startswith(field)


# --- the cache --------------------------------------------------------------------------------


async def test_what_is_known_is_not_asked_for_again(
    opened: Opened, provider: ScriptedProvider
) -> None:
    first = await opened()()
    second = await opened()()

    assert (first.from_cache, second.from_cache) == (False, True)
    assert (first.events, first.entities) == (second.events, second.entities)
    assert len(provider.chats) == 1


async def test_fresh_asks_again_and_is_what_is_known_from_then_on(
    opened: Opened, provider: ScriptedProvider
) -> None:
    extract = opened()
    await extract()
    provider.enqueue(Answer(NOTHING))

    assert narratives(await extract(fresh=True)) == []
    assert narratives(await extract()) == []
    assert len(provider.chats) == 2


async def test_another_model_is_asked_for_itself(
    opened: Opened, provider: ScriptedProvider
) -> None:
    await opened(openai_event_model="one")()
    await opened(openai_event_model="another")()

    assert [call.body["model"] for call in provider.chats] == ["one", "another"]


async def test_another_prompt_is_asked_for_itself(
    opened: Opened, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    await opened()()
    shipped = prompts.load("extract")
    newer = prompts.Prompt("extract", shipped.number + 1, shipped.text + " Be brief.")
    monkeypatch.setattr(prompts, "load", lambda name: newer)
    await opened()()

    assert [call.body["messages"][0]["content"] for call in provider.chats] == [
        shipped.text,
        newer.text,
    ]


async def test_a_failed_call_leaves_nothing_behind(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(ServerError())
    extract = opened()
    await extract.fault()

    assert not (await extract()).from_cache


async def test_who_asks_the_same_at_once_shares_one_call(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.latency = 0.1
    extract = opened()
    proposals = await asyncio.gather(*(extract() for _ in range(10)))

    assert len(provider.chats) == 1
    assert len({proposal.events for proposal in proposals}) == 1
    assert sum(proposal.from_cache for proposal in proposals) == 9


async def test_who_gives_up_takes_the_answer_from_nobody_else(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.latency = 0.3
    extract = opened()
    asker = asyncio.create_task(extract())
    sharers = [asyncio.create_task(extract()) for _ in range(3)]
    await until(lambda: provider.in_flight == 1)
    asker.cancel()

    for proposal in await asyncio.gather(*sharers):
        assert len(proposal.events) == 3
    assert asker.cancelled()


async def test_a_call_that_everybody_gave_up_is_ended(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.latency = 0.5
    extract = opened()
    askers = [asyncio.create_task(extract()) for _ in range(3)]
    await until(lambda: provider.in_flight == 1)
    for asker in askers:
        asker.cancel()
    await asyncio.gather(*askers, return_exceptions=True)
    provider.latency = 0.0

    assert len((await extract()).events) == 3, "and somebody else may ask"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


# --- calls in flight --------------------------------------------------------------------------


async def test_no_more_calls_are_in_flight_than_allowed(
    opened: Opened, provider: ScriptedProvider
) -> None:
    await until(lambda: provider.in_flight == 0)
    provider.reset()
    provider.latency = 0.05
    extract = opened(extract_concurrency=4)
    await asyncio.gather(*(extract(f"Bob will do {number}.") for number in range(16)))

    assert provider.peak_in_flight == 4
    assert len(provider.chats) == 16


async def test_who_waits_for_another_try_holds_up_nobody(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(RateLimit(retry_after=1.0, only=lambda body: "limited" in str(body)))
    extract = opened(extract_concurrency=1, openai_max_retries=1)
    limited = asyncio.create_task(extract("Bob will be limited."))
    await until(lambda: len(extract.calls) == 1)
    await extract("Bob will be quick.")

    assert not limited.done()
    assert len((await limited).events) == 1


# --- the grouper ------------------------------------------------------------------------------


def candidate(id_: str, narrative: str = "Bob did it.") -> ChunkEvent:
    return ChunkEvent(
        id=id_,
        chunk_index=0,
        category=Category.EXECUTION,
        subject=Subject(SubjectType.OBJECT, "it"),
        narrative=narrative,
        confidence=0.5,
        evidence=Evidence(0, 3, "Bob", "exact", None),
        event_time=datetime(2026, 5, 1, tzinfo=UTC),
    )


async def grouped(extract: Asking, sizes: list[int], max_calls: int = 10) -> list[list[str]]:
    blocks = [
        [candidate(f"b{block}e{number}") for number in range(size)]
        for block, size in enumerate(sizes)
    ]
    return await extract.grouper.group(blocks, max_calls=max_calls, log=extract.calls.append)


async def test_the_grouper_gives_candidates_and_gets_ids(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.on_merge = lambda events, _: {
        "groups": [{"members": [event["id"] for event in events], "narrative": None}]
    }
    extract = opened()

    assert await grouped(extract, [2]) == [["b0e0", "b0e1"]]
    [call] = provider.chats
    system, question = call.body["messages"]
    assert system["content"] == prompts.load("merge").text
    assert json.loads(question["content"])[0] == {
        "id": "b0e0",
        "category": "Execution",
        "subject": "it",
        "actors": [],
        "time": "2026-05-01T00:00:00+00:00",
        "narrative": "Bob did it.",
    }
    assert call.body["response_format"]["json_schema"]["name"] == "event_merge"
    assert [call.kind for call in extract.calls] == ["merge"]


@pytest.mark.parametrize(
    ("sizes", "questions"),
    [([2, 3], [5]), ([30, 30, 2], [60, 2]), ([200], [60]), ([2] * 40, [60, 20])],
)
async def test_blocks_share_questions_as_far_as_they_fit(
    opened: Opened, provider: ScriptedProvider, sizes: list[int], questions: list[int]
) -> None:
    await grouped(opened(), sizes)

    asked = [json.loads(call.body["messages"][-1]["content"]) for call in provider.chats]
    assert [len(candidates) for candidates in asked] == questions


async def test_no_more_questions_are_asked_than_allowed(
    opened: Opened, provider: ScriptedProvider
) -> None:
    await grouped(opened(), [60, 60, 60], max_calls=2)

    assert len(provider.chats) == 2


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"groups": None},
        {"groups": "b0e0"},
        {"groups": [None, 3, "x", {}, {"members": None}, {"members": "b0e0"}]},
        {"groups": [{"members": [1, None, {}]}]},
    ],
    ids=str,
)
async def test_a_grouping_of_another_shape_groups_nothing(
    opened: Opened, provider: ScriptedProvider, answer: dict[str, Any]
) -> None:
    provider.enqueue(Answer(answer))

    assert [group for group in await grouped(opened(), [2]) if group] == []


@pytest.mark.parametrize("fault", [Refusal(), Truncated()], ids=repr)
async def test_a_grouping_that_does_not_come_groups_nothing(
    opened: Opened, provider: ScriptedProvider, fault: Fault
) -> None:
    provider.enqueue(fault)

    assert await grouped(opened(), [2]) == []


async def test_the_grouper_falls_back_to_plain_json_as_well(
    opened: Opened, provider: ScriptedProvider
) -> None:
    provider.enqueue(RefusesSchema())
    extract = opened()
    await grouped(extract, [2])
    await extract()

    formats = [call.body["response_format"]["type"] for call in provider.chats]
    assert formats == ["json_schema", "json_object", "json_object"]
