"""Types of changes as people write them: `artifact.created,memory.*`."""

import re

from memory_core.kernel.errors import InvalidInput
from memory_core.log.change import ChangeType


def change_types(text: str | None) -> list[str] | None:
    """Expand the names, which may contain `*`. None means all types."""
    if text is None:
        return None
    names = [kind.value for kind in ChangeType]
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    chosen: set[str] = set()
    for name in wanted:
        pattern = re.escape(name).replace(r"\*", ".*")
        matching = {kind for kind in names if re.fullmatch(pattern, kind)}
        if not matching:
            raise InvalidInput(
                f"{name[:80]!r} is no type of change. There are: {', '.join(names)}.",
                details={"allowed": names},
            )
        chosen |= matching
    if not chosen:
        raise InvalidInput(f"Name at least one type of change: {', '.join(names)}.")
    return [kind for kind in names if kind in chosen]
