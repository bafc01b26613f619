"""Exports spans to a collector with OpenTelemetry's SDK: OTLP over HTTP. Loaded only if switched
on.

The tracer is the global one of the process, so that spans of the MCP SDK are exported as well and
are the parents of ours. Exported spans contain ids, names, numbers and codes. Error messages may
repeat what a client sent, so they are removed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from opentelemetry import trace as api
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import NonRecordingSpan, Status, StatusCode, TraceFlags

from memory_core import __version__
from memory_core.kernel.context_variables import bound
from memory_core.kernel.trace import SpanContext
from memory_core.telemetry.spans import Attribute, Span

_NAME = "mcp-memory"
_SDK_SCOPE = "mcp-python-sdk"
_EXPORT_SECONDS = 3.0
_SEND_EVERY_MS = 1_000


class OtelTracer:
    def __init__(self, endpoint: str, role: str) -> None:
        about = {"service.name": _NAME, "service.version": __version__, "memory.role": role}
        self._provider = TracerProvider(resource=Resource.create(about), id_generator=_Ids())
        address = endpoint.rstrip("/") + "/v1/traces"
        exporter = _WithoutWords(OTLPSpanExporter(endpoint=address, timeout=_EXPORT_SECONDS))
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, schedule_delay_millis=_SEND_EVERY_MS)
        )
        api.set_tracer_provider(self._provider)
        self._tracer = self._provider.get_tracer(_NAME, __version__)

    def flush(self) -> None:
        self._provider.force_flush(int(_EXPORT_SECONDS * 1000))

    @contextmanager
    def exported(
        self,
        name: str,
        parent: SpanContext | None,
        attributes: Mapping[str, Attribute],
        span_id: str | None,
        begun: datetime | None,
    ) -> Iterator[Span]:
        with bound(_next_span_id, span_id):
            made = self._tracer.start_span(
                name,
                context=_within(parent),
                attributes=dict(attributes),
                start_time=int(begun.timestamp() * 1e9) if begun else None,
            )
        ids = made.get_span_context()
        work = Span(
            SpanContext(f"{ids.trace_id:032x}", f"{ids.span_id:016x}"),
            parent.span_id if parent else None,
        )
        try:
            with api.use_span(made, record_exception=False, set_status_on_exception=False):
                yield work
        except BaseException as error:
            work.error = work.error or type(error).__name__
            raise
        finally:
            made.set_attributes(dict(work.attributes))
            if work.error is not None:
                made.set_attribute("error.type", work.error)
                made.set_status(Status(StatusCode.ERROR))
            made.end()


def _within(parent: SpanContext | None) -> Context:
    if parent is None:
        return Context()
    ids = api.SpanContext(
        trace_id=int(parent.trace_id, 16),
        span_id=int(parent.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return api.set_span_in_context(NonRecordingSpan(ids), Context())


_next_span_id: ContextVar[str | None] = ContextVar("next_span_id", default=None)


class _Ids(RandomIdGenerator):
    def generate_span_id(self) -> int:
        chosen = _next_span_id.get()
        return int(chosen, 16) if chosen else super().generate_span_id()


class _WithoutWords(SpanExporter):
    """Exports the same spans without texts that a client may have sent."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([_cleaned(span) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _cleaned(span: ReadableSpan) -> ReadableSpan:
    scope = span.instrumentation_scope
    if scope is None or scope.name != _SDK_SCOPE:
        return span
    failed = span.status.status_code is StatusCode.ERROR
    # The name of an unknown tool was chosen by the client. Our own span below it has the tool's
    # name.
    name = span.name.split(" ", 1)[0] if failed else span.name
    dropped = {"jsonrpc.request.id"}
    if failed:
        dropped |= {"gen_ai.tool.name", "gen_ai.prompt.name"}
    return ReadableSpan(
        name=name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes={
            key: value for key, value in (span.attributes or {}).items() if key not in dropped
        },
        links=span.links,
        kind=span.kind,
        instrumentation_scope=scope,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
    )
