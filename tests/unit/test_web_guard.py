"""A guarded server under attack, over real connections: foreign pages, slow and long requests."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
import uvicorn

from memory_assets.dagster_internals.web_server import queries_come_in_bodies
from memory_core.kernel.admission import Admission
from memory_core.web import connections
from memory_core.web.guard import Guard, Receive, Scope, Send
from tests.patience import PATIENCE

MAX_BODY = 1_000


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Says how much it was sent."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})
        return
    length, more = 0, scope["path"] != "/early"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RuntimeError("the client has left")
        length, more = length + len(message["body"]), message["more_body"]
    body = f"{length} bytes".encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Impatient(connections.BoundedConnection):
    header_seconds = 0.2
    max_connections = 5


@contextmanager
def serving(protocol: type[connections.BoundedConnection]) -> Iterator[int]:
    guarded = Guard(
        application,
        Admission.of("127.0.0.1"),
        max_body_bytes=MAX_BODY,
        rule=queries_come_in_bodies("/graphql"),
        body_seconds=protocol.header_seconds,
    )
    config = uvicorn.Config(
        guarded, http=protocol, lifespan="off", log_level="error", timeout_keep_alive=1
    )
    server = uvicorn.Server(config)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True
        )
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(connections.BoundedConnection) as port:
        yield port


@pytest.fixture(scope="module")
def impatient() -> Iterator[int]:
    with serving(Impatient) as port:
        yield port


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def everything(connection: socket.socket) -> bytes:
    """All that the server says until it closes the connection."""
    parts = []
    try:
        while part := connection.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def ask(port: int, line: str = "GET / HTTP/1.1", *more: str, body: bytes = b"") -> bytes:
    """The answer to one request, whose connection ends with it."""
    head = [line, "Host: 127.0.0.1", "Connection: close", *more]
    if body:
        head.append(f"Content-Length: {len(body)}")
    with connect(port) as connection:
        connection.sendall("\r\n".join([*head, "", ""]).encode() + body)
        return everything(connection)


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


class TestForeignPages:
    def test_a_name_that_was_led_here_is_refused(self, port: int) -> None:
        with connect(port) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            answer = everything(connection)
        assert status(answer) == 421
        assert b"ALLOWED_HOSTS" in answer

    def test_a_foreign_origin_is_refused(self, port: int) -> None:
        assert status(ask(port, "POST / HTTP/1.1", "Origin: http://evil.example")) == 403

    def test_a_websocket_of_a_foreign_page_is_refused(self, port: int) -> None:
        upgrade = (
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        )

        def answer(origin: str) -> int:
            lines = ["GET / HTTP/1.1", "Host: 127.0.0.1", "Connection: Upgrade", *upgrade, origin]
            with connect(port) as connection:
                connection.sendall("\r\n".join([*lines, "", ""]).encode())
                return status(connection.recv(1_000))

        assert answer("Origin: http://evil.example") == 403
        assert answer("Origin: http://127.0.0.1") == 101

    def test_no_page_may_show_ours_in_a_frame(self, port: int) -> None:
        assert b"x-frame-options: SAMEORIGIN" in ask(port)


class TestQueriesInAddresses:
    def test_a_query_by_get_is_refused(self, port: int) -> None:
        answer = ask(port, "GET /graphql?query=mutation{wipe} HTTP/1.1", "Accept: image/png,*/*")
        assert status(answer) == 405

    @pytest.mark.parametrize("path", ["/graphql?query=m", "/%67raphql?query=m"])
    def test_however_the_path_is_written(self, port: int, path: str) -> None:
        assert status(ask(port, f"GET {path} HTTP/1.1")) == 405

    @pytest.mark.parametrize(
        "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
    )
    def test_a_form_cannot_send_one_either(self, port: int, kind: str) -> None:
        line = "POST /graphql?query=mutation{wipe} HTTP/1.1"
        assert status(ask(port, line, f"Content-Type: {kind}", body=b"x")) == 405
        assert status(ask(port, line)) == 405

    def test_json_by_post_is_what_the_ui_sends(self, port: int) -> None:
        kind = "Content-Type: application/json; charset=utf-8"
        assert status(ask(port, "POST /graphql HTTP/1.1", kind, body=b"{}")) == 200

    def test_a_person_gets_the_page_for_queries(self, port: int) -> None:
        assert status(ask(port, "GET /graphql HTTP/1.1", "Accept: text/html,*/*")) == 200


class TestSize:
    def test_a_body_up_to_the_limit_arrives(self, port: int) -> None:
        assert ask(port, "POST / HTTP/1.1", body=b"x" * MAX_BODY).endswith(b"1000 bytes")

    def test_a_longer_one_is_refused_by_its_announced_length(self, port: int) -> None:
        assert status(ask(port, "POST / HTTP/1.1", body=b"x" * (MAX_BODY + 1))) == 413

    def test_and_by_what_really_comes(self, port: int) -> None:
        chunk = b"1f4\r\n" + b"x" * 500 + b"\r\n"
        with connect(port) as connection:
            head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            connection.sendall(head + 3 * chunk)
            assert status(everything(connection)) == 413

    def test_endless_headers_are_cut_off(self, port: int) -> None:
        with connect(port) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            connection.sendall(b"X-More: " + b"x" * connections.MAX_HEADER_BYTES)
            assert status(everything(connection)) == 400


class TestSlowness:
    @pytest.mark.parametrize(
        "sent",
        [
            b"",
            b"GET / HTTP/1.1\r\nHost: 127.0",
            # One request is answered, and then: the beginning of another, or of none.
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\nGET",
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n\r\n",
            b"GET /early HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nxx",
        ],
        ids=["nothing", "half a header", "half a second request", "a line end", "unread body"],
    )
    def test_a_connection_that_sends_no_request_is_closed(
        self, impatient: int, sent: bytes
    ) -> None:
        with connect(impatient) as connection:
            connection.sendall(sent)
            everything(connection)  # returns because the server has closed it

    def test_half_a_body_is_answered_with_408(self, impatient: int) -> None:
        with connect(impatient) as connection:
            head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\n"
            connection.sendall(head + b"x" * 10)
            assert status(everything(connection)) == 408

    def test_more_connections_than_are_allowed_are_closed_and_later_ones_served(
        self, impatient: int
    ) -> None:
        many = [connect(impatient) for _ in range(4 * Impatient.max_connections)]
        for connection in many:
            with connection:
                everything(connection)
        assert status(ask(impatient)) == 200
