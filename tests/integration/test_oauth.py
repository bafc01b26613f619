"""AUTH=oauth: tokens of an issuer that the test starts; what does not hold opens no route."""

import base64
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import jwt
import psycopg
import pytest

from memory_core.access import signing_keys
from memory_core.access.oauth import OAuthVerifier
from memory_core.access.signing_keys import IssuerUnavailable
from memory_core.kernel.database import Database
from memory_core.kernel.principal import Principal
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from tests.access_server import ROUTES, AccessServer, make_tenant
from tests.oauth_issuer import AUDIENCE, Issuer, SigningKey

WORD = "quillfeather"
HERE = "127.0.0.1"
METADATA = "https://memory.example/.well-known/oauth-protected-resource/mcp"


@pytest.fixture(scope="module")
def lasting_issuer() -> Iterator[Issuer]:
    with Issuer() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def server(services: Settings, lasting_issuer: Issuer) -> Iterator[AccessServer]:
    with AccessServer(
        services, auth="oauth", oauth_issuer=lasting_issuer.url, oauth_audience=AUDIENCE
    ) as server:
        yield server


def unsigned(issuer: Issuer) -> str:
    return jwt.encode(issuer.claims(), None, "none", headers={"kid": "first"})


def signed_with_the_public_key(issuer: Issuer) -> str:
    """As a library is fooled that takes the algorithm from the token: HMAC, with what all know."""
    parts = [{"alg": "HS256", "typ": "JWT", "kid": "first"}, issuer.claims()]
    body = b".".join(_encoded(json.dumps(part).encode()) for part in parts)
    mac = hmac.digest(issuer.keys[0].public_text, body, "sha256")
    return (body + b"." + _encoded(mac)).decode()


def _encoded(text: bytes) -> bytes:
    return base64.urlsafe_b64encode(text).rstrip(b"=")


def tampered(issuer: Issuer) -> str:
    head, _, mac = issuer.token().split(".")
    body = _encoded(json.dumps(issuer.claims(sub="root")).encode()).decode()
    return f"{head}.{body}.{mac}"


NOW = int(time.time())
WRONG: dict[str, Any] = {
    "missing": lambda issuer: None,
    "no token": lambda issuer: "nonsense",
    "expired": lambda issuer: issuer.token(exp=NOW - 3600),
    "not yet": lambda issuer: issuer.token(nbf=NOW + 3600),
    "without an end": lambda issuer: issuer.token(exp=None),
    "without a user": lambda issuer: issuer.token(sub=None),
    "of the memory itself": lambda issuer: issuer.token(sub="system"),
    "for another service": lambda issuer: issuer.token(aud="https://other.example/mcp"),
    "for no service": lambda issuer: issuer.token(aud=None),
    "of another issuer": lambda issuer: issuer.token(iss="https://evil.example"),
    "of another issuer's key": lambda issuer: issuer.token(SigningKey("first")),
    "of a key that is not published": lambda issuer: issuer.token(SigningKey("other")),
    "unsigned": unsigned,
    "signed with the public key": signed_with_the_public_key,
    "tampered with": tampered,
    "of an unknown tenant": lambda issuer: issuer.token(tenant="nowhere"),
    "with a tenant that is no name": lambda issuer: issuer.token(tenant=["default"]),
}


class TestServer:
    async def test_a_token_opens_the_memory(
        self, server: AccessServer, runtime: Runtime, lasting_issuer: Issuer
    ) -> None:
        async with server.client(lasting_issuer.token()) as tools:
            note = {"artifact_type": "note", "source_system": "notes"}
            stored = await tools("artifact_ingest", **note, content=f"The {WORD} was decided on.")
            answer = await tools("artifact_get", artifact_uid=stored["artifact_uid"])
        assert WORD in answer["content"]

    @pytest.mark.parametrize("what", WRONG)
    def test_what_does_not_hold_opens_no_route(
        self, server: AccessServer, runtime: Runtime, lasting_issuer: Issuer, what: str
    ) -> None:
        token = WRONG[what](lasting_issuer)
        for path in sorted(ROUTES.keys() - {"/health"}):
            answer = server.ask(path, token)
            assert (answer.status_code, answer.json()["error_code"]) == (401, "UNAUTHENTICATED")
            assert f'resource_metadata="{METADATA}"' in answer.headers["www-authenticate"]
        assert server.ask("/health", token).json() == {"status": "up"}

    def test_clients_without_a_token_learn_where_to_get_one(
        self, server: AccessServer, lasting_issuer: Issuer
    ) -> None:
        metadata = server.ask("/.well-known/oauth-protected-resource/mcp").json()
        assert metadata["resource"] == AUDIENCE
        assert metadata["authorization_servers"] == [lasting_issuer.url]

    async def test_scopes_are_those_of_the_token(
        self, server: AccessServer, runtime: Runtime, lasting_issuer: Issuer
    ) -> None:
        async with server.client(lasting_issuer.token(scope="read")) as tools:
            refused = await tools.refusal("memory_delete", memory_id="x")
        assert refused["error_code"] == "FORBIDDEN"
        assert server.ask("/metrics", lasting_issuer.token(scope="read")).status_code == 403


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as issuer:
        yield issuer


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def verifier(database: Database, issuer: Issuer, clock: Clock) -> OAuthVerifier:
    async def opened() -> Database:
        return database

    return OAuthVerifier(opened, issuer.url, AUDIENCE, clock=clock)


