"""Items: what parsers return for a file, and the errors for files that cannot be used."""

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from memory_core.artifacts.document import ArtifactType
from memory_core.text.printable import single_line

_TITLE_CHARS = 500
_NAME_CHARS = 300
_PARTICIPANTS = 200


class Unusable(Exception):
    """A file, or a part of one, cannot be imported. The message says why, for people."""

    kind: Literal["skipped", "failed"] = "failed"


class Skip(Unusable):
    """The file is not meant to be imported; nothing is wrong with it."""

    kind = "skipped"


@dataclass(frozen=True, slots=True)
class Item:
    """A future artifact. `key` identifies it within its file. If a source has its own ids
    (`global_id`), that id is used everywhere."""

    artifact_type: ArtifactType
    source_system: str
    text: str
    key: str | None = None
    global_id: str | None = None
    title: str | None = None
    author: str | None = None
    participants: tuple[str, ...] = ()
    ts: datetime | None = None
    thread: str | None = None

    def packed(self) -> dict[str, Any]:
        """As JSON, for the answer of a sandboxed parser."""
        return {**asdict(self), "ts": self.ts.isoformat() if self.ts else None}

    @classmethod
    def unpacked(cls, fields: dict[str, Any]) -> "Item":
        made = {
            "artifact_type": ArtifactType(fields["artifact_type"]),
            "participants": tuple(fields["participants"]),
            "ts": datetime.fromisoformat(fields["ts"]) if fields["ts"] else None,
        }
        return cls(**{**fields, **made})

    def tidied(self) -> "Item":
        """With names and titles on one line, without control characters, of bounded length. The
        text is unchanged."""
        people = (single_line(name, _NAME_CHARS) for name in self.participants[:_PARTICIPANTS])
        return replace(
            self,
            title=single_line(self.title or "", _TITLE_CHARS) or None,
            author=single_line(self.author or "", _NAME_CHARS) or None,
            participants=tuple(dict.fromkeys(person for person in people if person)),
        )
