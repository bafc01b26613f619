"""The index as a projection of the log: each change names an artifact or a memory, and its entries
in Chroma are made equal to what Postgres says now. So neither the order nor the repetition of
changes matters."""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Sequence

from memory_core.index import new_generation
from memory_core.index.consistency import repair
from memory_core.index.store import IndexParts
from memory_core.index.writer import drop_tenant, settle
from memory_core.kernel.errors import MemoryFault
from memory_core.log.change import Change, ChangeType
from memory_core.log.projection import Commit

log = logging.getLogger(__name__)

NAME = "index"
# As long as a writer waits for Chroma. Even later writes are left to the check index_agrees.
LOOK_AGAIN_SECONDS = 60.0


class IndexProjection:
    name = NAME
    types: Collection[str] | None = tuple(
        kind
        for kind in ChangeType
        if kind.startswith(("artifact.", "events.", "memory.")) or kind == ChangeType.TENANT_DELETED
    )
    batch = 200

    def __init__(
        self, runtime: IndexParts, *, look_again_seconds: float = LOOK_AGAIN_SECONDS
    ) -> None:
        self._runtime, self._pause = runtime, look_again_seconds
        self._comparison: asyncio.Task[None] | None = None

    async def apply(self, changes: Sequence[Change], commit: Commit) -> None:
        owners: dict[str, None] = {}
        for change in changes:
            if change.event_type == ChangeType.TENANT_DELETED:
                await drop_tenant(self._runtime, change.aggregate_id)
            else:
                owners[owner_of(change)] = None
        await settle(self._runtime, list(owners), commit, on_doubt=self._doubt)

    def _doubt(self) -> None:
        if self._comparison is None or self._comparison.done():
            comparison = self._comparison = asyncio.create_task(self._compare_again())
            runner = asyncio.current_task()
            assert runner is not None
            runner.add_done_callback(lambda _: comparison.cancel())

    async def _compare_again(self) -> None:
        await asyncio.sleep(self._pause)
        with contextlib.suppress(MemoryFault):
            if repaired := await repair(self._runtime):
                log.warning("%d entries of the index were undone by a writer that died", repaired)

    async def rebuild(self) -> None:
        await new_generation.rebuild(self._runtime)


def owner_of(change: Change) -> str:
    payload = change.payload
    owner: str = payload["memory_id"] if "memory_id" in payload else payload["artifact_uid"]
    return owner
