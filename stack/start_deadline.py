"""The deadline of a process that waits for a stack to start.

A migration takes as long as the memory is large, so the time does not count while the stack
migrates.
"""

import sys
import time

from memory_core.kernel import migrations
from stack import stack_state
from stack.layout import Layout


class StartDeadline:
    def __init__(self, layout: Layout, seconds: float) -> None:
        self._layout = layout
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._announced: str | None = None

    @property
    def passed(self) -> bool:
        stack = stack_state.running(self._layout)
        if stack is not None and stack.migrating is not None:
            self._end = time.monotonic() + self._seconds
            self._announce(stack.migrating)
        return time.monotonic() > self._end

    def _announce(self, name: str) -> None:
        """Print once per migration; on stderr, so that stdout has only the answer of the
        command."""
        if name != self._announced:
            self._announced = name
            print(migrations.notice(name), file=sys.stderr, flush=True)
