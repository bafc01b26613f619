"""Exchanges over HTTP/1.1 with servers that answer well, oddly or not at all."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from memory_core.index.http1 import HttpFault, Server

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Listener:
    """A server on this machine that does with each connection what it is told."""

    def __init__(self) -> None:
        self.connections = 0
        self.requests: list[bytes] = []

    @asynccontextmanager
    async def serving(self, answer: Handler) -> AsyncIterator[Server]:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            try:
                await answer(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        listening = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        server = Server(f"http://127.0.0.1:{port}/base")
        try:
            yield server
        finally:
            server.close()
            listening.close()

    async def request(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        self.requests.append(head + await reader.readexactly(length))
        return self.requests[-1]


@pytest.fixture
def listener() -> Listener:
    return Listener()


def always(listener: Listener, *parts: bytes, close: bool = False) -> Handler:
    """Answers every request with these bytes, each part sent on its own."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await listener.request(reader)
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
            if close:
                return

    return answer


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def test_a_connection_is_used_again(listener: Listener) -> None:
    async with listener.serving(always(listener, OK)) as server:
        for _ in range(3):
            answer = await server.exchange("POST", "/there", b"{}")
            assert (answer.status, answer.body, answer.is_success) == (200, b"ok", True)

    assert listener.connections == 1
    assert listener.requests[0].startswith(b"POST /base/there HTTP/1.1\r\nhost: 127.0.0.1:")
    assert listener.requests[0].endswith(b"\r\n\r\n{}")


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([OK[:1], OK[1:20], OK[20:-1], OK[-1:]], id="in pieces"),
        pytest.param(
            [CHUNKED + b"1\r\no\r\n", b"1\r\nk\r\n0\r\n\r\n"],
            id="chunked",
        ),
        pytest.param([OK.replace(b"HTTP/1.1", b"HTTP/1.0")], id="of the older version"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", OK], id="with a word before"),
    ],
)
async def test_answers_may_come_in_any_form(listener: Listener, parts: list[bytes]) -> None:
    async with listener.serving(always(listener, *parts)) as server:
        assert (await server.exchange("GET", "/")).body == b"ok"


async def test_what_the_server_closes_is_not_used_again(listener: Listener) -> None:
    closing = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"
    async with listener.serving(always(listener, closing, close=True)) as server:
        await server.exchange("GET", "/")
        await server.exchange("GET", "/")

    assert listener.connections == 2


async def test_a_connection_that_was_closed_while_idle_is_replaced(listener: Listener) -> None:
    async with listener.serving(always(listener, OK, close=True)) as server:
        await server.exchange("GET", "/")
        [idle] = server._idle
        while idle.is_usable:
            await asyncio.sleep(0)
        assert (await server.exchange("GET", "/")).is_success

    assert listener.connections == 2


async def test_what_was_said_unasked_is_nobody_s_answer(listener: Listener) -> None:
    """Whether it comes with the answer, or later."""
    unasked = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 3\r\n\r\nbye"
    for parts in ([OK + unasked], [OK, unasked]):
        listener.connections = 0
        async with listener.serving(always(listener, *parts)) as server:
            assert (await server.exchange("GET", "/")).body == b"ok"
            while server._idle and server._idle[0].is_usable:
                await asyncio.sleep(0)
            assert (await server.exchange("GET", "/")).body == b"ok"
        assert listener.connections == 2


async def test_refusals_are_answers(listener: Listener) -> None:
    refused = b"HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone"
    async with listener.serving(always(listener, refused)) as server:
        answer = await server.exchange("GET", "/")

    assert (answer.status, answer.body, answer.is_success) == (404, b"none", False)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(OK[:-1], id="cut short"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", id="no length"),
    ],
)
async def test_what_is_no_answer_is_a_fault(listener: Listener, answer: bytes) -> None:
    async with listener.serving(always(listener, answer, close=True)) as server:
        with pytest.raises(HttpFault):
            await server.exchange("GET", "/")
        assert server._idle == []


async def test_an_exchange_that_was_given_up_leaves_no_connection(listener: Listener) -> None:
    """Else the next one would read the answer to this one."""
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await listener.request(reader)
        asked.set()
        await reader.read()

    async with listener.serving(silent) as server:
        exchange = asyncio.create_task(server.exchange("GET", "/"))
        await asked.wait()
        exchange.cancel()
        with pytest.raises(asyncio.CancelledError):
            await exchange
        assert server._idle == []


async def test_a_server_that_is_not_there(listener: Listener) -> None:
    async with listener.serving(always(listener, OK)) as server:
        pass
    with pytest.raises(ConnectionRefusedError):
        await server.exchange("GET", "/")


async def test_many_at_once_wait_for_each_other(listener: Listener) -> None:
    async with listener.serving(always(listener, OK)) as server:
        answers = await asyncio.gather(*(server.exchange("GET", "/") for _ in range(100)))

    assert all(answer.body == b"ok" for answer in answers)
    assert listener.connections <= 32


async def test_a_name_and_password_in_the_address_are_sent(listener: Listener) -> None:
    async with listener.serving(always(listener, OK)) as server:
        port = server._port
        named = Server(f"http://me:se%2Fcret@127.0.0.1:{port}")
        await named.exchange("GET", "/")
        named.close()

    secret = base64.b64encode(b"me:se/cret")
    assert b"authorization: Basic " + secret in listener.requests[0]
    assert f"host: 127.0.0.1:{port}\r\n".encode() in listener.requests[0]
