"""A client for the part of Chroma's HTTP interface that the memory uses.

The library's own client takes 0.7 s of CPU to import, in every run, command and server, before
the first vector moves; and several milliseconds of checks per call. The server is the library's.
"""

import base64
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import orjson

from memory_core.index.http1 import HttpFault, Server

_DATABASE = "/tenants/default_tenant/databases/default_database"
UNIX = "unix:"
# A collection that is not there, and one that went while it was being asked.
_GONE = (404, 412)


class ChromaFault(Exception):
    """No answer, or none of Chroma's."""


class ChromaRefusal(ChromaFault):
    """The server answered, and said no."""


class NoSuchCollection(ChromaRefusal):
    pass


class ChromaClient:
    def __init__(self, host: str, port: int) -> None:
        """`host`: a name, a URL (http, https), or `unix:` and the path of a socket."""
        if host.startswith(UNIX):
            self._server = Server("http://localhost/api/v2", host.removeprefix(UNIX))
            return
        root = host.rstrip("/") if "://" in host else f"http://{host}:{port}"
        self._server = Server(f"{root}/api/v2")

    async def heartbeat(self) -> None:
        await self.send("GET", "/heartbeat")

    async def find(self, name: str) -> "Collection":
        answer = await self.send("GET", f"{_DATABASE}/collections/{name}")
        return Collection(self, answer["id"], answer["metadata"] or {})

    async def make(self, name: str, metadata: dict[str, str | int]) -> "Collection":
        """By cosine distance; the one that is there, if it is there."""
        answer = await self.send(
            "POST",
            f"{_DATABASE}/collections",
            {
                "name": name,
                "metadata": metadata,
                "configuration": {"hnsw": {"space": "cosine"}},
                "get_or_create": True,
            },
        )
        return Collection(self, answer["id"], answer["metadata"] or {})

    async def existing(self) -> "dict[str, Collection]":
        """By name. Makes none."""
        found = await self.send("GET", f"{_DATABASE}/collections")
        return {
            item["name"]: Collection(self, item["id"], item["metadata"] or {}) for item in found
        }

    async def labels(self) -> dict[str, dict[str, Any]]:
        """The metadata of every collection, by name."""
        return {name: found.metadata for name, found in (await self.existing()).items()}

    async def drop(self, name: str) -> None:
        await self.send("DELETE", f"{_DATABASE}/collections/{name}")

    async def send(self, method: str, path: str, body: object = None) -> Any:
        content = b"" if body is None else orjson.dumps(body)
        try:
            answer = await self._server.exchange(method, path, content)
            if answer.is_success:
                return orjson.loads(answer.body)
        except (HttpFault, OSError, orjson.JSONDecodeError) as error:
            raise ChromaFault(f"{type(error).__name__}: {error}") from error
        refusal = NoSuchCollection if answer.status in _GONE else ChromaRefusal
        raise refusal(f"{answer.status}: {answer.body[:300].decode(errors='replace')}")

    def close(self) -> None:
        self._server.close()


@dataclass(frozen=True, slots=True)
class Collection:
    client: ChromaClient
    id: str
    metadata: dict[str, Any]

    async def count(self) -> int:
        path = f"{_DATABASE}/collections/{self.id}/count"
        return cast(int, await self.client.send("GET", path))

    async def upsert(
        self,
        ids: Sequence[str],
        vectors: Sequence[Sequence[float]],
        metadatas: Sequence[dict[str, Any]],
    ) -> None:
        await self._post(
            "upsert",
            ids=list(ids),
            embeddings=[_packed(vector) for vector in vectors],
            metadatas=list(metadatas),
        )

    async def delete(self, ids: Sequence[str]) -> None:
        await self._post("delete", ids=list(ids))

    async def get(
        self,
        *,
        ids: Sequence[str] | None = None,
        where: dict[str, Any] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        include: Sequence[Literal["embeddings", "metadatas", "documents"]] = (),
    ) -> dict[str, Any]:
        return await self._post(
            "get", ids=ids, where=where, limit=limit, offset=offset, include=include
        )

    async def query(
        self,
        vector: Sequence[float],
        limit: int,
        where: dict[str, Any] | None = None,
        ids: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        return await self._post(
            "query",
            query_embeddings=[list(vector)],
            n_results=limit,
            where=where,
            ids=ids,
            include=["distances"],
        )

    async def _post(self, action: str, **body: object) -> dict[str, Any]:
        path = f"{_DATABASE}/collections/{self.id}/{action}"
        return cast(dict[str, Any], await self.client.send("POST", path, body))


def _packed(vector: Sequence[float]) -> str:
    """Little-endian 32-bit floats in base64: a quarter of the size of decimal figures."""
    return base64.b64encode(array("f", vector).tobytes()).decode()
