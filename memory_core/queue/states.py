"""The states of a job and the ways between them, as the database has them, and as a picture."""

from collections.abc import Sequence

from memory_core.kernel.database import Row, Session


async def transitions(session: Session) -> list[Row]:
    return await session.all("job_transitions")


def picture(rows: Sequence[Row]) -> str:
    """A state diagram in Mermaid."""
    lines = ["stateDiagram-v2"]
    for row in rows:
        start = row["prev_status"] or "[*]"
        lines.append(f"    {start} --> {row['next_status']}: {row['meaning'].replace(':', ' –')}")
    return "\n".join(lines)
