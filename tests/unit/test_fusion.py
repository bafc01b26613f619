"""Reciprocal rank fusion: 1 / (k + rank), summed over the rankings that found it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.search.fusion import fuse

KEYS = st.sampled_from("abcdefgh")
RANKINGS = st.dictionaries(st.sampled_from(["dense", "words", "titles"]), st.lists(KEYS))


def test_scores_are_sums_of_reciprocal_ranks() -> None:
    [first, second, third] = fuse({"dense": ["a", "b"], "words": ["b", "c"]}, constant=60)

    assert (first.key, second.key, third.key) == ("b", "a", "c")
    assert first.score == pytest.approx(1 / 62 + 1 / 61)
    assert second.score == pytest.approx(1 / 61)
    assert third.score == pytest.approx(1 / 62)


def test_each_hit_says_who_found_it() -> None:
    places = {
        hit.key: hit.sources for hit in fuse({"dense": ["a", "b"], "words": ["b"]}, constant=60)
    }

    assert places == {"a": ("dense",), "b": ("dense", "words")}


def test_the_constant_weighs_agreement_against_a_first_place() -> None:
    # "x" is first in one ranking only; "y" is fourth in both.
    rankings = {"dense": ["x", "1", "2", "y"], "words": ["3", "4", "5", "y"]}

    assert fuse(rankings, constant=60)[0].key == "y"
    assert fuse(rankings, constant=1)[0].key == "3"


def test_a_ranking_counts_a_key_once_at_its_best_place() -> None:
    [hit, other] = fuse({"words": ["a", "a", "b"]}, constant=60)

    assert hit.score == pytest.approx(1 / 61)
    assert other.score == pytest.approx(1 / 62)


def test_nothing_found_is_nothing() -> None:
    assert fuse({"dense": [], "words": []}, constant=60) == []


@given(RANKINGS)
def test_nothing_is_lost_or_invented_and_the_order_is_by_score(
    rankings: dict[str, list[str]],
) -> None:
    fused = fuse(rankings, constant=60)

    assert sorted(hit.key for hit in fused) == sorted(
        {key for keys in rankings.values() for key in keys}
    )
    assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)
    assert all(hit.key in rankings[source] for hit in fused for source in hit.sources)


@given(st.lists(KEYS), st.lists(KEYS))
def test_the_order_in_which_rankings_are_given_does_not_matter(
    dense: list[str], words: list[str]
) -> None:
    one = fuse({"dense": dense, "words": words}, constant=60)
    other = fuse({"words": words, "dense": dense}, constant=60)

    assert [hit.key for hit in one] == [hit.key for hit in other]
