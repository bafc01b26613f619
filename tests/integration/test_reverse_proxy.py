"""nginx as docs/securing.md configures it, before the MCP server and before another one."""

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from memory_core.access import keys
from memory_core.kernel.settings import Settings
from memory_core.runtime import Runtime
from stack import ports
from tests.access_server import AccessServer, make_key
from tests.documented import ROOT, blocks
from tests.patience import PATIENCE

NGINX = shutil.which("nginx")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Stands for the Dagster UI: says which headers came."""
    text = repr({name.decode(): value.decode() for name, value in scope["headers"]}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text})


@pytest.fixture(scope="module")
def operators() -> Iterator[str]:
    """The address of a server that asks for nothing."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(echo, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]), daemon=True)
    thread.start()
    yield f"127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = server.force_exit = True
    thread.join()
    listening.close()


def write_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "memory.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "certificate").write_bytes(certificate.public_bytes(pem))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key").write_bytes(key.private_bytes(pem, *plain))


@dataclass
class Proxy:
    port: int

    def get(self, name: str, path: str, **headers: str) -> httpx.Response:
        with httpx.Client(verify=False, trust_env=False) as client:
            url = f"https://127.0.0.1:{self.port}{path}"
            return client.get(url, headers={"host": name, **headers})


@pytest.fixture(scope="module")
def proxy(
    services: Settings, operators: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("nginx")
    write_certificate(folder)
    (folder / "operators").write_text("operator:{PLAIN}open sesame\n")
    with AccessServer(services, auth="keys", allowed_hosts="memory.example") as server:
        port = ports.free_port()
        configuration = folder / "nginx.conf"
        configuration.write_text(_configuration(folder, port, server.url, operators))
        assert NGINX is not None
        process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(configuration)])
        deadline = time.monotonic() + PATIENCE
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield Proxy(port)
        process.terminate()
        process.wait()


def _configuration(folder: Path, port: int, memory: str, operators: str) -> str:
    """The page's own block, with the addresses and files of this test."""
    [block] = [
        block for block in blocks(ROOT / "docs" / "securing.md") if block.language == "nginx"
    ]
    text = block.text
    for shown, meant in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/ssl/memory.example.pem": str(folder / "certificate"),
        "/etc/ssl/memory.example.key": str(folder / "key"),
        "/etc/nginx/operators": str(folder / "operators"),
        "http://127.0.0.1:3000": memory,
        "127.0.0.1:3001": operators,
    }.items():
        assert shown in text
        text = text.replace(shown, meant)
    user = "user root;" if os.getuid() == 0 else ""
    temporary = "".join(
        f"{kind}_temp_path {folder};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"{user} daemon off; pid {folder}/pid; error_log stderr crit; events {{}} "
        f"http {{ access_log off; {temporary}\n{text}\n}}"
    )


async def test_the_memory_asks_for_its_keys_behind_it(proxy: Proxy, runtime: Runtime) -> None:
    key = await make_key(runtime.database)
    assert proxy.get("memory.example", "/changes").status_code == 401
    wrong = {"authorization": f"Bearer {keys.new_text()}"}
    assert proxy.get("memory.example", "/changes", **wrong).status_code == 401
    right = {"authorization": f"Bearer {key}"}
    assert proxy.get("memory.example", "/nothing-here", **right).status_code == 404
    assert proxy.get("memory.example", "/health").json() == {"status": "up"}


async def test_streams_arrive_as_they_are_sent(proxy: Proxy, runtime: Runtime) -> None:
    key = await make_key(runtime.database)
    headers = {"host": "memory.example", "authorization": f"Bearer {key}"}
    url = f"https://127.0.0.1:{proxy.port}/changes"
    async with (
        httpx.AsyncClient(verify=False, trust_env=False, timeout=60) as client,
        client.stream("GET", url, headers=headers) as stream,
    ):
        assert stream.status_code == 200
        first = await anext(stream.aiter_bytes())  # the stream itself has no end
    assert first.startswith(b"retry:")


def test_the_other_is_behind_a_password_that_it_does_not_see(proxy: Proxy) -> None:
    assert proxy.get("dagster.example", "/").status_code == 401
    basic = httpx.BasicAuth("operator", "open sesame")
    sent = next(basic.auth_flow(httpx.Request("GET", "https://dagster.example")))
    answer = proxy.get("dagster.example", "/", authorization=sent.headers["authorization"])
    assert answer.status_code == 200
    assert "'host': 'dagster.example'" in answer.text
    assert "authorization" not in answer.text
