"""The index as a projection of the log: each change names an artifact or a memory, whose entries in
Chroma are made to be what Postgres says now. The order of changes does not matter, nor how often
one comes."""

from collections.abc import Collection, Sequence

from memory_core.index import filling
from memory_core.index.parts import Parts
from memory_core.index.writing import settle
from memory_core.log.change import Change, ChangeType
from memory_core.log.projection import Commit

NAME = "index"


class IndexProjection:
    name = NAME
    types: Collection[str] | None = (
        ChangeType.ARTIFACT_CREATED,
        ChangeType.ARTIFACT_REVISED,
        ChangeType.ARTIFACT_RESTORED,
        ChangeType.ARTIFACT_RELABELLED,
        ChangeType.ARTIFACT_REPAIRED,
        ChangeType.ARTIFACT_DELETED,
        ChangeType.ARTIFACT_EXPIRED,
        ChangeType.EVENTS_REPLACED,
        ChangeType.MEMORY_STORED,
        ChangeType.MEMORY_DELETED,
    )
    batch = 200

    def __init__(self, runtime: Parts) -> None:
        self._runtime = runtime

    async def apply(self, changes: Sequence[Change], commit: Commit) -> None:
        owners = dict.fromkeys(owner_of(change) for change in changes)
        await settle(self._runtime, list(owners), commit)

    async def rebuild(self) -> None:
        await filling.rebuild(self._runtime)


def owner_of(change: Change) -> str:
    payload = change.payload
    owner: str = payload["memory_id"] if "memory_id" in payload else payload["artifact_uid"]
    return owner
