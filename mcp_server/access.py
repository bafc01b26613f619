"""What the MCP server asks of its clients, by AUTH: nothing, a key, or a token of an issuer."""

from typing import Any

from mcp.server.auth.provider import AccessToken
from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl

from memory_core.access.credential import Credential, Verifier
from memory_core.access.key_verifier import KeyVerifier
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime

_CONNECTIONS = 2


class AccessDatabase:
    """A small pool of its own, opened with the first client: one who floods the tools and holds all
    of their connections keeps no other from being recognised."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._database: Database | None = None

    async def __call__(self) -> Database:
        await self._runtime.open()
        dsn = self._runtime.settings.dsn
        if self._database is None or self._database.dsn != dsn:
            await self.close()
            self._database = Database(dsn, max_connections=_CONNECTIONS)
            await self._database.open()
        return self._database

    async def close(self) -> None:
        if self._database is not None:
            await self._database.close()
            self._database = None


def verifier_of(settings: Settings, database: AccessDatabase) -> Verifier | None:
    """None where every client is the user of this machine."""
    if settings.auth == "keys":
        return KeyVerifier(database)
    if settings.auth == "oauth":
        from memory_core.access.oauth import OAuthVerifier

        assert settings.oauth_issuer is not None
        assert settings.oauth_audience is not None
        return OAuthVerifier(database, settings.oauth_issuer, settings.oauth_audience)
    return None


def sdk_options(settings: Settings, verifier: Verifier | None) -> dict[str, Any]:
    """With AUTH=oauth the SDK tells clients which issuer gives out tokens (RFC 9728), and looks at
    those that come to `/mcp` itself."""
    if settings.auth != "oauth" or verifier is None:
        return {}
    auth = AuthSettings(
        issuer_url=AnyHttpUrl(settings.oauth_issuer or ""),
        resource_server_url=AnyHttpUrl(settings.oauth_audience or ""),
        validate_token_resource=False,  # our verifier checks the audience
    )
    return {"auth": auth, "token_verifier": SdkVerifier(verifier)}


def metadata_url(settings: Settings) -> str | None:
    if settings.auth != "oauth":
        return None
    return str(build_resource_metadata_url(AnyHttpUrl(settings.oauth_audience or "")))


class SdkVerifier:
    """The same verifier as the SDK asks it, which looks at `/mcp` once more."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    async def verify_token(self, token: str) -> AccessToken | None:
        credential = await self._verifier.verify(token, "")
        return access_token(credential) if credential is not None else None


def access_token(credential: Credential) -> AccessToken:
    """What the SDK compares: a session can only be used by the credential that opened it. It is not
    given the token itself."""
    principal = credential.principal
    return AccessToken(
        token="",
        client_id=credential.client,
        scopes=sorted(principal.scopes),
        subject=f"{principal.tenant_id}/{principal.user}",
        claims={"iss": credential.issuer} if credential.issuer else None,
    )
