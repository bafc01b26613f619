"""One writer of an artifact at a time."""

from memory_core.kernel.database import Session


async def lock(session: Session, *uids: str) -> None:
    """Until the end of the transaction; also of artifacts, or memories, that do not exist yet."""
    await session.run("lock_artifacts", uids=list(uids))
