"""The shapes of the protocol that the scripted provider speaks."""

import json
import time
from contextlib import suppress
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

Body = dict[str, Any]


def completion(
    body: Body, text: str | None, *, finish_reason: str = "stop", refusal: str | None = None
) -> Response:
    asked = sum(tokens(str(message["content"])) for message in body["messages"])
    answered = tokens(text or refusal or "")
    return JSONResponse(
        {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body.get("model"),
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish_reason,
                    "message": {"role": "assistant", "content": text, "refusal": refusal},
                }
            ],
            "usage": {
                "prompt_tokens": asked,
                "completion_tokens": answered,
                "total_tokens": asked + answered,
            },
        }
    )


def error(
    status: int, message: str, code: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    details = {"message": message, "type": "error", "param": None, "code": code}
    return JSONResponse({"error": details}, status_code=status, headers=headers)


def schema_refused() -> Response:
    return error(
        400,
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported.",
        "invalid_request_error",
    )


class Dropped(Response):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        # Returning before the declared length is sent makes the server close the connection.
        await send({"type": "http.response.body", "body": b'{"object"', "more_body": True})


def schema_name(body: Body) -> str | None:
    wanted = body.get("response_format") or {}
    return wanted.get("json_schema", {}).get("name")


def wants_schema(body: Body) -> bool:
    return (body.get("response_format") or {}).get("type") == "json_schema"


def asks_to_merge(body: Body, message: str) -> bool:
    if (name := schema_name(body)) is not None:
        return name == "event_merge"
    # Without a schema the question is told by its form: candidates come as JSON.
    with suppress(ValueError):
        return isinstance(json.loads(message), dict | list)
    return False


def tokens(text: str) -> int:
    return max(1, len(text) // 4)
