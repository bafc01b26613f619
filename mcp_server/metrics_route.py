"""`GET /metrics` for Prometheus. Guarded like every other route; with authentication, for admins
only."""

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from mcp_server.tool import MemoryServer
from memory_core.runtime import Runtime

if TYPE_CHECKING:
    from memory_core.telemetry.prometheus import PrometheusMetrics


def register(server: MemoryServer, runtime: Runtime) -> None:
    collector: PrometheusMetrics | None = None

    @server.custom_route("/metrics", methods=["GET"])  # type: ignore[untyped-decorator]
    async def metrics(_: Request) -> Response:
        # Imported here, so that a server without scrapes loads nothing for it.
        from memory_core.telemetry.prometheus import CONTENT_TYPE, PrometheusMetrics

        nonlocal collector
        collector = collector or PrometheusMetrics(runtime)
        return Response(await collector.text(), media_type=CONTENT_TYPE)
