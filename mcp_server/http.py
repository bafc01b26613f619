"""The MCP server over HTTP: the middleware between a request and the tools."""

from mcp.server.transport_security import TransportSecuritySettings

from mcp_server.http_requests import RecordedRequests
from mcp_server.tool import MemoryServer
from memory_core.kernel.settings import Settings
from memory_core.web.guard import Application, Guard

# Ten million characters of content, six bytes each if JSON escapes them.
MAX_REQUEST_BYTES = 70_000_000


def application(server: MemoryServer, settings: Settings) -> Application:
    """Every route is guarded, including ours: the SDK only checks requests to `/mcp`, and by
    default only if it is bound to loopback."""
    admission = settings.admission(settings.mcp_host, local_pages=True)
    routes = server.streamable_http_app(
        host=settings.mcp_host,
        max_request_body_size=MAX_REQUEST_BYTES,
        transport_security=TransportSecuritySettings(
            allowed_hosts=admission.host_patterns, allowed_origins=admission.origin_patterns
        ),
    )
    paths = frozenset(str(getattr(route, "path", "")) for route in routes.routes)
    app = RecordedRequests(routes, server.recorder, paths)
    return Guard(server.access.guarded(app), admission, max_body_bytes=MAX_REQUEST_BYTES)
