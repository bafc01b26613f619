"""Receivers as they are met outside: with certificates, and with ill will."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memory_core.webhooks.sender import Sender, SendFault
from tests.certificates import Authority
from tests.patience import PATIENCE
from tests.webhook_receiver import Receiver

HOST = "hooks.test"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def here(host: str, port: int) -> list[str]:
    """Every name stands for this machine."""
    return ["127.0.0.1"]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.made(tmp_path / "authority")


@pytest.fixture
async def sender() -> AsyncIterator[Sender]:
    sender = Sender(allow_private=True, resolver=here, seconds=1)
    yield sender
    await sender.close()


class TestTls:
    async def test_a_receiver_whose_authority_the_user_trusts_gets_its_messages(
        self, sender: Sender, authority: Authority, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        with Receiver(tls=authority.server(HOST)) as receiver:
            answer = await sender.send(f"https://{HOST}:{receiver.port}/hook", {}, b"{}")

        assert answer.is_success
        assert receiver.received[0].headers["host"] == f"{HOST}:{receiver.port}"

    @pytest.mark.parametrize("fault", ["stranger", "other name", "expired"])
    async def test_one_whose_certificate_is_bad_gets_none(
        self,
        sender: Sender,
        authority: Authority,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        fault: str,
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        signer = Authority.made(tmp_path / "other") if fault == "stranger" else authority
        name = "elsewhere.test" if fault == "other name" else HOST
        context = signer.server(name, expired=fault == "expired")
        with (
            Receiver(tls=context) as receiver,
            pytest.raises(SendFault, match="certificate is bad"),
        ):
            await sender.send(f"https://{HOST}:{receiver.port}/hook", {}, b"{}")

        assert receiver.received == []


@asynccontextmanager
async def receiver(serve: Serve) -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await serve(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://{HOST}:{port}/hook"


async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A byte at a time, each well within any time-out between two of them."""
    for byte in b"HTTP/1.1 200 OK\r\nx-slow: " + b"x" * 10_000:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.01)


async def endless_headers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x-more: " + b"x" * 10_000 + b"\r\n")
        await writer.drain()


async def endless_hints(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await writer.drain()


async def endless_body(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
        await writer.drain()


async def slow_body(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
    await drip(_, writer)


class TestIllWill:
    @pytest.mark.parametrize("serve", [drip, endless_headers, endless_hints])
    async def test_an_answer_that_never_begins_is_given_up(
        self, sender: Sender, serve: Serve
    ) -> None:
        async with receiver(serve) as url, asyncio.timeout(PATIENCE):
            with pytest.raises(SendFault):
                await sender.send(url, {}, b"{}")

    @pytest.mark.parametrize("serve", [endless_body, slow_body])
    async def test_an_answer_that_never_ends_counts_and_is_not_read(
        self, sender: Sender, serve: Serve
    ) -> None:
        async with receiver(serve) as url, asyncio.timeout(PATIENCE):
            answer = await sender.send(url, {}, b"{}")

        assert answer.is_success

    async def test_a_redirect_to_where_secrets_are_is_an_answer_and_no_address(
        self, sender: Sender
    ) -> None:
        async def redirect(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 307 Go\r\nlocation: http://169.254.169.254/\r\n")
            writer.write(b"content-length: 0\r\n\r\n")

        async with receiver(redirect) as url:
            assert (await sender.send(url, {}, b"{}")).status == 307
