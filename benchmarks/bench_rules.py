"""How well and how fast the rules extractor works.

Run as `python -m benchmarks.bench_rules`.

First the reliability table: of the events of tests/data/judged.jsonl, which were judged by reading,
how many are right at each confidence. An event below MIN_CONFIDENCE is kept as rejected. Then,
where the sample of labelled meetings is at hand:

Labelled meetings (spoken transcripts; summaries written by people, linked to utterances):

* AMI. A proposed event is *right* when its quote overlaps an utterance that annotators linked to
  a summary sentence of the matching section: Decision -> decisions, Commitment -> actions,
  QualityRisk -> problems. *Near* also accepts an utterance at most `NEAR` away. A labelled
  sentence with linked utterances is *recalled* when at least one event of the matching category is
  right (near) for it. Events of other categories have no labels here and are not counted.
  *Relevant* is the share of all events, of any category, that overlap an utterance linked to any
  summary sentence at all, compared with the share of all utterances that are.
* QMSum. *Relevant* is the share of events whose quote lies in a turn that some query's answer was
  drawn from, compared with the share of all turns that are.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_core.extraction.model import Category, DocumentContext, Proposal, ProposedEvent
from memory_core.extraction.rules import VERSION, propose
from memory_core.kernel.settings import Settings
from tests.judged_documents import place_of, proposed, verdicts

SAMPLE = Path(__file__).resolve().parents[2] / "shared" / "sample"
NEAR = 3
LEAST = Settings.model_fields["min_confidence"].default
SECTIONS = {
    Category.DECISION: "decisions",
    Category.COMMITMENT: "actions",
    Category.QUALITY_RISK: "problems",
}


def main() -> None:
    reliability()
    if not SAMPLE.is_dir():
        print(f"No sample at {SAMPLE}: nothing to measure.")
        return
    print(f"extractor {VERSION}")
    ami(list(records("ami")))
    qmsum(list(records("qmsum")))
    corpus()


def reliability() -> None:
    judged = {verdict.place: verdict.right for verdict in verdicts()}
    judged_events = [(e.confidence, judged.get(place_of(name, e))) for name, e in proposed()]
    print(f"Reliability of {len(judged_events)} judged events")
    for sure in sorted({sure for sure, _ in judged_events}, reverse=True):
        right = [verdict for confidence, verdict in judged_events if confidence == sure]
        above = [verdict for confidence, verdict in judged_events if confidence >= sure]
        print(
            f"  {sure:.2f}: {ratio(right.count(True), len(right)):>14} right;"
            f"  {ratio(above.count(True), len(above))} of these and surer ones"
        )


def records(name: str) -> Iterator[dict[str, Any]]:
    path = SAMPLE / "labels" / f"{name}.jsonl"
    if path.is_file():
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def ami(meetings: list[dict[str, Any]]) -> None:
    if not meetings:
        return
    print(f"\nAMI, {len(meetings)} meetings (right: same utterance; near: within {NEAR})")
    counts: Counter[tuple[str, str]] = Counter()
    relevant = events_total = linked_total = utterances_total = 0
    for meeting in meetings:
        events = shown(meeting["text"], DocumentContext("transcript"))
        utterances = meeting["utterances"]
        linked = {i for gold in meeting["gold"] for i in gold["evidence"]}
        linked_total += len(linked)
        utterances_total += len(utterances)
        events_total += len(events)
        relevant += sum(bool(touched(event, utterances) & linked) for event in events)
        for category, section in SECTIONS.items():
            score(counts, category, events, meeting, section)
    for category in SECTIONS:
        row = {name: counts[category, name] for name in ("events", "right", "near", "gold")}
        matched, matched_near = counts[category, "found"], counts[category, "found near"]
        print(
            f"  {category:12} precision {ratio(row['right'], row['events'])}"
            f" (near {ratio(row['near'], row['events'])})"
            f"  recall {ratio(matched, row['gold'])} (near {ratio(matched_near, row['gold'])})"
        )
    print(
        f"  relevant: {ratio(relevant, events_total)} of all events,"
        f" {ratio(linked_total, utterances_total)} of all utterances"
    )


def shown(text: str, context: DocumentContext) -> tuple[ProposedEvent, ...]:
    return tuple(e for e in propose(text, context).events if e.confidence >= LEAST)


def score(
    counts: Counter[tuple[str, str]],
    category: Category,
    events: tuple[ProposedEvent, ...],
    meeting: dict[str, Any],
    section: str,
) -> None:
    gold = [set(g["evidence"]) for g in meeting["gold"] if g["section"] == section]
    gold = [evidence for evidence in gold if evidence]
    places = [touched(e, meeting["utterances"]) for e in events if e.category is category]
    everywhere = set().union(*gold)
    counts[category, "events"] += len(places)
    counts[category, "gold"] += len(gold)
    counts[category, "right"] += sum(bool(place & everywhere) for place in places)
    counts[category, "near"] += sum(bool(place & widened(everywhere)) for place in places)
    counts[category, "found"] += sum(any(place & g for place in places) for g in gold)
    counts[category, "found near"] += sum(any(p & widened(g) for p in places) for g in gold)


def widened(indices: set[int]) -> set[int]:
    return {i + d for i in indices for d in range(-NEAR, NEAR + 1)}


def touched(event: ProposedEvent, utterances: list[list[Any]]) -> set[int]:
    start, end = event.quote.start_char or 0, event.quote.end_char or 0
    return {i for i, u in enumerate(utterances) if u[4] < end and start < u[5]}


def qmsum(meetings: list[dict[str, Any]]) -> None:
    if not meetings:
        return
    inside = total = turns_inside = turns_total = 0
    for meeting in meetings:
        spans = [span for query in meeting["queries"] for span in query["turn_spans"]]
        wanted = {i for first, last in spans for i in range(first, last + 1)}
        turns_inside += len(wanted)
        turns_total += len(meeting["turns"])
        for event in shown(meeting["text"], DocumentContext("transcript")):
            start = event.quote.start_char or 0
            turn = next(i for i, (_, end) in enumerate(meeting["turns"]) if start < end)
            total += 1
            inside += turn in wanted
    print(f"\nQMSum, {len(meetings)} meetings")
    print(
        f"  relevant: {ratio(inside, total)} of events, {ratio(turns_inside, turns_total)} of turns"
    )


def corpus() -> None:
    manifest = SAMPLE / "corpus" / "manifest.jsonl"
    if not manifest.is_file():
        return
    with manifest.open(encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines]
    documents = []
    for entry in entries:
        text = (SAMPLE / "corpus" / entry["path"]).read_text(encoding="utf-8")
        documents.append((text, DocumentContext(entry["type"], date=day_of(entry["date"]))))
    started = time.perf_counter()
    proposals = [propose(text, context) for text, context in documents]
    seconds = time.perf_counter() - started
    counts = Counter(e.category for p in proposals for e in p.events if e.confidence >= LEAST)
    characters = sum(len(text) for text, _ in documents)
    print(f"\nCorpus, {len(documents)} documents, {characters} characters")
    for category in Category:
        print(f"  {category:14} {counts[category]}")
    print(f"  {len(documents) / seconds:.1f} documents/s, {characters / seconds:,.0f} characters/s")
    without(entries, proposals)


def without(entries: list[dict[str, Any]], proposals: list[Proposal]) -> None:
    """Prints the documents without shown events, to be read: do they really tell of none?"""
    silent = [
        (entry["path"], len(proposal.events))
        for entry, proposal in zip(entries, proposals, strict=True)
        if not any(event.confidence >= LEAST for event in proposal.events)
    ]
    print(f"  {ratio(len(silent), len(entries))} of the documents have no event that is shown:")
    for path, doubtful in silent:
        print(f"    {path} ({doubtful} too doubtful)")


def day_of(value: str | None) -> datetime | None:
    """None for entries that have only a year, or another date format."""
    try:
        return datetime.fromisoformat(value or "")
    except ValueError:
        return None


def ratio(part: int, whole: int) -> str:
    return f"{part}/{whole} = {part / whole:.2f}" if whole else "0/0"


if __name__ == "__main__":
    main()
