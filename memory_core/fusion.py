"""Reciprocal rank fusion: one ranking out of several, by ranks alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fused:
    key: str
    score: float
    sources: tuple[str, ...]  # which rankings had it


def fuse(rankings: Mapping[str, Sequence[str]], *, constant: int) -> list[Fused]:
    """Best first; equal scores in a stable order."""
    scores: dict[str, float] = {}
    sources: dict[str, list[str]] = {}
    for source, keys in rankings.items():
        for rank, key in enumerate(dict.fromkeys(keys), start=1):
            scores[key] = scores.get(key, 0.0) + 1.0 / (constant + rank)
            sources.setdefault(key, []).append(source)
    order = sorted(scores, key=lambda key: (-scores[key], key))
    return [Fused(key, scores[key], tuple(sources[key])) for key in order]
