"""Spans of calls by OpenTelemetry, in the extra `otel`; imported only with `--traces otlp`.

A call has a server span, below its caller's, and its sentences spans `queue`, `encode` and `decode`. These are made
from the seconds that results carry, when a sentence comes back: the engine knows nothing of traces. So there are no
spans of steps to link to, which would cost every step of a lane, traced calls in it or not.

The standard variables OTEL_* say where to and which: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER, OTEL_BSP_*. The
SDK keeps spans in a bounded queue and sends them on a thread of its own; what does not fit is dropped.
"""

import threading
import time
from typing import Any

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from server.errors import Code
from server.telemetry.tracing import CallTrace, TraceParent, Tracing

MAX_SENTENCES = 32  # of a call, that have spans
_CLOSE_SECONDS = 2.0
_NANOSECONDS = 1_000_000_000
_SERVICE = "babelserve.v1.TranslationService"


class OtelTracing(Tracing):
    """Makes spans.

    Args:
        provider: of a tracer; shut down by `close`.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("babelserve")

    def begin(self, method: str, request_id: str, parent: TraceParent | None) -> CallTrace:
        """See `Tracing.begin`."""
        attributes = {"rpc.system": "grpc", "rpc.service": _SERVICE, "rpc.method": method, "request_id": request_id}
        context = set_span_in_context(_remote_span(parent)) if parent is not None else None
        span = self._tracer.start_span(f"{_SERVICE}/{method}", context, SpanKind.SERVER, attributes)
        return _OtelCallTrace(self._tracer, span)

    def close(self) -> None:
        """See `Tracing.close`. A sink that is down is not waited for."""
        closing = threading.Thread(target=self._provider.shutdown, name="otel-close", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)


class _OtelCallTrace(CallTrace):
    def __init__(self, tracer: Tracer, span: Any) -> None:
        context = span.get_span_context()
        super().__init__(f"{context.trace_id:032x}", is_sampled=context.trace_flags.sampled)
        self._tracer = tracer
        self._span = span
        self._num_sentences = 0

    def add_sentence(self, queue_seconds: float, encode_seconds: float, decode_seconds: float) -> None:
        self._num_sentences += 1
        if not self.is_sampled or self._num_sentences > MAX_SENTENCES:
            return
        below, end = set_span_in_context(self._span), time.time_ns()
        attributes = {"babelserve.sentence": self._num_sentences}
        for name, seconds in (("decode", decode_seconds), ("encode", encode_seconds), ("queue", queue_seconds)):
            start = end - round(seconds * _NANOSECONDS)
            self._tracer.start_span(name, below, attributes=attributes, start_time=start).end(end)
            end = start

    def end(self, code: Code) -> None:
        self._span.set_attribute("rpc.grpc.status_code", code.name)
        self._span.set_attribute("babelserve.sentences", self._num_sentences)
        if code.is_ours:
            self._span.set_status(StatusCode.ERROR)
        self._span.end()


def exporting_provider(version: str) -> TracerProvider:
    """Returns a provider that sends spans by OTLP over gRPC.

    Args:
        version: of this build.
    """
    resource = Resource.create({SERVICE_VERSION: version})
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "babelserve"}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _remote_span(parent: TraceParent) -> NonRecordingSpan:
    flags = TraceFlags(TraceFlags.SAMPLED if parent.is_sampled else TraceFlags.DEFAULT)
    trace_id, span_id = int(parent.trace_id, 16), int(parent.span_id, 16)
    return NonRecordingSpan(SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags))
