"""`GET /health`: all details for the user of this machine and for admins; up or down for others."""

import time

from starlette.requests import Request
from starlette.responses import JSONResponse

from mcp_server.tool import MemoryServer
from memory_core.kernel.errors import MemoryFault
from memory_core.kernel.principal import current
from memory_core.runtime import Runtime
from memory_core.upkeep.health import check_health

# Cached, so that frequent requests of strangers do not cause frequent checks.
_CACHED_SECONDS = 2.0


def register(server: MemoryServer, runtime: Runtime) -> None:
    last: tuple[float, int] | None = None

    @server.custom_route("/health", methods=["GET"])  # type: ignore[untyped-decorator]
    async def health(_: Request) -> JSONResponse:
        nonlocal last
        for_all = "admin" not in current().scopes
        if for_all and last is not None and time.monotonic() - last[0] < _CACHED_SECONDS:
            return _up_or_down(last[1])
        answer = await _report(runtime)
        last = time.monotonic(), answer.status_code
        return _up_or_down(answer.status_code) if for_all else answer


def _up_or_down(status: int) -> JSONResponse:
    return JSONResponse({"status": "up" if status == 200 else "down"}, status_code=status)


async def _report(runtime: Runtime) -> JSONResponse:
    try:
        await runtime.open()
    except MemoryFault as fault:
        return JSONResponse({"status": "down", "detail": fault.message}, status_code=503)
    report = await check_health(runtime.database, runtime.vectors.heartbeat, runtime.orchestrator)
    status = 503 if report.status == "down" else 200
    return JSONResponse(report.model_dump(mode="json"), status_code=status)
