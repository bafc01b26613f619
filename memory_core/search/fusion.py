"""Reciprocal rank fusion: combines several rankings into one, by ranks alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fused:
    key: str
    score: float
    sources: tuple[str, ...]  # the rankings that had it


def ranking(rankings: Iterable[Sequence[str]], *, constant: int) -> list[str]:
    """The keys alone, best first; equal scores in a stable order."""
    return list(_scores(rankings, constant))


def fuse(rankings: Mapping[str, Sequence[str]], *, constant: int) -> list[Fused]:
    """Best first; equal scores in a stable order."""
    sources: dict[str, list[str]] = {}
    for source, keys in rankings.items():
        for key in dict.fromkeys(keys):
            sources.setdefault(key, []).append(source)
    scores = _scores(rankings.values(), constant)
    return [Fused(key, score, tuple(sources[key])) for key, score in scores.items()]


def _scores(rankings: Iterable[Sequence[str]], constant: int) -> dict[str, float]:
    """Best first."""
    scores: dict[str, float] = {}
    for keys in rankings:
        for rank, key in enumerate(dict.fromkeys(keys), start=constant + 1):
            scores[key] = scores.get(key, 0.0) + 1.0 / rank
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))
