"""Short ids: ids are shown by their first characters, and accepted if these are unique."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from memory_core.kernel import ids
from memory_core.kernel.database import Session
from memory_core.kernel.errors import InvalidInput, NotFound

SHOWN_DIGITS = 8
_FEWEST_DIGITS = 4
_CANDIDATES = 5
_UUID_DIGITS = 32
_PART = re.compile(r"(?:(?P<kind>uid|rev|art|evt|job)_)?(?P<digits>[0-9a-fA-F-]+)")


@dataclass(frozen=True, slots=True)
class IdMatch:
    """A candidate for a short id."""

    id: str
    name: str | None


def short(id_: str) -> str:
    """The first characters: enough for a person to copy, and usually unique."""
    kind, separator, digits = id_.rpartition("_")
    return f"{kind}{separator}{digits[:SHOWN_DIGITS]}"


async def find_artifact_uid(session: Session, text: str) -> str:
    """The document whose uid_… (or a revision's art_…) begins with this text."""
    kind, digits = _read(text, "uid", "art")
    if digits is None:
        return text.strip()
    if kind == "art":
        rows = await session.rows(IdMatch, "artifacts_by_revision_prefix", **_range("art_", digits))
    else:
        rows = await session.rows(IdMatch, "artifacts_by_prefix", **_range("uid_", digits))
    return _only(rows, text, what="document", by="mcp-memory documents list")


async def find_revision_id(session: Session, artifact_uid: str, text: str) -> str:
    kind, digits = _read(text, "rev")
    if digits is None:
        return text.strip()
    rows = await session.rows(
        IdMatch, "revisions_by_prefix", uid=artifact_uid, prefix=f"{kind or 'rev'}_{digits}"
    )
    what = f"revision of {short(artifact_uid)}"
    return _only(rows, text, what=what, by=f"mcp-memory documents show {short(artifact_uid)}")


async def find_event_id(session: Session, text: str) -> str:
    _, digits = _read(text, "evt", full=_UUID_DIGITS)
    if digits is None:
        return text.strip()
    rows = await session.rows(IdMatch, "events_by_prefix", **_uuid_range(digits))
    return _only(rows, text, what="event", by="mcp-memory events search")


async def find_job_id(session: Session, text: str) -> UUID:
    _, digits = _read(text, "job", full=_UUID_DIGITS)
    if digits is None:
        return ids.parse_uuid("job_id", text.strip())
    rows = await session.rows(IdMatch, "jobs_by_prefix", **_uuid_range(digits))
    return UUID(_only(rows, text, what="job", by="mcp-memory jobs list"))


def _read(text: str, *kinds: str, full: int = ids.DIGITS) -> tuple[str | None, str | None]:
    """Kind and digits of a short id. No digits if the id is complete, or is not one of ours."""
    match = _PART.fullmatch(text.strip())
    if match is None or (match["kind"] or kinds[0]) not in kinds:
        return None, None
    digits = match["digits"].replace("-", "").lower()
    if len(digits) >= full:
        return None, None
    if len(digits) < _FEWEST_DIGITS:
        raise InvalidInput(
            f"{text!r} is too short for an id: give at least {_FEWEST_DIGITS} characters of it."
        )
    return match["kind"], digits


def _range(kind: str, digits: str) -> dict[str, object]:
    """The range of all ids with this beginning. Both ends have an id's length, so that an index of
    any collation can be used."""
    return {
        "low": kind + digits.ljust(ids.DIGITS, "0"),
        "high": kind + digits.ljust(ids.DIGITS, "f"),
        "limit": _CANDIDATES + 1,
    }


def _uuid_range(digits: str) -> dict[str, object]:
    return {
        "low": UUID(digits.ljust(_UUID_DIGITS, "0")),
        "high": UUID(digits.ljust(_UUID_DIGITS, "f")),
        "limit": _CANDIDATES + 1,
    }


def _only(rows: Sequence[IdMatch], text: str, *, what: str, by: str) -> str:
    if not rows:
        raise NotFound(f"There is no {what} whose id begins with {text!r}. `{by}` shows the ids.")
    if len(rows) > 1:
        named = "; ".join(f"{row.id} {row.name or ''}".rstrip() for row in rows[:_CANDIDATES])
        more = " …" if len(rows) > _CANDIDATES else ""
        raise InvalidInput(
            f"{text!r} may mean more than one {what}. Give more of the id: {named}{more}",
            details={"candidates": [row.id for row in rows[:_CANDIDATES]]},
        )
    return rows[0].id
