"""What a projection is: something derived from the log and Postgres that can be rebuilt."""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from memory_core.kernel.database import Session
from memory_core.log.change import Change


class Commit(Protocol):
    def __call__(self) -> AbstractAsyncContextManager[Session]: ...


class Projection(Protocol):
    """A fault that means "away" (`errors.OUTAGES`) is waited out; any other exception is the
    fault of the changes, which are then tried in smaller batches, alone at last, and set aside
    as a dead letter."""

    name: str
    types: Collection[str] | None  # the changes it wants; None: all
    batch: int  # at most that many at once

    async def apply(self, changes: Sequence[Change], commit: Commit) -> None:
        """Take the changes in. `async with commit() as session:` is the transaction in which the
        checkpoint moves past them: what is written with that session and the checkpoint are
        kept together or not at all. Enter it once, last, and hold it briefly: it keeps every
        reader of the log waiting. A projection that writes nothing to Postgres need not enter it.

        The same changes may come again, in other batches; a dead letter that is tried again comes
        alone and late."""
        ...

    async def rebuild(self) -> None:
        """Derive everything from Postgres as it is now. Called by the leader when the projection
        is new to this database (which adopts what was stored before the log began) and on
        `mcp-memory projections rebuild`. `apply` goes on meanwhile, concurrently, with the changes
        made since. Called again from its beginning when the process died on it; it should find
        what it did before. Returns when done; then the projection is `running`."""
        ...
