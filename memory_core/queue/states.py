"""The states of a job and its allowed transitions, read from the database, and their diagram."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.kernel.database import Session


@dataclass(frozen=True, slots=True)
class AllowedTransition:
    prev_status: str | None  # None: the job is created
    next_status: str
    meaning: str


async def transitions(session: Session) -> list[AllowedTransition]:
    return await session.rows(AllowedTransition, "job_transitions")


def picture(rows: Sequence[AllowedTransition]) -> str:
    """A Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    for row in rows:
        start = row.prev_status or "[*]"
        lines.append(f"    {start} --> {row.next_status}: {row.meaning.replace(':', ' –')}")
    return "\n".join(lines)
