"""The model calls of an attempt as a tree for the asset page: per chunk, with time and cost.

`mcp-memory trace` draws the same tree, with the request and all other attempts.
"""

from collections.abc import Mapping, Sequence

from memory_core.extraction.ledger import ModelCall
from memory_core.kernel.prices import Price

# Dagster stores this text for every document, so it stays short.
_CHUNKS_SHOWN = 8
_CALLS_SHOWN = 3


def call_tree(calls: Sequence[ModelCall], prices: Mapping[str, Price]) -> str:
    """Markdown with ids, model names, codes and numbers; it contains no text of the document."""
    by_chunk: dict[int | None, list[ModelCall]] = {}
    for call in calls:
        by_chunk.setdefault(call.chunk_index, []).append(call)
    shown = sorted(by_chunk.items(), key=lambda item: (item[0] is None, item[0] or 0))
    lines = []
    for index, group in shown[:_CHUNKS_SHOWN]:
        name = "events of all chunks" if index is None else f"chunk {index}"
        lines.append(f"- {name}")
        lines += [f"  - {_line(call, prices)}" for call in group[:_CALLS_SHOWN]]
        lines += _more(len(group) - _CALLS_SHOWN, "calls", "  ")
    return "\n".join(lines + _more(len(shown) - _CHUNKS_SHOWN, "chunks", ""))


def _line(call: ModelCall, prices: Mapping[str, Price]) -> str:
    line = f"{call.kind} by `{call.model}`: {call.outcome}, {call.latency_ms / 1000:.2f} s"
    if tokens := call.prompt_tokens + call.completion_tokens:
        line += f", {tokens:,} tokens"
    if (price := prices.get(call.model)) is not None:
        line += f", ${price.of(call.prompt_tokens, call.completion_tokens):.4f}"
    return line


def _more(count: int, what: str, indent: str) -> list[str]:
    return [f"{indent}- … and {count} more {what}"] if count > 0 else []