class TestClaims:
    async def test_they_say_who_asks(
        self, verifier: OAuthVerifier, issuer: Issuer, settings: Settings
    ) -> None:
        with psycopg.connect(settings.dsn, autocommit=True) as sql:
            acme = make_tenant(sql, "acme")
        for tenant in ("acme", acme):
            token = issuer.token(tenant=tenant, scope=None, scp=["read", "memory:admin", "x"])
            credential = await verifier.verify(token, HERE)
            assert credential is not None
            assert credential.principal == Principal(
                UUID(acme), "alice", frozenset({"sales"}), frozenset({"read", "admin"})
            )

    async def test_a_token_without_scopes_may_do_nothing(
        self, verifier: OAuthVerifier, issuer: Issuer
    ) -> None:
        credential = await verifier.verify(issuer.token(scope=None), HERE)
        assert credential is not None
        assert credential.principal.scopes == frozenset()

    @pytest.mark.parametrize(("seconds", "holds"), [(10, True), (60, False)])
    async def test_clocks_may_differ_a_little(
        self, verifier: OAuthVerifier, issuer: Issuer, seconds: int, holds: bool
    ) -> None:
        ended = issuer.token(exp=int(time.time()) - seconds)
        early = issuer.token(nbf=int(time.time()) + seconds)
        for token in (ended, early):
            assert (await verifier.verify(token, HERE) is not None) is holds

    async def test_a_suspended_tenant_is_refused(
        self, verifier: OAuthVerifier, issuer: Issuer, clock: Clock, settings: Settings
    ) -> None:
        with psycopg.connect(settings.dsn, autocommit=True) as sql:
            make_tenant(sql, "acme")
            token = issuer.token(tenant="acme")
            assert await verifier.verify(token, HERE) is not None
            sql.execute("UPDATE tenant SET status = 'suspended' WHERE name = 'acme'")
        clock.now += 0.9
        assert await verifier.verify(token, HERE) is None


class TestKeys:
    @pytest.mark.parametrize("algorithm", ["ES256", "PS256", "RS512"])
    async def test_other_algorithms_work_too(
        self, verifier: OAuthVerifier, issuer: Issuer, algorithm: str
    ) -> None:
        issuer.keys.append(SigningKey("second", algorithm))
        assert await verifier.verify(issuer.token(issuer.keys[1]), HERE) is not None

    async def test_a_key_is_used_with_its_own_algorithm_alone(
        self, verifier: OAuthVerifier, issuer: Issuer
    ) -> None:
        key = issuer.keys[0]
        other = jwt.encode(issuer.claims(), key.private, "PS256", headers={"kid": key.name})
        assert await verifier.verify(other, HERE) is None

    async def test_a_shared_secret_that_is_published_is_no_key(
        self, verifier: OAuthVerifier, issuer: Issuer
    ) -> None:
        secret = b"s" * 32
        issuer.more_entries = [
            {"kty": "oct", "kid": "shared", "alg": "HS256", "k": _encoded(secret).decode()},
            {"kty": "RSA", "kid": "broken"},
        ]
        token = jwt.encode(issuer.claims(), secret, "HS256", headers={"kid": "shared"})
        assert await verifier.verify(token, HERE) is None
        assert await verifier.verify(issuer.token(), HERE) is not None

    async def test_a_new_key_is_found_and_an_old_one_forgotten(
        self, verifier: OAuthVerifier, issuer: Issuer, clock: Clock
    ) -> None:
        old = issuer.token()
        assert await verifier.verify(old, HERE) is not None
        issuer.keys = [SigningKey("second")]
        clock.now += signing_keys.UNKNOWN_SECONDS + 1
        assert await verifier.verify(issuer.token(), HERE) is not None
        assert await verifier.verify(old, HERE) is None

    async def test_invented_names_do_not_make_us_ask_all_the_time(
        self, verifier: OAuthVerifier, issuer: Issuer
    ) -> None:
        for number in range(20):
            await verifier.verify(issuer.token(SigningKeyNamed(issuer, f"k{number}")), HERE)
        assert issuer.fetched == 1

    async def test_an_issuer_that_is_away_locks_out_no_one_it_knew(
        self, verifier: OAuthVerifier, issuer: Issuer, clock: Clock
    ) -> None:
        token = issuer.token()
        assert await verifier.verify(token, HERE) is not None
        issuer.stop()
        clock.now += signing_keys.FRESH_SECONDS + 1
        assert await verifier.verify(token, HERE) is not None
        clock.now += signing_keys.STALE_SECONDS
        with pytest.raises(IssuerUnavailable):
            await verifier.verify(token, HERE)

    async def test_a_document_of_another_issuer_counts_for_nothing(
        self, verifier: OAuthVerifier, issuer: Issuer
    ) -> None:
        issuer.claimed_issuer = "https://login.example"
        with pytest.raises(IssuerUnavailable):
            await verifier.verify(issuer.token(), HERE)


class SigningKeyNamed(SigningKey):
    """The first key under another name; making a new one takes long."""

    def __init__(self, issuer: Issuer, name: str) -> None:
        self.name, self.algorithm = name, "RS256"
        self.private = issuer.keys[0].private
