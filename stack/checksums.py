"""Page checksums of the embedded Postgres: checking for them, and adding them to an older data dir.

A new data dir has them. `pg_checksums` writes them into every page while the server is stopped, and
records that in the control file at the very end. If it is killed before that, the data dir is
unchanged, and it can be run again.
"""

import re

from memory_core.kernel.errors import StackFault
from memory_core.kernel.file_locks import FileLock, holding
from stack.layout import Layout
from stack.orphans import end_orphans
from stack.postgres import EmbeddedPostgres

_VERSION = re.compile(r"^Data page checksum version:\s*(\d+)$", re.MULTILINE)
_WAIT_SECONDS = 10.0


def has_checksums(layout: Layout) -> bool | None:
    """None if there is no embedded Postgres yet."""
    if not layout.postgres.is_dir():
        return None
    done = EmbeddedPostgres(layout.postgres).run_tool("pg_controldata", str(layout.postgres))
    version = _VERSION.search(done.stdout)
    return None if version is None else version[1] != "0"


def enable_checksums(layout: Layout) -> None:
    """Raises a StackFault if a stack uses the server, which must be stopped meanwhile."""
    with (
        holding(layout.transition_lock, timeout=_WAIT_SECONDS) as alone,
        FileLock(layout.supervisor_lock) as lock,
    ):
        if not alone or not lock.acquire(timeout=_WAIT_SECONDS):
            raise StackFault(
                "Checksums can be added only while Postgres is stopped: stop the stack (Ctrl-C in "
                "its terminal) and run `mcp-memory doctor --repair` again."
            )
        end_orphans(layout.root)
        server = EmbeddedPostgres(layout.postgres)
        server.stop_leftover()
        done = server.run_tool("pg_checksums", "--enable", "-D", str(layout.postgres))
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise StackFault(
            f"Checksums were not added ({''.join(reason) or 'no reason given'}). Nothing that is "
            "stored has changed: run `mcp-memory doctor --repair` again."
        )
