"""W3C Trace Context: which span is at hand, and what is sent on."""

from memory_core.kernel import trace
from memory_core.kernel.trace import SpanContext
from memory_core.log import origin
from memory_core.telemetry.spans import span

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_a_span_is_sent_on_as_a_traceparent() -> None:
    assert SpanContext(TRACE, SPAN).traceparent == f"00-{TRACE}-{SPAN}-01"


def test_a_span_is_below_the_one_at_hand_and_changes_carry_it() -> None:
    assert trace.headers() == {}
    with span("call") as call:
        assert call.parent_span_id is None
        with span("model") as model:
            assert model.parent_span_id == call.context.span_id
            assert model.context.trace_id == call.context.trace_id
            assert trace.headers() == {"traceparent": model.context.traceparent}
            assert origin.current().span_id == model.context.span_id
        assert trace.current() == call.context
    assert trace.current() is None
    assert origin.current().trace_id is None


def test_a_named_parent_comes_before_the_span_at_hand() -> None:
    with span("one"), span("other", parent=SpanContext(TRACE, SPAN)) as other:
        assert (other.context.trace_id, other.parent_span_id) == (TRACE, SPAN)
