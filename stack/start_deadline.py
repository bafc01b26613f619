"""Until when a process waits for a stack to start.

A stack that migrates its memory takes as long as the memory is large: then the time does not run.
"""

import sys
import time

from memory_core.kernel import migrations
from stack import state
from stack.layout import Layout


class StartDeadline:
    def __init__(self, layout: Layout, seconds: float) -> None:
        self._layout = layout
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._told: str | None = None

    @property
    def passed(self) -> bool:
        stack = state.running(self._layout)
        if stack is not None and stack.migrating is not None:
            self._end = time.monotonic() + self._seconds
            self._tell(stack.migrating)
        return time.monotonic() > self._end

    def _tell(self, name: str) -> None:
        """Once per file; on stderr, so that stdout is the answer of the command alone."""
        if name != self._told:
            self._told = name
            print(migrations.notice(name), file=sys.stderr, flush=True)
