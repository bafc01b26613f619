"""An OAuth issuer: it publishes keys over HTTP and signs whatever a test wants."""

import json
import socket
import threading
import time
from typing import Any, Self

import jwt
import uvicorn
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

AUDIENCE = "https://memory.example/mcp"


class SigningKey:
    def __init__(self, name: str, algorithm: str = "RS256") -> None:
        self.name, self.algorithm = name, algorithm
        self.private: Any
        if algorithm.startswith("ES"):
            self.private = ec.generate_private_key(ec.SECP256R1())
        else:
            self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def public(self) -> dict[str, Any]:
        kind: Any = ECAlgorithm if self.algorithm.startswith("ES") else RSAAlgorithm
        entry = json.loads(kind.to_jwk(self.private.public_key()))
        return {**entry, "kid": self.name, "alg": self.algorithm, "use": "sig"}

    @property
    def public_text(self) -> bytes:
        return self.private.public_key().public_bytes(  # type: ignore[no-any-return]
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )


class Issuer:
    def __init__(self) -> None:
        self.keys = [SigningKey("first")]
        self.more_entries: list[dict[str, Any]] = []
        self.fetched = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/realms/example"
        self.claimed_issuer = self.url
        app = Starlette(
            routes=[
                Route("/realms/example/.well-known/openid-configuration", self._metadata),
                Route("/realms/example/keys", self._published),
            ]
        )
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    async def _metadata(self, _: Request) -> JSONResponse:
        return JSONResponse({"issuer": self.claimed_issuer, "jwks_uri": f"{self.url}/keys"})

    async def _published(self, _: Request) -> JSONResponse:
        self.fetched += 1
        return JSONResponse({"keys": [*self.more_entries, *(key.public for key in self.keys)]})

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()
        self._socket.close()

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Those of a good token; None takes one out."""
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 600,
            "scope": "openid memory:read memory:write", "groups": ["sales"], **changes,
        }  # fmt: skip
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, key: SigningKey | None = None, **changes: Any) -> str:
        key = key or self.keys[0]
        return jwt.encode(
            self.claims(**changes), key.private, key.algorithm, headers={"kid": key.name}
        )
