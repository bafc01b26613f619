"""Exchanges with servers that answer well, oddly or not at all."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memory_core.index.chroma import ChromaClient, ChromaFault, ChromaRefusal, NoSuchCollection

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Listener:
    """A server on this machine that does with each connection what it is told."""

    def __init__(self) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self.port = 0

    @asynccontextmanager
    async def serving(self, answer: Handler) -> AsyncIterator[ChromaClient]:
        async with self.accepting(answer):
            client = ChromaClient("127.0.0.1", self.port)
            try:
                yield client
            finally:
                await client.close()

    @asynccontextmanager
    async def accepting(self, answer: Handler, socket: Path | None = None) -> AsyncIterator[None]:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            try:
                await answer(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        if socket is not None:
            listening = await asyncio.start_unix_server(accept, socket)
        else:
            listening = await asyncio.start_server(accept, "127.0.0.1", 0)
            self.port = listening.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            listening.close()

    async def request(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        self.requests.append(head + await reader.readexactly(int(length or 0)))

    def always(self, *parts: bytes, close: bool = False) -> Handler:
        """Answers every request with these bytes, each part sent on its own."""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                await self.request(reader)
                for part in parts:
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0)
                if close:
                    return

        return answer


@pytest.fixture
def listener() -> Listener:
    return Listener()


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n42"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def test_a_connection_is_used_again(listener: Listener) -> None:
    async with listener.serving(listener.always(OK)) as client:
        for _ in range(3):
            assert await client.send("POST", "/there", {}) == 42

    assert listener.connections == 1
    assert listener.requests[0].startswith(b"POST /api/v2/there HTTP/1.1\r\n")
    assert listener.requests[0].endswith(b"\r\n\r\n{}")


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([OK[:1], OK[1:20], OK[20:-1], OK[-1:]], id="in pieces"),
        pytest.param([CHUNKED + b"1\r\n4\r\n", b"1\r\n2\r\n0\r\n\r\n"], id="chunked"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", OK], id="with a word before"),
    ],
)
async def test_answers_may_come_in_any_form(listener: Listener, parts: list[bytes]) -> None:
    async with listener.serving(listener.always(*parts)) as client:
        assert await client.send("GET", "/") == 42


async def test_what_the_server_closes_is_not_used_again(listener: Listener) -> None:
    closing = OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
    async with listener.serving(listener.always(closing, close=True)) as client:
        await client.send("GET", "/")
        await client.send("GET", "/")

    assert listener.connections == 2


@pytest.mark.parametrize(
    ("status", "refusal"),
    [(b"404 Not Found", NoSuchCollection), (b"400 Bad Request", ChromaRefusal)],
)
async def test_a_refusal_says_what_the_server_said(
    listener: Listener, status: bytes, refusal: type[ChromaRefusal]
) -> None:
    async with listener.serving(listener.always(OK.replace(b"200 OK", status))) as client:
        with pytest.raises(refusal, match=f"{status[:3].decode()}: 42"):
            await client.send("GET", "/")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(OK[:-1], id="cut short"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", id="another protocol"),
        pytest.param(OK.replace(b"42", b"no"), id="no JSON"),
    ],
)
async def test_what_is_no_answer_is_a_fault(listener: Listener, answer: bytes) -> None:
    async with listener.serving(listener.always(answer, close=True)) as client:
        with pytest.raises(ChromaFault):
            await client.send("GET", "/")


async def test_a_server_that_is_not_there_is_a_fault(listener: Listener) -> None:
    async with listener.accepting(listener.always(OK)):
        pass
    client = ChromaClient("127.0.0.1", listener.port)
    with pytest.raises(ChromaFault):
        await client.heartbeat()
    await client.close()


async def test_the_answer_to_a_request_that_was_given_up_is_no_other_ones(
    listener: Listener,
) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await listener.request(reader)
            late = b"GET /api/v2/late" in listener.requests[-1]
            asked.set()
            if late:
                await answer.wait()
            writer.write(OK.replace(b"42", b"13") if late else OK)

    async with listener.serving(slow) as client:
        late = asyncio.create_task(client.send("GET", "/late"))
        await asked.wait()
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)
        answer.set()
        assert [await client.send("GET", "/") for _ in range(3)] == [42, 42, 42]


async def test_many_at_once_wait_for_each_other(listener: Listener) -> None:
    async with listener.serving(listener.always(OK)) as client:
        answers = await asyncio.gather(*(client.send("GET", "/") for _ in range(100)))

    assert answers == [42] * 100
    assert listener.connections <= 32


async def test_a_name_and_password_in_the_address_are_sent(listener: Listener) -> None:
    async with listener.accepting(listener.always(OK)):
        client = ChromaClient(f"http://me:se%2Fcret@127.0.0.1:{listener.port}/base/", 0)
        await client.send("GET", "/")
        await client.close()

    [request] = listener.requests
    assert request.startswith(b"GET /base/api/v2/ HTTP/1.1\r\n")
    assert b"Basic " + base64.b64encode(b"me:se/cret") in request
    assert b"@" not in request


async def test_a_socket_of_this_machine_is_an_address(listener: Listener, tmp_path: Path) -> None:
    socket = tmp_path / "s"
    async with listener.accepting(listener.always(OK), socket):
        client = ChromaClient(f"unix:{socket}", 0)
        assert await client.send("GET", "/") == 42
        await client.close()
