"""Access to the MCP server by AUTH: no proof, a key, or a token of an issuer; and the rate
limits."""

from typing import Any

from mcp.server.auth.provider import AccessToken
from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl

from mcp_server.authentication import Authentication, access_token
from mcp_server.rates import RateLimitedApp
from memory_core.access.calls_at_once import CallsAtOnce
from memory_core.access.credential import Verifier
from memory_core.access.key_verifier import KeyVerifier
from memory_core.access.rate_limits import RateLimiter
from memory_core.kernel.database import Database
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from memory_core.web.guard import Application

_CONNECTIONS = 2
_WHY = "keys are looked up before it is known who asks"


class AccessDatabase:
    """A small separate pool, opened with the first client: a client that floods the tools and holds
    all of their connections must not prevent others from authenticating."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._database: Database | None = None

    async def __call__(self) -> Database:
        await self._runtime.open()
        dsn = self._runtime.settings.dsn
        if self._database is None or self._database.dsn != dsn:
            await self.close()
            self._database = Database(dsn, max_connections=_CONNECTIONS, system=_WHY)
            await self._database.open()
        return self._database

    async def close(self) -> None:
        if self._database is not None:
            await self._database.close()
            self._database = None


class Access:
    """How the clients of one server authenticate, and how much they may ask."""

    def __init__(self, settings: Settings, runtime: Runtime, *, stdio: bool = False) -> None:
        self._settings = settings
        self._database = AccessDatabase(runtime)
        # None if every client is the user of this machine.
        self.verifier = None if stdio else self._make_verifier()
        self.limiter: RateLimiter | None = None
        if settings.calls_per_minute or settings.tenant_calls_per_minute:
            self.limiter = RateLimiter(
                self._database,
                of_user=settings.calls_per_minute,
                of_tenant=settings.tenant_calls_per_minute,
            )

    def guarded(self, app: Application) -> Application:
        """The application behind authentication and rate limits."""
        if self.limiter is not None or self.verifier is not None:
            many = CallsAtOnce(self._settings.rate_calls_at_once) if self.verifier else None
            app = RateLimitedApp(app, self.limiter, many)
        if self.verifier is not None:
            app = Authentication(app, self.verifier, metadata_url=metadata_url(self._settings))
        return app

    async def close(self) -> None:
        if self.verifier is not None:
            await self.verifier.close()
        if self.limiter is not None:
            await self.limiter.close()
        await self._database.close()

    def sdk_options(self) -> dict[str, Any]:
        """With AUTH=oauth the SDK tells clients which issuer gives out tokens (RFC 9728), and
        checks the tokens of requests to `/mcp` itself."""
        settings = self._settings
        if settings.auth != "oauth" or self.verifier is None:
            return {}
        auth = AuthSettings(
            issuer_url=AnyHttpUrl(settings.oauth_issuer or ""),
            resource_server_url=AnyHttpUrl(settings.oauth_audience or ""),
            validate_token_resource=False,  # our verifier checks the audience
        )
        return {"auth": auth, "token_verifier": SdkVerifier(self.verifier)}

    def _make_verifier(self) -> Verifier | None:
        settings = self._settings
        if settings.auth == "keys":
            return KeyVerifier(self._database)
        if settings.auth == "oauth":
            from memory_core.access.oauth import OAuthVerifier

            assert settings.oauth_issuer is not None
            assert settings.oauth_audience is not None
            return OAuthVerifier(self._database, settings.oauth_issuer, settings.oauth_audience)
        return None


def metadata_url(settings: Settings) -> str | None:
    if settings.auth != "oauth":
        return None
    return str(build_resource_metadata_url(AnyHttpUrl(settings.oauth_audience or "")))


class SdkVerifier:
    """Our verifier in the form that the SDK calls: the SDK checks requests to `/mcp` once more."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    async def verify_token(self, token: str) -> AccessToken | None:
        credential = await self._verifier.verify(token, "")
        return access_token(credential) if credential is not None else None
