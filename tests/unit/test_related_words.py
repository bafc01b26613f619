"""Words of similar meaning, as the local embedder knows them."""

import pytest

from memory_core.embedding.local import LocalEmbedder
from memory_core.search.related_words import related_lexemes


@pytest.fixture(scope="module")
async def embedder() -> LocalEmbedder:
    made = LocalEmbedder()
    await made.embed(["The model is loaded with the first text."])
    return made


async def test_a_word_leads_to_words_of_similar_meaning(embedder: LocalEmbedder) -> None:
    related = related_lexemes(embedder, "What was the price?", ["price"])

    assert "cost" in related["price"]


async def test_words_of_the_query_itself_are_not_related_words(embedder: LocalEmbedder) -> None:
    related = related_lexemes(embedder, "price and cost", ["price", "cost"])

    assert "cost" not in related.get("price", {})


async def test_names_and_numbers_lead_nowhere(embedder: LocalEmbedder) -> None:
    assert not related_lexemes(embedder, "case4711 Wexforder", ["case4711", "wexford"])


def test_nothing_is_loaded_for_it() -> None:
    assert LocalEmbedder().related("price") == []
