"""How often, how wrongly and how fast quotes are aligned with real documents.

    python -m benchmarks.bench_alignment

The true quotes are sentences of 5 to 25 words that occur once in their document. Each is distorted
in one way, located again, and counted as right only if the located span is the true one. Quotes
that occur in no document, or whose meaning was changed, must be rejected.
"""

import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from memory_core.extraction.alignment import MAX_QUOTE_CHARS, Alignment, SourceText
from memory_core.extraction.alignment.lexicon import STOPWORDS, burden
from memory_core.extraction.alignment.words import fold_words, word_pattern

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "sample" / "corpus"
SEED = 20240611
QUOTES_PER_DOCUMENT = 60
LONG_DOCUMENT_CHARS = 200_000
MIN_WORDS, MAX_WORDS = 5, 25
INDEX_ROUNDS = 3

INDEX_TARGET_MS = 6.0
QUOTE_TARGET_MS = 0.7

_SENTENCE = re.compile(r"[^\W\d_](?:(?!\n\s*\n|\n\s*[-*+#|>]|[.!?](?=\s))[\s\S])*[.!?](?=\s)")
_INVENTED_WORDS = ["quorum", "lattice", "ferment", "obelisk", "murmur", "cascade", "velvet"]
_SYNONYMS = ["begin", "swiftly", "assist", "notable", "gather", "broad", "entire", "obtain"]


@dataclass(frozen=True)
class Quote:
    """A true quote: its document and its position."""

    document: int
    start: int
    text: str


@dataclass(frozen=True)
class Noise:
    """A way to distort a quote; it returns the distorted text, and which part of the true quote it
    still has."""

    name: str
    spoil: Callable[[str, random.Random], tuple[str, int, int] | None]
    target: float


@dataclass
class Score:
    tried: int = 0
    hit: int = 0

    @property
    def share(self) -> float:
        return 100 * self.hit / self.tried if self.tried else 0.0


# --- documents and their sentences ---------------------------------------------------------


def documents() -> list[str]:
    if CORPUS.is_dir():
        files = sorted(path for path in CORPUS.rglob("*") if path.suffix in {".md", ".rst", ".txt"})
        return [path.read_text(encoding="utf-8", errors="replace") for path in files]
    return [generated_document(random.Random(SEED + number)) for number in range(40)]


def generated_document(rng: random.Random) -> str:
    letters = "etaoinshrdlucmfwypvbgk"
    vocabulary = [
        "".join(rng.choices(letters, k=rng.randint(2, 10))) for _ in range(2000)
    ] + sorted(STOPWORDS)
    sentences = [
        " ".join(rng.choices(vocabulary, k=rng.randint(4, 30))).capitalize() + "."
        for _ in range(200)
    ]
    return "\n\n".join(
        " ".join(sentences[start : start + 6]) for start in range(0, len(sentences), 6)
    )


def true_quotes(number: int, text: str, rng: random.Random) -> list[Quote]:
    folded = fold_words(word_pattern().findall(text))
    quotes = [
        Quote(number, match.start(), match.group())
        for match in _SENTENCE.finditer(text)
        if MIN_WORDS <= len(match.group().split()) <= MAX_WORDS
        and len(word_pattern().findall(match.group())) >= MIN_WORDS
        and len(match.group()) <= MAX_QUOTE_CHARS
        and folded.count(fold_words(word_pattern().findall(match.group()))) == 1
    ]
    return rng.sample(quotes, min(len(quotes), QUOTES_PER_DOCUMENT))


# --- noise that leaves a quote true -----------------------------------------------------------


def whole(text: str, spoilt: str) -> tuple[str, int, int]:
    return spoilt, 0, len(text)


def whitespace(text: str, rng: random.Random) -> tuple[str, int, int]:
    return whole(text, re.sub(r"\s+", lambda _: rng.choice([" ", "\n", "  ", "\u00a0"]), text))


def case(text: str, rng: random.Random) -> tuple[str, int, int]:
    return whole(text, rng.choice([text.upper(), text.lower(), text.swapcase()]))


def typographic(text: str, rng: random.Random) -> tuple[str, int, int]:
    """Straight quotation marks become curly and curly ones straight, and one pair is added
    around."""
    bent = str.maketrans({"'": "’", "-": "–", "’": "'", "–": "-", "—": "-", "“": '"', "”": '"'})
    spoilt = re.sub(r'"([^"]*)"', r"“\1”", text).translate(bent)
    return whole(text, f"“{spoilt}”" if rng.random() < 0.5 else spoilt)


def ellipsis(text: str, rng: random.Random) -> tuple[str, int, int] | None:
    words = text.split()
    if len(words) < 7:
        return None
    left = rng.randint(2, len(words) - 5)
    right = rng.randint(left + 1, len(words) - 2)
    mark = rng.choice(["...", "…", "[...]", "[…]"])
    return whole(text, f"{' '.join(words[:left])} {mark} {' '.join(words[right:])}")


