import pytest

from server.errors import Code
from server.telemetry.tracing import TraceParent, Tracing, current_trace

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(
    ("header", "is_sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-brings", True),
    ],
)
def test_a_traceparent_is_read(header: str, is_sampled: bool) -> None:
    assert TraceParent.read(header) == TraceParent(TRACE, SPAN, is_sampled)


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",  # metadata of a binary key
        "",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{TRACE[:-1]}\u0660-{SPAN}-01",  # a digit, but none of ASCII's
        f"cc-{TRACE}-{SPAN}-01-" + "x" * 10_000 + "\n",
        "what the user wrote",
    ],
)
def test_what_is_no_traceparent_is_ignored(header: str | bytes | None) -> None:
    parent = TraceParent.read(header)

    assert parent is None or "\n" not in parent.trace_id + parent.span_id
    assert parent is None or header is None or len(header) > 10_000


def test_without_spans_a_call_belongs_to_its_callers_trace() -> None:
    trace = Tracing().begin("Translate", "id", TraceParent(TRACE, SPAN, True))
    trace.add_sentence(0.1, 0.2, 0.3)
    trace.end(Code.OK)

    assert (trace.trace_id, trace.is_sampled) == (TRACE, True)
    assert Tracing().begin("Translate", "id", None).trace_id is None
    assert current_trace.get().trace_id is None
