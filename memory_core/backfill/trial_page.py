"""A trial as a Markdown page, for the person who decides on the prompt."""

from typing import Any

from memory_core.backfill.trial import SIDES, Trial
from memory_core.text.printable import in_markdown, printable

_EXAMPLES = 15
_CELL = 200


def page(trial: Trial) -> str:
    return "\n\n".join(
        part for part in (_opening(trial), _totals(trial), _documents(trial), *_examples(trial))
    )


def _opening(trial: Trial) -> str:
    row = trial.trial
    return (
        f"# Trial: {row.extractor} {row.extract_version}, merges {row.merge_version}\n\n"
        f"{row.model}, {len(trial.revisions)} revisions, seed {row.seed}. No event was "
        "replaced; answers are cached, so that a backfill does not pay for them again."
    )


def _totals(trial: Trial) -> str:
    totals = trial.totals()
    shown = [
        ("events before", totals["before"]),
        ("events after", totals["after"]),
        *((side, totals[side]) for side in SIDES),
        ("rejected before", totals["rejected_before"]),
        ("rejected", totals["rejected"]),
        ("calls", totals["calls"]),
        ("tokens", totals["tokens"]),
        ("failed revisions", totals["failed"]),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value:,} |" for name, value in shown)])


def _documents(trial: Trial) -> str:
    lines = [
        "## By document",
        "",
        "| document | revision | kept | changed | added | lost | rejected | tokens |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in trial.revisions:
        counts = [str(len(row.comparison.get(side, ()))) for side in SIDES]
        if row.error is not None:
            counts = [f"failed: {_cell(row.error)}", "", "", ""]
        rejected = f"{row.rejected_before} → {row.rejected}"
        tokens = row.prompt_tokens + row.completion_tokens
        # It contains the uid, so that deleting the document also deletes this page.
        whose = f"`{row.partition_key}` `{row.artifact_uid}`"
        name = f"{_cell(row.title or '(untitled)')} | {whose}"
        lines.append(f"| {name} | {' | '.join(counts)} | {rejected} | {tokens:,} |")
    return "\n".join(lines)


def _examples(trial: Trial) -> list[str]:
    parts = []
    for side in ("lost", "added", "changed"):
        events = [event for row in trial.revisions for event in row.comparison.get(side, ())]
        if events:
            parts.append(_listed(side, events))
    return parts


def _listed(side: str, events: list[dict[str, Any]]) -> str:
    lines = [f"## {side.capitalize()}", "", "| category | event | quote |", "|---|---|---|"]
    for event in events[:_EXAMPLES]:
        line = _cell(event["narrative"])
        if "fields" in event:
            line += f" ({', '.join(sorted(event['fields']))})"
        lines.append(f"| {event['category']} | {line} | “{_cell(event['quote'])}” |")
    more = len(events) - _EXAMPLES
    return "\n".join(lines) + (f"\n\n… and {more} more." if more > 0 else "")


def _cell(text: str) -> str:
    return in_markdown(printable(" ".join(text.split()), _CELL))
