"""The public keys of an OAuth issuer: fetched, cached, and fetched again when a token names an
unknown key."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from memory_core.kernel import tls
from memory_core.kernel.admission import is_loopback
from memory_core.kernel.errors import ErrorCode, MemoryFault

if TYPE_CHECKING:
    from jwt import PyJWK

# Only asymmetric algorithms. This excludes a token without a signature, and a token signed with a
# public key used as a shared secret.
ALGORITHMS = frozenset(
    {
        *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
        *("ES256", "ES384", "ES512", "EdDSA"),
    }
)
_KINDS = frozenset({"RSA", "EC", "OKP"})
FRESH_SECONDS = 300.0
# How often keys are fetched for an unknown name at most: any client can invent names.
UNKNOWN_SECONDS = 10.0
# While the issuer is away, tokens that it issued before are still accepted for this time.
STALE_SECONDS = 3600.0
_TIMEOUT = 5.0
_MAX_BYTES = 1_000_000
_DOCUMENTS = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")


class IssuerUnavailable(MemoryFault):
    code = ErrorCode.CONFIGURATION_ERROR


class SigningKeys:
    def __init__(self, issuer: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: dict[str | None, PyJWK] = {}
        self._fetched: float | None = None
        self._tried: float | None = None
        self._fetching = asyncio.Lock()

    async def find(self, name: str | None) -> "PyJWK | None":
        """The key of that name (`kid`). A token without a name means the only key."""
        if self._is_older_than(self._fetched, FRESH_SECONDS) or self._find(name) is None:
            await self._refresh(name)
        if self._fetched is None or self._is_older_than(self._fetched, STALE_SECONDS):
            raise IssuerUnavailable("The issuer of the tokens does not answer.")
        return self._find(name)

    def _find(self, name: str | None) -> "PyJWK | None":
        if name is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(name) if name is not None else None

    async def _refresh(self, name: str | None) -> None:
        async with self._fetching:
            is_known = self._find(name) is not None
            if is_known and not self._is_older_than(self._fetched, FRESH_SECONDS):
                return  # another call has fetched it meanwhile
            if not self._is_older_than(self._tried, UNKNOWN_SECONDS):
                return
            self._tried = self._clock()
            try:
                self._keys = await self._fetch()
                self._fetched = self._clock()
            except (httpx.HTTPError, ValueError, KeyError):
                return

    def _is_older_than(self, moment: float | None, seconds: float) -> bool:
        return moment is None or self._clock() - moment > seconds

    async def _fetch(self) -> "dict[str | None, PyJWK]":
        async with httpx.AsyncClient(timeout=_TIMEOUT, verify=tls.verify(self._issuer)) as client:
            for url in _metadata_urls(self._issuer):
                answer = await client.get(url)
                if answer.status_code == 200:
                    break
            metadata = _document(answer)
            # RFC 8414. Otherwise any site could claim to be any issuer.
            if metadata.get("issuer") != self._issuer:
                raise ValueError("the document is of another issuer")
            return _usable(_document(await client.get(_safe(str(metadata["jwks_uri"])))))


def _metadata_urls(issuer: str) -> list[str]:
    """RFC 8414 puts the well-known part before the issuer's path, OpenID Connect after it."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    before = [urlunsplit(parts._replace(path=document + path)) for document in _DOCUMENTS]
    return [*before, urlunsplit(parts._replace(path=path + _DOCUMENTS[1]))]


def _safe(url: str) -> str:
    parts = urlsplit(url)
    local = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if parts.scheme != "https" and not local:
        raise ValueError("keys come over https")
    return url


def _document(answer: httpx.Response) -> Mapping[str, Any]:
    answer.raise_for_status()
    if len(answer.content) > _MAX_BYTES:
        raise ValueError("the document is too long")
    document = answer.json()
    if not isinstance(document, dict):
        raise ValueError("the document is no object")
    return document


def _usable(document: Mapping[str, Any]) -> "dict[str | None, PyJWK]":
    """The keys that can verify signatures. An unusable key does not make the others fail."""
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    usable: dict[str | None, PyJWK] = {}
    for entry in document["keys"]:
        if entry.get("kty") not in _KINDS or entry.get("use", "sig") != "sig":
            continue
        try:
            key = PyJWK(entry)
        except (PyJWTError, ValueError):
            continue
        if key.algorithm_name in ALGORITHMS:
            usable[entry.get("kid")] = key
    return usable
