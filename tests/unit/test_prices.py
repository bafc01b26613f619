"""What tokens cost, as far as the settings say so."""

import pytest

from memory_core.kernel.prices import Price, parse_prices


def test_without_prices_nothing_has_one() -> None:
    assert parse_prices("") == parse_prices(" , ") == {}


def test_prices_are_per_million_tokens() -> None:
    assert Price(2.5, 10.0).of(2_000_000, 100_000) == pytest.approx(6.0)


def test_names_of_models_may_look_like_paths_and_tags() -> None:
    prices = parse_prices("gpt-4o=2.50/10, meta/llama=3:8b=0/0 ,local=1e-2/0.5")

    assert prices == {
        "gpt-4o": Price(2.5, 10.0),
        "meta/llama=3:8b": Price(0.0, 0.0),
        "local": Price(0.01, 0.5),
    }
