"""How failures of tools, resources and prompts reach a client."""

import json
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent

from memory_core.kernel.errors import ErrorCode, MemoryFault


def failed_call(message: str, code: ErrorCode, details: dict[str, Any]) -> CallToolResult:
    """{"error", "error_code", "details"} as text, without structured content.

    Clients on the TypeScript SDK validate the structured content of an error against the tool's
    output schema as well, and replace an error that does not fit by their own complaint.
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
    """The error of a resource or a prompt. These have no error result, so code and details are the
    data of the protocol's own error."""
    return MCPError(
        code=INVALID_PARAMS if fault.code in _CALLERS_OWN else INTERNAL_ERROR,
        message=fault.message,
        data={"error_code": fault.code.value, "details": fault.details, **data},
    )
