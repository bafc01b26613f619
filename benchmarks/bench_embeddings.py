"""The quality and the cost of the local embedders, side by side.

    python -m benchmarks embeddings

CPU for texts of the demo, in turns; then the questions of `quality` with each. `minilm` is left out
if it is not installed (docs/embeddings.md).
"""

import asyncio
import logging
import os
import time
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

from benchmarks import bench_quality
from memory_core.embedding import Embedder, build_embedder
from memory_core.kernel.errors import ConfigurationFault
from memory_core.kernel.settings import Settings
from memory_core.text.tokens import count_tokens
from stack.connection import connected

_ROUNDS = 5
_DATA = Path(".data")
Name = Literal["local", "minilm"]


def settings_of(name: Name) -> Settings:
    return Settings(  # type: ignore[call-arg]
        _env_file=None,
        data_dir=_DATA / f"bench-embeddings-{name}",
        embedder=name,
        extractor="rules",
    )


def installed() -> dict[Name, Embedder]:
    embedders: dict[Name, Embedder] = {}
    names: tuple[Name, ...] = ("local", "minilm")
    for name in names:
        try:
            embedders[name] = build_embedder(settings_of(name))
        except ConfigurationFault as fault:
            print(f"{name} is left out: {fault.message}")
    return embedders


async def cpu_ms(embedders: dict[Name, Embedder]) -> dict[Name, float]:
    """Per 1,000 tokens."""
    texts = [document.content[:2_000] for document in bench_quality.demo_documents()]
    tokens = sum(count_tokens(text) for text in texts)
    spent = dict.fromkeys(embedders, 0.0)
    for embedder in embedders.values():
        await embedder.embed(texts[:1])  # loads the model
    for _ in range(_ROUNDS):
        for name, embedder in embedders.items():
            begun = time.process_time()
            await embedder.embed(texts)
            spent[name] += time.process_time() - begun
    return {name: 1e6 * seconds / (_ROUNDS * tokens) for name, seconds in spent.items()}


def main() -> None:
    logging.disable(logging.INFO)
    console = Console(width=130)
    embedders = installed()
    costs = asyncio.run(cpu_ms(embedders))
    table = Table("embedder", "model", "dimension", "CPU ms per 1,000 tokens", "ratio")
    for name, embedder in embedders.items():
        ratio = costs[name] / costs["local"]
        table.add_row(
            name, embedder.model, str(embedder.dimension), f"{costs[name]:.1f}", f"{ratio:.0f}"
        )
    console.print(table)
    console.print(f"Load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")
    for name in embedders:
        console.print(f"\nEMBEDDER={name}")
        with connected(settings_of(name)) as resolved:
            asyncio.run(bench_quality.run(resolved, console))


if __name__ == "__main__":
    main()
