"""A client for the part of Chroma's HTTP interface that the memory uses.

The library's own client takes 0.7 s of CPU to import, in every run, command and server, and several
milliseconds of checks per call. The server is the library's own.
"""

import base64
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import httpcore
import orjson

_DATABASE = "/tenants/default_tenant/databases/default_database"
UNIX = "unix:"
# The collection does not exist, or was deleted during the request.
_GONE = (404, 412)
_AT_ONCE = 32
# Servers close idle connections. We close them first, so that none closes during a request.
_KEPT_SECONDS = 30.0


class ChromaFault(Exception):
    """There was no answer, or none in Chroma's format."""


class ChromaRefusal(ChromaFault):
    """The server answered with an error."""


class NoSuchCollection(ChromaRefusal):
    pass


class ChromaClient:
    def __init__(self, host: str, port: int) -> None:
        """`host`: a name, a URL (http, https), or `unix:` and the path of a socket."""
        socket = host.removeprefix(UNIX) if host.startswith(UNIX) else None
        url = "http://localhost" if socket else host if "://" in host else f"http://{host}:{port}"
        parts = urlsplit(url.rstrip("/"))
        self._root = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}/api/v2"
        self._headers = [("content-type", "application/json"), ("accept", "application/json")]
        if parts.username is not None:
            secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers.append(("authorization", f"Basic {base64.b64encode(secret).decode()}"))
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context() if parts.scheme == "https" else None,
            max_connections=_AT_ONCE,
            keepalive_expiry=_KEPT_SECONDS,
            uds=socket,
        )

    async def heartbeat(self) -> None:
        await self.send("GET", "/heartbeat")

    async def find(self, name: str) -> "Collection":
        return self._collection(await self.send("GET", f"{_DATABASE}/collections/{name}"))

    async def make(self, name: str, metadata: dict[str, str | int]) -> "Collection":
        """Create a collection with cosine distance, or return the existing one."""
        wanted = {
            "name": name,
            "metadata": metadata,
            "configuration": {"hnsw": {"space": "cosine"}},
            "get_or_create": True,
        }
        return self._collection(await self.send("POST", f"{_DATABASE}/collections", wanted))

    async def existing(self) -> "dict[str, Collection]":
        """The existing collections by name; creates none."""
        listed = await self.send("GET", f"{_DATABASE}/collections")
        return {item["name"]: self._collection(item) for item in listed}

    async def labels(self) -> dict[str, dict[str, Any]]:
        """The metadata of every collection, by name."""
        return {name: collection.metadata for name, collection in (await self.existing()).items()}

    async def drop(self, name: str) -> None:
        await self.send("DELETE", f"{_DATABASE}/collections/{name}")

    async def send(self, method: str, path: str, body: object = None) -> Any:
        """Send a request. There is no time-out here."""
        content = b"" if body is None else orjson.dumps(body)
        try:
            answer = await self._pool.request(
                method, f"{self._root}{path}", headers=self._headers, content=content
            )
            if answer.status < 300:
                return orjson.loads(answer.content)
        except (*_FAULTS, OSError, orjson.JSONDecodeError) as error:
            raise ChromaFault(f"{type(error).__name__}: {error}") from error
        refusal = NoSuchCollection if answer.status in _GONE else ChromaRefusal
        raise refusal(f"{answer.status}: {answer.content[:300].decode(errors='replace')}")

    async def close(self) -> None:
        await self._pool.aclose()

    def _collection(self, description: dict[str, Any]) -> "Collection":
        return Collection(self, description["id"], description["metadata"] or {})


_FAULTS = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException)


@dataclass(frozen=True, slots=True)
class Collection:
    client: ChromaClient
    id: str
    metadata: dict[str, Any]

    async def call(self, action: str, **body: object) -> Any:
        """`action`: count, or get, query, upsert, delete with their arguments."""
        method = "GET" if action == "count" else "POST"
        path = f"{_DATABASE}/collections/{self.id}/{action}"
        return await self.client.send(method, path, body or None)
