"""The calls of an attempt on the page of its asset."""

from memory_assets.call_tree import call_tree
from memory_core.extraction.ledger import ModelCall
from memory_core.kernel.prices import Price


def call(chunk: int | None, outcome: str = "ok", kind: str = "extract") -> ModelCall:
    tokens = 1000 if outcome == "ok" else 0
    return ModelCall(kind, "m", outcome, 1500.0, prompt_tokens=tokens, chunk_index=chunk)


def test_calls_stand_below_their_chunks_with_time_tokens_and_money() -> None:
    calls = [call(1), call(0, "OPENAI_TIMEOUT"), call(0), call(None, kind="merge")]
    assert call_tree(calls, {"m": Price(2.0, 8.0)}).splitlines() == [
        "- chunk 0",
        "  - extract by `m`: OPENAI_TIMEOUT, 1.50 s, $0.0000",
        "  - extract by `m`: ok, 1.50 s, 1,000 tokens, $0.0020",
        "- chunk 1",
        "  - extract by `m`: ok, 1.50 s, 1,000 tokens, $0.0020",
        "- events of all chunks",
        "  - merge by `m`: ok, 1.50 s, 1,000 tokens, $0.0020",
    ]


def test_of_many_chunks_and_calls_the_first_are_shown() -> None:
    tree = call_tree([call(number) for number in range(20) for _ in range(5)], {})
    assert tree.count("  - … and 2 more calls") == 8
    assert tree.endswith("- … and 12 more chunks")
