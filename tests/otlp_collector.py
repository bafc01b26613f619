"""A collector: takes spans by OTLP over HTTP as protobuf, and keeps them for tests to look at."""

import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.patience import PATIENCE


@dataclass(frozen=True)
class CollectedSpan:
    name: str
    scope: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    error: bool
    message: str
    seconds: float


class Collector:
    def __init__(self) -> None:
        self.spans: list[CollectedSpan] = []
        self.bodies: list[bytes] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def wait_for(self, name: str, trace_id: str | None = None) -> CollectedSpan:
        """The first span of that name; waits until it has come."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for span in list(self.spans):
                if span.name == name and trace_id in (None, span.trace_id):
                    return span
            time.sleep(0.05)
        raise AssertionError(f"no span {name!r} among {[span.name for span in self.spans]}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, body: bytes) -> None:
        self.bodies.append(body)
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans += [_collected(scope.scope.name, span) for span in scope.spans]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                is_traces = self.path == "/v1/traces"
                if is_traces and self.headers["content-type"] == "application/x-protobuf":
                    collector._take(body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200 if is_traces else 404)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        return Handler


def _collected(scope: str, span: Any) -> CollectedSpan:
    return CollectedSpan(
        name=span.name,
        scope=scope,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        attributes={
            item.key: getattr(item.value, item.value.WhichOneof("value"))
            for item in span.attributes
        },
        error=span.status.code == 2,
        message=span.status.message,
        seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
    )
