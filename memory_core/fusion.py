"""Reciprocal rank fusion: one ranking out of several, by ranks alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

Key = TypeVar("Key", str, UUID)


@dataclass(frozen=True, slots=True)
class Fused(Generic[Key]):
    key: Key
    score: float
    sources: tuple[str, ...]  # which rankings had it


def ranking(rankings: Iterable[Sequence[Key]], *, constant: int) -> list[Key]:
    """The keys alone, best first; equal scores in a stable order."""
    scores: dict[Key, float] = {}
    for keys in rankings:
        for rank, key in enumerate(dict.fromkeys(keys), start=constant + 1):
            scores[key] = scores.get(key, 0.0) + 1.0 / rank
    return sorted(scores, key=lambda key: (-scores[key], key))


def fuse(rankings: Mapping[str, Sequence[Key]], *, constant: int) -> list[Fused[Key]]:
    """Best first; equal scores in a stable order."""
    scores: dict[Key, float] = {}
    sources: dict[Key, list[str]] = {}
    for source, keys in rankings.items():
        for rank, key in enumerate(dict.fromkeys(keys), start=1):
            scores[key] = scores.get(key, 0.0) + 1.0 / (constant + rank)
            sources.setdefault(key, []).append(source)
    order = sorted(scores, key=lambda key: (-scores[key], key))
    return [Fused(key, scores[key], tuple(sources[key])) for key in order]
