"""API keys: created, listed and revoked. A key is `mcpmem_`, ten characters that identify it, and a
secret.

The fixed start and the checksum at the end let secret scanners recognise a leaked key without false
alarms: `mcpmem_[0-9A-Za-z]{10}_[0-9A-Za-z]{49}`.
"""

import re
import secrets
import zlib
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from memory_core.access import tenants
from memory_core.kernel.database import Session
from memory_core.kernel.errors import InvalidInput, NotFound
from memory_core.kernel.principal import SCOPES, SYSTEM_USER
from memory_core.log.change import ChangeType, of_key

if TYPE_CHECKING:
    from argon2 import PasswordHasher

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_START = "mcpmem_"
_NAME_CHARS, _SECRET_CHARS, _CHECKSUM_CHARS = 10, 43, 6
PATTERN = re.compile(rf"({_START}[0-9A-Za-z]{{{_NAME_CHARS}}})_([0-9A-Za-z]{{49}})", re.ASCII)
_MAX_NAME = 200
_MAX_GROUPS = 100


@dataclass(frozen=True, slots=True)
class AccessKey:
    prefix: str
    tenant_id: UUID
    tenant: str
    user: str
    groups: list[str]
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    def as_json(self) -> dict[str, Any]:
        """Without the secret."""
        return {
            "prefix": self.prefix,
            "tenant": self.tenant,
            "user": self.user,
            "groups": self.groups,
            "scopes": self.scopes,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "last_used_at": self.last_used_at,
            "revoked_at": self.revoked_at,
        }


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key with its full text, which is shown only once, to its creator."""

    key: AccessKey
    text: str = field(repr=False)


def new_text() -> str:
    """The text of a new key, with 256 secret bits."""
    body = _random(_NAME_CHARS) + "_" + _random(_SECRET_CHARS)
    return f"{_START}{body}{checksum(_START + body)}"


def prefix_of(text: str) -> str | None:
    """The part that identifies the key; None if the text cannot be a key."""
    match = PATTERN.fullmatch(text)
    if match is None or checksum(text[:-_CHECKSUM_CHARS]) != text[-_CHECKSUM_CHARS:]:
        return None
    return match[1]


@cache
def hasher() -> "PasswordHasher":
    """Argon2id with the minimum parameters that OWASP recommends: about 16 ms of one core."""
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


async def create(
    session: Session,
    *,
    tenant: str,
    user: str,
    groups: Collection[str] = (),
    scopes: Collection[str] = ("read", "write"),
    days: int | None = None,
) -> NewKey:
    """Create a key. This is the only moment at which its text is known."""
    name = _name("user", user)
    if name == SYSTEM_USER:
        raise InvalidInput(f"{SYSTEM_USER!r} is the memory itself: choose another name.")
    members = sorted({_name("group", group) for group in groups})
    if len(members) > _MAX_GROUPS:
        raise InvalidInput(f"A key has at most {_MAX_GROUPS} groups.")
    allowed = _scopes(scopes)
    owner = await tenants.find(session, tenant)
    text = new_text()
    prefix = prefix_of(text)
    assert prefix is not None
    await session.run(
        "add_key",
        prefix=prefix,
        hash=hasher().hash(text),
        tenant_id=owner.tenant_id,
        user_id=name,
        groups=members,
        scopes=allowed,
        days=days,
    )
    await tenants.append_to(session, owner.tenant_id, of_key(ChangeType.KEY_CREATED, prefix))
    [key] = await _beginning_with(session, prefix)
    return NewKey(key, text)


async def list_keys(session: Session, tenant: str | None = None) -> list[AccessKey]:
    tenant_id = (await tenants.find(session, tenant)).tenant_id if tenant is not None else None
    return await session.rows(AccessKey, "list_keys", tenant_id=tenant_id)


async def revoke(session: Session, text: str) -> AccessKey:
    """Revoke by the prefix or its first characters. Revoking a revoked key changes nothing."""
    start = re.split(r"_(?=[0-9A-Za-z]{49}$)", text.strip())[0]  # a whole key works as well
    matching: list[AccessKey] = []
    if len(start) > len(_START) and re.fullmatch(r"\w+", start, re.ASCII):
        matching = await _beginning_with(session, start)
    if not matching:
        raise NotFound("There is no such key: `mcp-memory keys list` shows them.")
    if len(matching) > 1:
        raise InvalidInput("Several keys begin with this prefix: give more of it.")
    [key] = matching
    if key.revoked_at is not None:
        return key
    await session.run("revoke_key", prefix=key.prefix)
    await tenants.append_to(session, key.tenant_id, of_key(ChangeType.KEY_REVOKED, key.prefix))
    [revoked] = await _beginning_with(session, key.prefix)
    return revoked


async def _beginning_with(session: Session, start: str) -> list[AccessKey]:
    """At most two keys with this prefix: enough to see whether it is unique."""
    return await session.rows(AccessKey, "find_keys", start=start.replace("_", "\\_"))


def _name(what: str, text: str) -> str:
    name = text.strip()
    if not name or len(name) > _MAX_NAME or not name.isprintable():
        raise InvalidInput(f"A {what} is a name of 1 to {_MAX_NAME} printable characters.")
    return name


def _scopes(scopes: Collection[str]) -> list[str]:
    wanted = {scope.strip().lower() for scope in scopes}
    if not wanted or wanted - SCOPES:
        raise InvalidInput("Scopes are one or more of read, write and admin.")
    return [scope for scope in ("read", "write", "admin") if scope in wanted]


def _random(chars: int) -> str:
    return "".join(secrets.choice(_DIGITS) for _ in range(chars))


def checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), []
    for _ in range(_CHECKSUM_CHARS):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