def paraphrase(text: str, rng: random.Random) -> tuple[str, int, int] | None:
    """One word replaced by another. A changed number or negation would be no paraphrase."""
    places = [
        match.span()
        for match in word_pattern().finditer(text)
        if not burden(fold_words([match.group()]))
    ]
    start, end = rng.choice(places)
    word = rng.choice([word for word in _SYNONYMS if word != text[start:end].lower()])
    return whole(text, text[:start] + word + text[end:])


def missing_word(text: str, rng: random.Random) -> tuple[str, int, int] | None:
    """One inner word left out."""
    words = text.split()
    places = [i for i in range(1, len(words) - 1) if not _burdened(words[i])]
    if len(words) <= MIN_WORDS or not places:
        return None
    place = rng.choice(places)
    return whole(text, " ".join(words[:place] + words[place + 1 :]))


def added_word(text: str, rng: random.Random) -> tuple[str, int, int]:
    words = text.split()
    words.insert(rng.randint(1, len(words) - 1), rng.choice(_SYNONYMS))
    return whole(text, " ".join(words))


def end_dropped(text: str, rng: random.Random) -> tuple[str, int, int]:
    kept = text.rstrip(".!? ")
    return kept.lower(), 0, len(kept)


def end_added(text: str, rng: random.Random) -> tuple[str, int, int]:
    words = list(word_pattern().finditer(text))
    end = words[-2].end()
    return text[:end].swapcase() + rng.choice([";", "!!", ","]), 0, end


def markdown_dropped(text: str, rng: random.Random) -> tuple[str, int, int] | None:
    spoilt = re.sub(r"(?<!\w)[*_`]+|[*_`]+(?!\w)", "", text)
    return whole(text, spoilt) if spoilt != text else None


def _burdened(word: str) -> bool:
    return any(burden(fold_words([part])) for part in word_pattern().findall(word))


TRUE_NOISES = [
    Noise("exact", lambda text, rng: whole(text, text), 99.9),
    Noise("whitespace", whitespace, 99.9),
    Noise("case", case, 99.9),
    Noise("typographic", typographic, 99.9),
    Noise("ellipsis", ellipsis, 98.8),
    Noise("one word paraphrased", paraphrase, 98.0),
    Noise("one inner word missing", missing_word, 98.0),
    Noise("one inner word added", added_word, 98.0),
    Noise("end mark dropped, lower case", end_dropped, 98.0),
    Noise("wrong end mark", end_added, 98.0),
    Noise("Markdown dropped", markdown_dropped, 98.0),
]


# --- quotes that are not true ------------------------------------------------------------------


def invented(quotes: list[Quote], rng: random.Random) -> Iterator[tuple[int, str]]:
    """Sentences of unrelated documents, and sentences with three words replaced."""
    vocabularies: dict[int, set[str]] = {}
    for quote in quotes:
        vocabularies.setdefault(quote.document, set()).add(quote.text)
    for quote in quotes:
        other = rng.choice(quotes)
        # Revisions of one document share most of their sentences.
        if not vocabularies[other.document] & vocabularies[quote.document]:
            yield quote.document, other.text
        words = quote.text.split()
        for place in rng.sample(range(len(words)), 3):
            words[place] = rng.choice(_INVENTED_WORDS)
        yield quote.document, " ".join(words)


