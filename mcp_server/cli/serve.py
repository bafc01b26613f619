"""`mcp-memory serve`: the MCP server over streamable HTTP or stdio."""

import gc
from typing import TYPE_CHECKING

from memory_core.kernel.logging_setup import log_to_stderr

if TYPE_CHECKING:
    from mcp_server.tool import MemoryServer
    from memory_core.kernel.settings import Settings


def run(*, stdio: bool) -> None:
    server, settings = _loaded(stdio=stdio)
    if stdio:
        server.run("stdio")
    else:
        _serve_http(server, settings)


def _loaded(*, stdio: bool) -> "tuple[MemoryServer, Settings]":
    """Loading creates a hundred thousand permanent objects while a client waits for its greeting.
    The garbage collector would traverse them repeatedly and take a tenth of the time."""
    gc.disable()
    from mcp_server.cli.configuration import read_settings
    from mcp_server.server import build_server
    from memory_core.telemetry import span_export

    settings = read_settings()
    # Over stdio, stdout belongs to the protocol.
    log_to_stderr(settings.log_level, settings.log_format)
    span_export.start(settings, "serve")
    server = build_server(settings, stdio=stdio)
    gc.freeze()
    gc.enable()
    return server, settings


def _serve_http(server: "MemoryServer", settings: "Settings") -> None:
    from mcp_server.http import application
    from memory_core.web import connections
    from stack import exposure, ports

    exposure.check(settings, dagster=False)
    port = ports.claim("MCP_PORT", settings.mcp_port, settings.mcp_host)
    connections.serve(
        application(server, settings),
        host=settings.mcp_host,
        port=port,
        log_level=settings.log_level.lower(),
        log_config=None,  # uvicorn logs to the same place as we do, with times
        loop="asyncio",
        on_stop=server.end_streams,
    )
