"""How a failure reaches a client: of a tool, of a resource, of a prompt."""

import json
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent

from memory_core.kernel.errors import ErrorCode, MemoryFault


def failed_call(message: str, code: ErrorCode, details: dict[str, Any]) -> CallToolResult:
    """{"error", "error_code", "details"} as text, and no structured content.

    Clients on the TypeScript SDK check the structured content of an error against the tool's
    output schema too, and replace an error that does not fit by a complaint of their own.
    """
    body = {"error": message, "error_code": code.value, "details": details}
    text = json.dumps(body, ensure_ascii=True, default=str)
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def error_in(answer: CallToolResult) -> dict[str, Any]:
    """The error of a failed call, as `failed_call` wrote it."""
    [content] = answer.content
    assert isinstance(content, TextContent)
    body: dict[str, Any] = json.loads(content.text)
    return body


_CALLERS_OWN = {ErrorCode.VALIDATION_ERROR, ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN}


def protocol_error(fault: MemoryFault, **data: Any) -> MCPError:
    """Of a resource or a prompt, which have no result that could be an error: code and details are
    the data of the protocol's own error."""
    return MCPError(
        code=INVALID_PARAMS if fault.code in _CALLERS_OWN else INTERNAL_ERROR,
        message=fault.message,
        data={"error_code": fault.code.value, "details": fault.details, **data},
    )
