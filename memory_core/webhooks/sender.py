"""One HTTP request to a receiver, with limits: a checked address, no redirects, little of the
answer read."""

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpcore
import httpx

from memory_core.webhooks.addresses import (
    AddressRefused,
    NameUnknown,
    Resolver,
    checked,
    parse_url,
    resolve,
)

CONNECT_SECONDS = 5.0
SEND_SECONDS = 15.0
# Only the head of the answer matters. A little of the body is read so that the connection can be
# reused.
_BODY_BYTES = 64_000
_BODY_SECONDS = 1.0
_RETRY_AFTER_LIMIT = 86_400.0


class SendFault(Exception):
    """There was no answer. The text names neither the URL nor anything that the receiver said."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    retry_after: float | None = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class _Pinned(httpcore.AsyncNetworkBackend):
    """Connects to checked addresses only; Host and certificate stay those of the name."""

    def __init__(self, resolver: Resolver, *, allow_private: bool) -> None:
        self._resolver = resolver
        self._allow_private = allow_private
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await checked(host, port, self._resolver, allow_private=self._allow_private)
        for number, address in enumerate(addresses, 1):
            try:
                return await self._network.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if number == len(addresses):
                    raise
        raise AssertionError("there is at least one address")

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        raise AddressRefused("the receiver must be reached over the network")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Sender:
    """`resolver`: maps names to addresses."""

    def __init__(
        self,
        *,
        allow_private: bool,
        resolver: Resolver = resolve,
        seconds: float = SEND_SECONDS,
    ) -> None:
        self._allow_private = allow_private
        self._resolver = resolver
        self._seconds = seconds
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def send(self, url: str, headers: dict[str, str], body: bytes) -> Answer:
        target = parse_url(url, allow_private=self._allow_private)
        try:
            async with asyncio.timeout(self._seconds) as limit:
                return await self._post(target, headers, body, limit)
        except (TimeoutError, httpcore.TimeoutException):
            raise SendFault(f"the receiver did not answer within {self._seconds:g} s") from None
        except (AddressRefused, NameUnknown) as refused:
            raise SendFault(str(refused)) from None
        except httpcore.ConnectError:
            raise SendFault("the receiver takes no connection, or its certificate is bad") from None
        except httpcore.ProtocolError:
            raise SendFault("the receiver does not speak HTTP") from None
        except (httpcore.NetworkError, OSError):
            raise SendFault("the connection to the receiver was lost") from None

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()
            self._pool = None

    async def _post(
        self, url: httpx.URL, headers: dict[str, str], body: bytes, limit: asyncio.Timeout
    ) -> Answer:
        if self._pool is None:
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=httpx.create_ssl_context(),
                network_backend=_Pinned(self._resolver, allow_private=self._allow_private),
                max_connections=64,
                max_keepalive_connections=16,
                keepalive_expiry=5.0,
            )
        timeouts = {"connect": CONNECT_SECONDS, "read": self._seconds, "write": self._seconds}
        async with self._pool.stream(
            "POST",
            str(url),
            headers=list(headers.items()),
            content=body,
            extensions={"timeout": timeouts},
        ) as response:
            answer = Answer(response.status, _retry_after(response.headers))
            limit.reschedule(None)  # it has answered, so the rest may take its time
            await _discard(response)
            return answer


async def _discard(response: httpcore.Response) -> None:
    """Close the connection if the rest is too slow or too long."""
    count = 0
    with contextlib.suppress(TimeoutError, httpcore.NetworkError, httpcore.ProtocolError):
        async with asyncio.timeout(_BODY_SECONDS):
            async for part in response.aiter_stream():
                count += len(part)
                if count > _BODY_BYTES:
                    return


def _retry_after(headers: list[tuple[bytes, bytes]]) -> float | None:
    values = [value for name, value in headers if name.lower() == b"retry-after"]
    if not values:
        return None
    text = values[0].decode("latin-1").strip()
    if text.isascii() and text.isdecimal():
        seconds = float(text[:12])
    else:
        try:
            until = parsedate_to_datetime(text)
        except ValueError:
            return None
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        seconds = (until - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), _RETRY_AFTER_LIMIT)
