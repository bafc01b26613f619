"""The protocol of a projection: something derived from the log and Postgres that can be rebuilt."""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from memory_core.kernel.database import Session
from memory_core.log.change import Change


class Commit(Protocol):
    def __call__(self) -> AbstractAsyncContextManager[Session]: ...


class Projection(Protocol):
    """A fault that means "away" (`errors.OUTAGES`) is waited out. Any other exception is blamed on
    the changes: they are tried in smaller batches, then alone, and at last set aside as a dead
    letter."""

    name: str
    types: Collection[str] | None  # the types of changes that it wants; None: all
    batch: int  # the maximum size of a batch

    async def apply(self, changes: Sequence[Change], commit: Commit) -> None:
        """Apply the changes. `async with commit() as session:` is the transaction in which the
        checkpoint moves past them: what the session writes is committed together with the
        checkpoint, or not at all. Enter it once, last, and hold it briefly: it keeps every reader
        of the log waiting. A projection that writes nothing to Postgres need not enter it.

        The same changes may come again, in other batches; a dead letter that is retried comes alone
        and late.
        """
        ...

    async def rebuild(self) -> None:
        """Derive everything from Postgres as it is now. The leader calls it when the projection is
        new to this database (which adopts what was stored before the log began) and on `mcp-memory
        projections rebuild`. Meanwhile `apply` goes on concurrently with newer changes. If the
        process dies during a rebuild, it is called again from the start, and should skip what is
        already done. When it returns, the projection is `running`."""
        ...
