"""event_search with few events: what the documents say comes with it."""

from memory_core.search.similarity import NO_TEXT_HAS_A_WORD
from tests.integration.searched_text import note
from tests.tool_client import ToolClient

KITTENS = "The kittens sleep in the boiler room because it is warm there."


async def test_a_question_about_a_stored_document_never_comes_back_empty(
    tools: ToolClient,
) -> None:
    stored = await note(tools, KITTENS, source_id="1", title="Kittens")

    answer = await tools("event_search", query="Where do the kittens sleep?")

    assert answer["total"] == 0
    [passage] = answer["passages"]
    assert passage["artifact_uid"] == stored["artifact_uid"]
    assert KITTENS[passage["start_char"] : passage["end_char"]] == passage["text"]


async def test_passages_pass_the_filters_that_documents_know(tools: ToolClient) -> None:
    await note(tools, KITTENS, source_id="1")

    answer = await tools("event_search", query="kittens", source_system="elsewhere")

    assert answer["passages"] is None


async def test_without_a_query_there_are_events_alone(tools: ToolClient) -> None:
    await note(tools, KITTENS, source_id="1")

    assert (await tools("event_search"))["passages"] is None


async def test_where_many_events_match_there_are_no_passages(searched: ToolClient) -> None:
    await note(searched, "pricing " * 20, source_id="pricing")

    answer = await searched("event_search", query="-unicorns")

    assert answer["total"] >= 5
    assert answer["passages"] is None


async def test_passages_that_have_no_word_of_the_query_are_offered_as_such(
    tools: ToolClient,
) -> None:
    await note(tools, KITTENS, source_id="1")

    answer = await tools("event_search", query="zzzqqq")

    assert (answer["events"], len(answer["passages"])) == ([], 1)
    assert answer["note"] == NO_TEXT_HAS_A_WORD
