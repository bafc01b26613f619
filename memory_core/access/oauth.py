"""OAuth tokens: they must be signed by the issuer, be meant for this server and be in force.

| claim | is |
|---|---|
| `sub` | the user |
| `tenant` | the tenant, by name or id; without it, the default one |
| `groups` | the user's groups |
| `scope` or `scp` | read, write, admin, with or without the prefix `memory:` |
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from memory_core.access.bounded import BoundedDict
from memory_core.access.credential import Credential
from memory_core.access.signing_keys import ALGORITHMS, SigningKeys
from memory_core.access.tenants import NamedTenant
from memory_core.kernel.database import Database
from memory_core.kernel.principal import DEFAULT_TENANT, SCOPES, SYSTEM_USER, Principal

# The allowed difference between the clocks of issuer and server.
LEEWAY_SECONDS = 30
# The maximum age of a cached tenant.
FRESH_SECONDS = 0.5
_MAX_NAME = 200
_MAX_GROUPS = 200
_SCOPE_PREFIX = "memory:"


@dataclass(frozen=True, slots=True)
class _Tenant:
    id: UUID | None  # None: there is no such tenant, or it is suspended
    at: float


class OAuthVerifier:
    def __init__(
        self,
        database: Callable[[], Awaitable[Database]],
        issuer: str,
        audience: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._issuer = issuer
        self._audience = audience
        self._clock = clock
        self._keys = SigningKeys(issuer, clock=clock)
        self._tenants: BoundedDict[str, _Tenant] = BoundedDict(10_000)

    async def verify(self, token: str, address: str) -> Credential | None:
        claims = await self._claims(token)
        if claims is None:
            return None
        user = claims["sub"]
        if not _is_name(user) or user == SYSTEM_USER:
            return None
        tenant_id = await self._tenant(claims.get("tenant", str(DEFAULT_TENANT)))
        if tenant_id is None:
            return None
        principal = Principal(tenant_id, user, _groups(claims), _scopes(claims))
        client = claims.get("client_id") or claims.get("azp") or user
        return Credential(principal, client=str(client)[:_MAX_NAME], issuer=self._issuer)

    async def close(self) -> None:
        """Does nothing: the verifier holds no connection."""

    async def _claims(self, token: str) -> dict[str, Any] | None:
        import jwt

        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            return None
        name = header.get("kid")
        if header.get("alg") not in ALGORITHMS or not isinstance(name, str | None):
            return None
        key = await self._keys.find(name)
        if key is None:
            return None
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                # The key's own algorithm, whatever the token claims.
                algorithms=[key.algorithm_name],
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        return claims

    async def _tenant(self, name: object) -> UUID | None:
        if not _is_name(name):
            return None
        cached = self._tenants.get(str(name))
        if cached is None or self._clock() - cached.at > FRESH_SECONDS:
            at = self._clock()
            database = await self._database()
            async with database.session() as session:
                tenant = await session.row(NamedTenant, "tenant_named", name=name)
            is_active = tenant is not None and tenant.status == "active"
            cached = _Tenant(tenant.tenant_id if tenant is not None and is_active else None, at)
            self._tenants.put(str(name), cached)
        return cached.id


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_NAME and value.isprintable()


def _groups(claims: Mapping[str, Any]) -> frozenset[str]:
    listed = claims.get("groups", [])
    names = listed if isinstance(listed, list) else [listed]
    return frozenset([name for name in names if _is_name(name)][:_MAX_GROUPS])


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    given = claims.get("scope", claims.get("scp", ""))
    words = given.split() if isinstance(given, str) else given if isinstance(given, list) else []
    return SCOPES & {str(word).removeprefix(_SCOPE_PREFIX) for word in words}