def spliced(quotes: list[Quote], rng: random.Random, joint: str = " ") -> Iterator[tuple[int, str]]:
    """The first half of one sentence and the second half of another of the same document."""
    for quote in quotes:
        others = [q for q in quotes if q.document == quote.document and q != quote]
        if others:
            first, second = quote.text.split(), rng.choice(others).text.split()
            halves = first[: len(first) // 2], second[len(second) // 2 :]
            yield quote.document, joint.join(" ".join(half) for half in halves)


def spliced_by_ellipsis(quotes: list[Quote], rng: random.Random) -> Iterator[tuple[int, str]]:
    return spliced(quotes, rng, joint=" … ")


def number_changed(quotes: list[Quote], rng: random.Random) -> Iterator[tuple[int, str]]:
    for quote in quotes:
        if re.search(r"\d", quote.text):
            changed = re.sub(r"\d+", lambda m: str(int(m[0][:9]) + 7), quote.text, count=1)
            yield quote.document, changed


def negated(quotes: list[Quote], rng: random.Random) -> Iterator[tuple[int, str]]:
    for quote in quotes:
        words = quote.text.split()
        words.insert(rng.randint(1, len(words) - 1), "not")
        yield quote.document, " ".join(words)


FALSE_QUOTES: list[
    tuple[str, Callable[[list[Quote], random.Random], Iterator[tuple[int, str]]], float]
] = [
    ("invented", invented, 0.0),
    ("two half-sentences spliced", spliced, 0.9),
    ("the same with an ellipsis", spliced_by_ellipsis, 5.0),
    ("a number changed", number_changed, 0.0),
    ("negated", negated, 0.0),
]


# --- measuring ---------------------------------------------------------------------------------


def measure_true(noise: Noise, quotes: list[Quote], sources: list[SourceText]) -> Score:
    rng, score = random.Random(SEED), Score()
    for quote in quotes:
        spoilt = noise.spoil(quote.text, rng)
        if spoilt is None:
            continue
        text, start, end = spoilt
        aligned = sources[quote.document].locate(text)
        score.tried += 1
        score.hit += (
            isinstance(aligned, Alignment)
            and aligned.start_char == quote.start + start
            and aligned.end_char == quote.start + end
        )
    return score


def measure_false(quotes: Iterator[tuple[int, str]], sources: list[SourceText]) -> Score:
    score = Score()
    for document, text in quotes:
        score.tried += 1
        score.hit += isinstance(sources[document].locate(text), Alignment)
    return score


def index_cpu_ms(text: str) -> float:
    """The CPU time of a document's first quote that needs the index, the best of a few."""
    rounds = []
    for _ in range(INDEX_ROUNDS):
        source = SourceText(text)
        began = time.process_time()
        source.locate("nowhere to be found in here")
        rounds.append(time.process_time() - began)
    return 1000 * min(rounds)


def quote_cpu_ms(text: str, noise: Noise, quotes: list[Quote]) -> list[float]:
    rng, source = random.Random(SEED), SourceText(text)
    # Build the index first: it is measured separately.
    source.locate("nowhere to be found in here")
    times = []
    for quote in quotes:
        if spoilt := noise.spoil(quote.text, rng):
            began = time.process_time()
            source.locate(spoilt[0])
            times.append(1000 * (time.process_time() - began))
    return times


# --- the report --------------------------------------------------------------------------------


class Report:
    """One row per figure, each next to its target."""

    def __init__(self) -> None:
        self.table = Table("figure", "tried", "measured", "target", "")

    def at_least(self, name: str, score: Score, target: float) -> None:
        self._row(name, score.tried, f"{score.share:.2f} %", f"≥ {target} %", score.share >= target)

    def at_most(self, name: str, score: Score, target: float) -> None:
        self._row(name, score.tried, f"{score.share:.2f} %", f"≤ {target} %", score.share <= target)

    def cpu(self, name: str, times: list[float], target: float) -> None:
        mean = sum(times) / len(times)
        measured = f"{mean:.3f} ms (max {max(times):.2f})"
        self._row(name, len(times), measured, f"≤ {target} ms", mean <= target)

    def _row(self, name: str, tried: int, measured: str, target: str, met: bool) -> None:
        # Generated text has no Markdown and no numbers to distort.
        if not tried:
            return
        verdict = "[green]✓[/]" if met else "[red]✗[/]"
        self.table.add_row(name, str(tried), measured, target, verdict)


def main() -> None:
    console, rng, report = Console(width=110), random.Random(SEED), Report()
    texts = documents()
    sources = [SourceText(text) for text in texts]
    quotes = [
        quote for number, text in enumerate(texts) for quote in true_quotes(number, text, rng)
    ]
    console.print(
        f"{len(texts)} documents, {sum(map(len, texts)):,} characters, {len(quotes):,} true quotes"
    )
    for noise in TRUE_NOISES:
        report.at_least(f"right: {noise.name}", measure_true(noise, quotes, sources), noise.target)
    report.table.add_section()
    for name, make, target in FALSE_QUOTES:
        score = measure_false(make(quotes, random.Random(SEED)), sources)
        report.at_most(f"falsely aligned: {name}", score, target)
    report.table.add_section()
    report.cpu("CPU: index of a document", [index_cpu_ms(text) for text in texts], INDEX_TARGET_MS)
    long_text = "\n\n".join(texts * (1 + LONG_DOCUMENT_CHARS // sum(map(len, texts))))
    long_text = long_text[:LONG_DOCUMENT_CHARS]
    inside = [quote for quote in quotes if quote.text in long_text]
    for noise in TRUE_NOISES:
        times = quote_cpu_ms(long_text, noise, inside)
        if times:
            report.cpu(f"CPU: quote in 200,000 characters, {noise.name}", times, QUOTE_TARGET_MS)
    console.print(report.table)
    console.print(f"The index of the 200,000 characters took {index_cpu_ms(long_text):.1f} ms.")


if __name__ == "__main__":
    main()
