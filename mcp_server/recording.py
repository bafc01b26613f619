"""Recording calls: every call becomes a span, a row of the audit and a log line, whatever its kind,
transport and outcome."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from opentelemetry.trace import get_current_span

from memory_core.kernel import principal, trace
from memory_core.kernel.errors import OUTAGES, ErrorCode
from memory_core.kernel.trace import SpanContext
from memory_core.telemetry import call_counters as metrics
from memory_core.telemetry.audit import Audit, AuditedCall, Kind, Transport
from memory_core.telemetry.masking import is_id, job_of, summary
from memory_core.telemetry.spans import Span, span
from memory_core.telemetry.usage import Usage, counting

log = logging.getLogger(__name__)

# Errors that the caller cannot fix: logged even at a higher LOG_LEVEL.
_FAULTS = OUTAGES | {ErrorCode.INTERNAL_ERROR, ErrorCode.STACK_ERROR}
CANCELLED = "CANCELLED"


@dataclass(slots=True)
class Call:
    """What is kept of a call: ids, numbers and its outcome; no text of any kind."""

    kind: Kind
    name: str
    parameters: dict[str, Any]
    result: dict[str, Any] | None = None
    # "ok", or the error code. Without an answer, the client gave up or the server was stopped.
    outcome: str = CANCELLED
    usage: Usage = field(default_factory=Usage)

    def answered(self, answer: Mapping[str, Any] | None = None) -> None:
        self.outcome, self.result = "ok", summary(answer or {})

    def failed(self, code: str) -> None:
        self.outcome = code

    def id_of(self, name: str) -> str | None:
        for values in (self.result, self.parameters):
            if values and is_id(values.get(name)):
                return str(values[name])
        return None


class Recorder:
    def __init__(self, audit: Audit, transport: Transport) -> None:
        self._audit = audit
        self._transport = transport

    @contextmanager
    def recording(self, kind: Kind, name: str, parameters: dict[str, Any]) -> Iterator[Call]:
        call = Call(kind, name, parameters)
        at, begun = datetime.now(UTC), time.perf_counter()
        with (
            span(
                f"{kind} {name}", parent=_calling_span(), attributes={"memory.call": name}
            ) as work,
            counting(call.usage),
        ):
            try:
                yield call
            finally:
                if call.outcome != "ok":
                    work.fail(call.outcome)
                self._keep(call, work, at, time.perf_counter() - begun)

    def _keep(self, call: Call, work: Span, at: datetime, seconds: float) -> None:
        asker = principal.current()
        self._audit.record(
            AuditedCall(
                kind=call.kind,
                transport=self._transport,
                tool_name=call.name,
                tenant_id=asker.tenant_id,
                principal=asker.user[:255],
                trace_id=work.context.trace_id,
                span_id=work.context.span_id,
                parent_span_id=work.parent_span_id,
                parameters=call.parameters,
                result=call.result,
                error=None if call.outcome == "ok" else call.outcome,
                created_at=at,
                completed_at=at + timedelta(seconds=seconds),
                latency_ms=round(seconds * 1000),
                task_id=job_of(call.result, call.parameters),
                tokens_used=call.usage.tokens,
                cost_dollars=call.usage.dollars,
            )
        )
        metrics.observe(call.kind, call.name, call.outcome, seconds)
        _log_call(call, work.context, seconds)


def _log_call(call: Call, context: SpanContext, seconds: float) -> None:
    log.log(
        logging.WARNING if call.outcome in _FAULTS else logging.INFO,
        "%s=%s artifact_uid=%s revision_id=%s outcome=%s trace_id=%s ms=%.1f",
        call.kind,
        call.name,
        call.id_of("artifact_uid") or "-",
        call.id_of("revision_id") or "-",
        call.outcome,
        context.trace_id,
        seconds * 1000,
    )


def _calling_span() -> SpanContext | None:
    """The caller's span, if the protocol named one: the SDK reads it."""
    span_context = get_current_span().get_span_context()
    if span_context.is_valid:
        return SpanContext(f"{span_context.trace_id:032x}", f"{span_context.span_id:016x}")
    return trace.current()
