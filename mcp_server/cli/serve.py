"""`mcp-memory serve`: the MCP server over streamable HTTP or stdio."""

import logging
import sys

from mcp_server.server import build_server
from memory_core.settings import load_settings
from memory_core.stack import ports

# Ten million characters of content, six bytes each when JSON escapes them.
MAX_REQUEST_BYTES = 70_000_000


def run(*, stdio: bool) -> None:
    settings = load_settings()
    # Over stdio, stdout belongs to the protocol.
    logging.basicConfig(stream=sys.stderr, level=settings.log_level)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    server = build_server(settings, stdio=stdio)
    if stdio:
        server.run("stdio")
        return
    port = ports.claim("MCP_PORT", settings.mcp_port, settings.mcp_host)
    server.run(
        "streamable-http",
        host=settings.mcp_host,
        port=port,
        max_request_body_size=MAX_REQUEST_BYTES,
    )
