"""A Chroma server on a copy of a directory, for the duration of an import."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from memory_core.kernel.errors import ChromaUnavailable
from stack import ports, probes
from stack.services import script

_START_SECONDS = 90.0
_POLL_SECONDS = 0.1
# Ends the server when our end of its standard input closes, however we end.
_TIED = '"$@" </dev/null & server=$!; cat >/dev/null; kill $server; wait $server'


@asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[str]:
    port = ports.free_port()
    command = [script("chroma"), "run", "--path", str(directory)]
    command += ["--host", ports.LOOPBACK, "--port", str(port)]
    with (directory.parent / "chroma.log").open("wb") as log:
        server = await asyncio.create_subprocess_exec(
            *("sh", "-c", _TIED, "sh", *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
    try:
        await _ready(port, directory.parent / "chroma.log")
        yield f"http://{ports.LOOPBACK}:{port}"
    finally:
        assert server.stdin is not None
        server.stdin.close()
        await server.wait()


async def _ready(port: int, log: Path) -> None:
    deadline = asyncio.get_running_loop().time() + _START_SECONDS
    while True:
        try:
            await probes.chroma(ports.LOOPBACK, port)
        except Exception as error:
            if asyncio.get_running_loop().time() > deadline:
                raise ChromaUnavailable(
                    "A Chroma server could not be started on a copy of that directory; nothing "
                    f"was imported. {log} has its words."
                ) from error
            await asyncio.sleep(_POLL_SECONDS)
        else:
            return
