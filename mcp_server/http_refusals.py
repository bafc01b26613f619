"""Refusals over HTTP: a status, and the same object that a failing tool returns."""

import json
from collections.abc import Mapping

from memory_core.access.credential import RateLimited
from memory_core.kernel.errors import ErrorCode, MemoryFault
from memory_core.web.guard import Send

_STATUS = {
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.RATE_LIMITED: 429,
}


async def refuse(fault: MemoryFault, send: Send, more: Mapping[str, str] | None = None) -> None:
    """`more`: additional headers."""
    if fault.code not in _STATUS:  # internal problems are not shown to strangers
        fault = MemoryFault("The memory cannot be reached now. Try again.", code=fault.code)
    body = {"error": fault.message, "error_code": fault.code.value, "details": fault.details}
    text = json.dumps(body).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(text)),
        "cache-control": "no-store",
        **(more or {}),
    }
    if isinstance(fault, RateLimited):
        headers["retry-after"] = str(fault.retry_after)
    listed = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    status = _STATUS.get(fault.code, 503)
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": text})
