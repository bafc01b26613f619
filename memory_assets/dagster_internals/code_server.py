"""Dagster's code server, changed so that runs start with all modules loaded.

    python -m memory_assets.dagster_internals.code_server -m MODULE --socket PATH

As shipped, it starts an interpreter for every run, which imports Dagster and this project. That
takes two to three seconds. Here a run is forked from a process that has imported everything and
does nothing else, so the run inherits neither threads nor connections. A run uses the code and the
prompts that the server has loaded.
"""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.forkserver import ensure_running
from typing import Any

from memory_assets.dagster_internals import log_level

_LOADED = [
    "dagster._grpc.impl",
    "memory_assets.definitions",
    "memory_assets.dagster_internals.storage",
    "memory_assets.dagster_internals.warm",
    "memory_core.extraction.openai",
    "memory_core.extraction.rules",
    "wordllama",
]


def _forking(original: Callable[..., None]) -> Callable[..., None]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    # Numpy would start threads, and a process with threads must not fork.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    ensure_running()  # it loads in parallel with the server

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self._mp_ctx = context

    return init


def main() -> None:
    from dagster._cli.api import grpc_command
    from dagster._grpc.server import DagsterApiServer

    DagsterApiServer.__init__ = _forking(DagsterApiServer.__init__)  # type: ignore[method-assign]
    log_level.add_to_command_line("--log-level")
    grpc_command()


if __name__ == "__main__":
    main()
