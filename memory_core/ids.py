"""Identifiers: how they are made, and how the ones that come from outside are read."""

import hashlib
import re
import unicodedata
from uuid import UUID, uuid4

from memory_core.errors import InvalidInput

_HEX = 16
_SLUG_LENGTH = 40


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def artifact_uid(source_system: str, source_id: str | None) -> str:
    """The same for every revision of one document; random when the source gives no id."""
    if source_id:
        return "uid_" + sha256(f"{source_system}:{source_id}")[:_HEX]
    return "uid_" + uuid4().hex[:_HEX]


def revision_id(content_hash: str) -> str:
    return "rev_" + content_hash[:_HEX]


def artifact_id(uid: str, revision: str) -> str:
    """Per revision, so that old revisions stay readable."""
    return "art_" + sha256(f"{uid}:{revision}")[:_HEX]


def chunk_id(artifact: str, index: int, chunk_hash: str) -> str:
    return f"{artifact}::chunk::{index:03d}::{chunk_hash[:8]}"


def memory_id(memory_type: str, content_hash: str) -> str:
    return "mem_" + sha256(f"{memory_type}:{content_hash}")[:_HEX]


def partition_key(name: str | None, uid: str, revision: str) -> str:
    """What a person sees in the Dagster UI for this revision."""
    return f"{_slug(name or '') or 'untitled'}:{uid}:{revision}"


def parse_uuid(parameter: str, value: str) -> UUID:
    """A UUID as we print it, or with the prefix of the documentation (evt_, job_, evi_)."""
    bare = re.sub(r"^(?:evt|job|evi)_", "", value.strip())
    try:
        return UUID(bare)
    except ValueError:
        raise InvalidInput(
            f"{parameter}={value!r} is not an id of ours: expected a UUID, as the tools return it.",
            details={"parameter": parameter},
        ) from None


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).lower()
    return re.sub(r"[^\w]+", "-", plain).strip("-_")[:_SLUG_LENGTH].rstrip("-_")
