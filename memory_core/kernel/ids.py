"""Ids: how they are made, and how ids from outside are parsed."""

import hashlib
import re
import unicodedata
from uuid import UUID, uuid4

from memory_core.kernel import principal
from memory_core.kernel.errors import NotFound
from memory_core.kernel.principal import DEFAULT_TENANT, LOCAL, SYSTEM_USER

DIGITS = 16  # digits of the hash in an id
_SLUG_LENGTH = 27
# 36 to the power of 10: enough for a million revisions of one title.
_KEY_DIGITS = 10
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_KEY_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
# Our ids are far shorter.
_LONGEST = 200
_SHOWN = 60


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def artifact_uid(source_system: str, source_id: str | None) -> str:
    """The same for every revision of one document; random if the source gives no id.

    A colon in the system's name would make ("a:b", "c") and ("a", "b:c") the same document.
    """
    if not source_id:
        return "uid_" + uuid4().hex[:DIGITS]
    if ":" in source_system:
        return separated_uid(source_system, source_id)
    return joined_uid(source_system, source_id)


def joined_uid(source_system: str, source_id: str) -> str:
    return "uid_" + sha256(f"{_tenant()}{source_system}:{source_id}")[:DIGITS]


def separated_uid(source_system: str, source_id: str) -> str:
    """An id in which the two names cannot be confused: neither can contain U+0000."""
    return "uid_" + sha256(f"{_tenant()}{source_system}\0{source_id}")[:DIGITS]


def own_uid(source_system: str, source_id: str) -> str:
    """An id for a source whose usual id belongs to another user's document that this user cannot
    see."""
    user = principal.current().user
    return "uid_" + sha256(f"{_tenant()}{user}\0{source_system}\0{source_id}")[:DIGITS]


def _tenant() -> str:
    """The part of an id that separates tenants. It is empty for the default tenant, whose documents
    keep the ids from before there were tenants."""
    tenant = principal.current().tenant_id
    return "" if tenant == DEFAULT_TENANT else f"{tenant}\0"


def revision_id(content_hash: str) -> str:
    return "rev_" + content_hash[:DIGITS]


def artifact_id(uid: str, revision: str) -> str:
    """One id per revision, so that old revisions stay readable."""
    return "art_" + sha256(f"{uid}:{revision}")[:DIGITS]


def chunk_id(artifact: str, index: int, chunk_hash: str) -> str:
    return f"{artifact}::chunk::{index:03d}::{chunk_hash[:8]}"


def memory_id(memory_type: str, content_hash: str) -> str:
    return "mem_" + sha256(f"{owner_prefix()}{memory_type}:{content_hash}")[:DIGITS]


def own_key(key: str) -> str:
    """The key of a request, separate from the same key of another user."""
    prefix = owner_prefix()
    return sha256(f"{prefix}{key}") if prefix else key


def owner_prefix() -> str:
    """The prefix that separates users; empty for the user of this machine."""
    asking = principal.current()
    is_local = asking.tenant_id == DEFAULT_TENANT and asking.user in {LOCAL.user, SYSTEM_USER}
    return "" if is_local else f"{asking.tenant_id}\0{asking.user}\0"


def partition_key(name: str | None, uid: str, revision: str) -> str:
    """The partition key of this revision in the Dagster UI: its title, and a few digits. The UI
    cuts longer keys in the middle, or lets them overlap."""
    if principal.current().tenant_id != DEFAULT_TENANT:
        name = None  # the UI belongs to the operator, not to the tenant
    number = int(sha256(f"{uid}:{revision}"), 16)
    digits = ""
    while len(digits) < _KEY_DIGITS:
        number, digit = divmod(number, len(_KEY_ALPHABET))
        digits += _KEY_ALPHABET[digit]
    return f"{_slug(name or '') or 'untitled'}:{digits}"


def is_uuid(text: str) -> bool:
    """Whether it is a UUID exactly as we print it."""
    return _UUID.fullmatch(text) is not None


def parse_uuid(parameter: str, value: str) -> UUID:
    """A UUID as we print it, or with the prefix of the documentation (evt_, job_, evi_). Any other
    text raises NotFound, like an unknown UUID."""
    bare = re.sub(r"^(?:evt|job|evi)_", "", value.strip())
    try:
        return UUID(bare)
    except ValueError:
        raise _names_nothing(parameter, value) from None


def refuse_impossible(parameter: str, value: str) -> None:
    """Raise NotFound for an id that no store can contain, without asking a store."""
    storable = "\x00" not in value and not any("\ud800" <= char <= "\udfff" for char in value)
    if len(value) > _LONGEST or not storable:
        raise _names_nothing(parameter, value)


def _names_nothing(parameter: str, value: str) -> NotFound:
    shown = ascii(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!a}…"
    return NotFound(
        f"There is no {parameter.removesuffix('_id').removesuffix('_uid')} {shown}. Give the "
        f"{parameter} exactly as a tool or command returned it.",
        details={parameter: value[:_LONGEST].encode("ascii", "backslashreplace").decode()},
    )


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).lower()
    return re.sub(r"[^\w]+", "-", plain).strip("-_")[:_SLUG_LENGTH].rstrip("-_")
