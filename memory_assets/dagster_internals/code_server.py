"""Dagster's code server, whose runs begin warm.

    python -m memory_assets.dagster_internals.code_server -m MODULE --socket PATH

As shipped, it starts an interpreter for every run, which imports Dagster and this project: two to
three seconds of work before the first line of ours. Here runs are forked from a process that has
imported all of that and does nothing else, so that it has neither threads nor connections to leave
behind. A run has the code and the prompts that the server itself has loaded.
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
    ensure_running()  # it loads while the server does

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
