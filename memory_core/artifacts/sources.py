"""Which artifact a source's document belongs to. Two sources never share an artifact."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.artifacts.document import Document
from memory_core.kernel import ids
from memory_core.kernel.database import Session


@dataclass(frozen=True, slots=True)
class ArtifactSource:
    artifact_uid: str
    source_system: str
    source_id: str
    is_own: bool  # whether the principal owns it


async def artifact_uids(
    session: Session, documents: Sequence[Document], *, alone: bool = False
) -> list[str]:
    """The artifact id of each document: the id that its source already has, or else a free one.

    `alone`: whether no other user's document can have such an id.

    An artifact keeps its id for ever. Older versions joined names with a colon like all other
    names; such an artifact still has its id, so a source that would get the same id today gets
    another. A document that the principal cannot see also keeps its id, and the principal's
    document gets another.
    """
    sources = [(document.source_system, document.source_id) for document in documents]
    # Names without a colon can be split in only one way, so no other source can have the same id.
    doubtful = [
        (system, id_) for system, id_ in sources if id_ and (not alone or ":" in system + id_)
    ]
    possible = [uid for system, id_ in doubtful for uid in _possible(system, id_)]
    rows = (
        await session.rows(ArtifactSource, "find_artifact_sources", uids=possible)
        if possible
        else []
    )
    taken = {row.artifact_uid: row for row in rows}
    return [_uid(system, id_, taken) for system, id_ in sources]


def _possible(source_system: str, source_id: str) -> tuple[str, ...]:
    return (
        ids.joined_uid(source_system, source_id),
        ids.separated_uid(source_system, source_id),
        ids.own_uid(source_system, source_id),
    )


def _uid(source_system: str, source_id: str | None, taken: dict[str, ArtifactSource]) -> str:
    preferred = ids.artifact_uid(source_system, source_id)
    if not source_id:
        return preferred
    possible = _possible(source_system, source_id)
    same = [
        row
        for uid in reversed(possible)
        if (row := taken.get(uid))
        and (row.source_system, row.source_id) == (source_system, source_id)
    ]
    # The user's own document comes before a document of another user that has become visible.
    for row in sorted(same, key=lambda row: not row.is_own):
        return row.artifact_uid
    return next((uid for uid in (preferred, *possible[1:]) if uid not in taken), possible[-1])
