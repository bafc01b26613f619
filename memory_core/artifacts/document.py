"""A document as it arrives, before it becomes a revision."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memory_core.kernel.errors import InvalidInput

MAX_CONTENT_CHARS = 10_000_000
# Limit of source_system and source_id together, in bytes of UTF-8: what an index of Postgres can
# hold.
MAX_SOURCE_BYTES = 2_600
# A name, or a name with an address.
MAX_PARTICIPANT_CHARS = 1_000


class ArtifactType(StrEnum):
    EMAIL = "email"
    DOC = "doc"
    CHAT = "chat"
    TRANSCRIPT = "transcript"
    NOTE = "note"


class Sensitivity(StrEnum):
    NORMAL = "normal"
    SENSITIVE = "sensitive"
    HIGHLY_SENSITIVE = "highly_sensitive"


class VisibilityScope(StrEnum):
    ME = "me"
    TEAM = "team"
    ORG = "org"
    CUSTOM = "custom"


class RetentionPolicy(StrEnum):
    FOREVER = "forever"
    ONE_YEAR = "1y"
    UNTIL_RESOLVED = "until_resolved"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class Document:
    artifact_type: ArtifactType
    source_system: str
    content: str
    source_id: str | None = None
    source_url: str | None = None
    title: str | None = None
    author: str | None = None
    participants: tuple[str, ...] = ()
    ts: datetime | None = None
    # None: not given. A new document gets normal, me and forever; a known one keeps what it has.
    sensitivity: Sensitivity | None = None
    visibility_scope: VisibilityScope | None = None
    retention_policy: RetentionPolicy | None = None
    # For the scope "custom": who sees it in addition to the owner, as "user:NAME" and "group:NAME".
    visible_to: tuple[str, ...] = ()
    # For the retention policy "custom".
    expires_at: datetime | None = None

    def __post_init__(self) -> None:
        for member in self.visible_to:
            refuse_unstorable("visible_to", member)
        refuse_unstorable("content", self.content, allow_nul=True)
        for name in ("source_system", "source_id", "source_url", "title", "author"):
            refuse_unstorable(name, getattr(self, name))
        for participant in self.participants:
            refuse_unstorable("participants", participant)
            if len(participant) > MAX_PARTICIPANT_CHARS:
                raise InvalidInput(
                    f"A participant has {len(participant):,} characters; at most "
                    f"{MAX_PARTICIPANT_CHARS:,} are allowed. Give one name or address each.",
                    details={
                        "parameter": "participants",
                        "allowed": f"{MAX_PARTICIPANT_CHARS} characters each",
                    },
                )
        if not self.content or self.content.isspace():
            raise InvalidInput(
                "content is empty or only white space: there is nothing to remember.",
                details={"parameter": "content", "allowed": f"1 to {MAX_CONTENT_CHARS} characters"},
            )
        if len(self.content) > MAX_CONTENT_CHARS:
            raise InvalidInput(
                f"content has {len(self.content):,} characters; at most {MAX_CONTENT_CHARS:,} are "
                "allowed. Split the document and ingest the parts with a source_id each.",
                details={"parameter": "content", "allowed": f"1 to {MAX_CONTENT_CHARS} characters"},
            )
        source_bytes = len(f"{self.source_system}{self.source_id or ''}".encode())
        if source_bytes > MAX_SOURCE_BYTES:
            raise InvalidInput(
                f"source_system and source_id take {source_bytes:,} bytes together; at most "
                f"{MAX_SOURCE_BYTES:,} are allowed. Give a shorter id, such as a hash of this one.",
                details={"parameter": "source_id", "allowed": f"{MAX_SOURCE_BYTES} bytes"},
            )
        if not self.source_system.strip():
            raise InvalidInput(
                "source_system is empty: name where the document comes from, such as gmail.",
                details={"parameter": "source_system"},
            )


def refuse_unstorable(parameter: str, text: str | None, *, allow_nul: bool = False) -> None:
    """Refuse text that is not valid Unicode (lone surrogates) and, in short fields, U+0000."""
    if text is None:
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{parameter} contains a lone surrogate (U+{ord(text[error.start]):04X} at character "
            f"{error.start}), which is not text. Decode the source properly and send it again.",
            details={"parameter": parameter, "position": error.start},
        ) from None
    if not allow_nul and "\x00" in text:
        raise InvalidInput(
            f"{parameter} contains the character U+0000, which is only allowed in content.",
            details={"parameter": parameter, "position": text.index("\x00")},
        )
