"""The spans of an extraction: job → run → chunk → call, in the trace of the call that asked."""

from collections.abc import Iterator
from contextlib import contextmanager

from memory_core.extraction.ledger import asking_about
from memory_core.telemetry.spans import span


@contextmanager
def of_chunk(index: int) -> Iterator[None]:
    with (
        asking_about(index),
        span(f"chunk {index}", attributes={"memory.chunk": index}),
    ):
        yield
