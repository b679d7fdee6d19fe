"""The traces that calls belong to: W3C trace contexts of callers, and what spans are made of.

Without OpenTelemetry (`--traces none`) only the caller's own trace is known: its id goes into the log and the exemplars
of the metrics. `server.telemetry.otel` makes spans as well.
"""

import re
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Self

from server.errors import Code

# https://www.w3.org/TR/trace-context/#traceparent-header; later versions may append fields, behind a hyphen.
_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]*)?"
)
_SAMPLED = 1
_MAX_CHARACTERS = 512


@dataclass(frozen=True, slots=True)
class TraceParent:
    """The caller's span: hexadecimal ids of its trace and itself, and whether the trace is recorded."""

    trace_id: str
    span_id: str
    is_sampled: bool

    @classmethod
    def read(cls, header: str | bytes | None) -> Self | None:
        """Returns what a `traceparent` says; None for none, or an invalid one."""
        match = _TRACEPARENT.fullmatch(header[:_MAX_CHARACTERS]) if isinstance(header, str) else None
        if match is None:
            return None
        version, trace_id, span_id, flags, more = match.groups()
        if version == "00" and more is not None:
            return None
        return cls(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))


class CallTrace:
    """One call's place in a trace.

    Attributes:
        trace_id: 32 hexadecimal digits; None if the call belongs to no trace.
        is_sampled: whether someone records the trace.
    """

    def __init__(self, trace_id: str | None, *, is_sampled: bool) -> None:
        self.trace_id = trace_id
        self.is_sampled = is_sampled

    def add_sentence(self, queue_seconds: float, encode_seconds: float, decode_seconds: float) -> None:
        """Notes where the time of a sentence went that has ended this moment."""

    def end(self, code: Code) -> None:
        """Ends the call's spans."""


class Tracing:
    """Makes no spans; see `server.telemetry.otel.OtelTracing`."""

    def begin(self, method: str, request_id: str, parent: TraceParent | None) -> CallTrace:  # noqa: ARG002
        """Returns the trace of a call that has arrived."""
        return CallTrace(parent.trace_id, is_sampled=parent.is_sampled) if parent else _NO_TRACE

    def close(self) -> None:
        """Sends what has been recorded, as far as that goes in a moment."""


_NO_TRACE = CallTrace(None, is_sampled=False)

current_trace: ContextVar[CallTrace] = ContextVar("current_trace", default=_NO_TRACE)
