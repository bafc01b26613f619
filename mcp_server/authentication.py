"""ASGI middleware: every route authenticates its client before it touches the memory.

Without AUTH there is no authentication: the server listens on this machine alone, for its one user.
"""

import asyncio
import contextlib
import re
from typing import Any

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from mcp_server.http_refusals import refuse
from memory_core.access.credential import Credential, Verifier, require
from memory_core.kernel.errors import ErrorCode, MemoryFault
from memory_core.kernel.principal import Principal, asking
from memory_core.log.origin import acting
from memory_core.web.guard import Application, Receive, Scope, Send

# What an unauthenticated client may request. /health tells it only whether the server is up.
HEALTH = "/health"
_OPEN_PREFIX = "/.well-known/oauth-protected-resource"
# The scope that a route needs; /mcp leaves it to each tool.
_SCOPES = {"/metrics": "admin"}
_NO_SCOPE = frozenset({"/mcp", HEALTH})
# How long an answer may continue after its credential has become invalid.
CHECK_SECONDS = 0.5
# A client that requests /health without a key.
_STRANGER = Principal(user="", scopes=frozenset())
_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/=-]{1,8192})", re.IGNORECASE | re.ASCII)


class Unauthenticated(MemoryFault):
    """One answer for a credential that is missing, unknown, wrong, expired or revoked."""

    code = ErrorCode.UNAUTHENTICATED

    def __init__(self) -> None:
        super().__init__(
            "This server asks for a key or a token: send the header `Authorization: Bearer …`. "
            "What was sent is missing, wrong, expired or revoked."
        )


class Authentication:
    def __init__(
        self, app: Application, verifier: Verifier, *, metadata_url: str | None = None
    ) -> None:
        """`metadata_url`: where clients read which issuer gives out tokens (RFC 9728)."""
        self._app = app
        self._verifier = verifier
        self._metadata_url = metadata_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008, "reason": "Not here."})
            return
        path = str(scope["path"])
        if path.startswith(_OPEN_PREFIX):
            await self._app(scope, receive, send)
            return
        try:
            credential = await self._credential(scope)
            if credential is None and path != HEALTH:
                raise Unauthenticated
            if credential is not None and path not in _NO_SCOPE:
                require(credential.principal, _SCOPES.get(path, "read"), path)
        except MemoryFault as fault:
            await self._refuse(fault, send)
            return
        await self._serve(scope, receive, send, credential)

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, credential: Credential | None
    ) -> None:
        if credential is None:
            with asking(_STRANGER):
                await self._app(scope, receive, send)
            return
        scope["user"] = AuthenticatedUser(access_token(credential))
        principal = credential.principal
        with (
            asking(principal),
            acting(actor_id=principal.user, user_id=principal.user, tenant_id=principal.tenant_id),
        ):
            await self._while_it_holds(scope, receive, send)

    async def _while_it_holds(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A stream may last for days, so it ends when the key that opened it becomes invalid."""
        answer = _Answer(send)
        with anyio.CancelScope() as lasting:
            watch = asyncio.create_task(self._watch(scope, lasting))
            try:
                await self._app(scope, receive, answer.send)
            finally:
                watch.cancel()
        if lasting.cancelled_caught:
            await (answer.end() if answer.begun else self._refuse(Unauthenticated(), send))

    async def _watch(self, scope: Scope, lasting: anyio.CancelScope) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            with contextlib.suppress(MemoryFault):  # Postgres is away: the next check decides
                if await self._credential(scope) is None:
                    lasting.cancel()
                    return

    async def _credential(self, scope: Scope) -> Credential | None:
        token = _token(scope)
        if token is None:
            return None
        client = scope.get("client")
        return await self._verifier.verify(token, client[0] if client else "")

    async def _refuse(self, fault: MemoryFault, send: Send) -> None:
        is_unknown = isinstance(fault, Unauthenticated)
        await refuse(fault, send, {"www-authenticate": self._challenge} if is_unknown else None)

    @property
    def _challenge(self) -> str:
        metadata = f', resource_metadata="{self._metadata_url}"' if self._metadata_url else ""
        return f'Bearer realm="mcp-memory", error="invalid_token"{metadata}'


class _Answer:
    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def send(self, message: Any) -> None:
        self.begun = True
        await self._send(message)

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _token(scope: Scope) -> str | None:
    """The token of exactly one Authorization header. A token in a URL would end up in logs."""
    sent = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    if len(sent) != 1:
        return None
    bearer = _BEARER.fullmatch(sent[0].decode("latin-1").strip())
    return bearer[1] if bearer else None


def access_token(credential: Credential) -> AccessToken:
    """What the SDK compares: a session can only be used with the credential that opened it. The SDK
    does not get the token itself."""
    principal = credential.principal
    return AccessToken(
        token="",
        client_id=credential.client,
        scopes=sorted(principal.scopes),
        subject=f"{principal.tenant_id}/{principal.user}",
        claims={"iss": credential.issuer} if credential.issuer else None,
    )
