"""Spans by the real SDK, and a real collector's service that is down, slow or listens."""

import logging
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest

from server.errors import Code
from server.telemetry.trace_exporters import open_tracing
from server.telemetry.tracing import TraceParent

pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc", reason="needs the extra `otel`")

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as otlp
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as otlp_grpc
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from server.telemetry.otel import MAX_SENTENCES, OtelTracing

PARENT = TraceParent("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", is_sampled=True)
UNSAMPLED = TraceParent(PARENT.trace_id, PARENT.span_id, is_sampled=False)
NANOSECONDS = 1e9


class Collector(otlp_grpc.TraceServiceServicer):  # type: ignore[misc]  # types of the extra are not read
    """Keeps the names of the spans that it gets; answers once it `may_answer`."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.may_answer = threading.Event()

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.may_answer.wait(20)
        self.names += [
            span.name for each in request.resource_spans for scope in each.scope_spans for span in scope.spans
        ]
        return otlp.ExportTraceServiceResponse()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(1))
    otlp_grpc.add_TraceServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    server.start()
    yield collector
    collector.may_answer.set()
    server.stop(None).wait()


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(spans: InMemorySpanExporter) -> OtelTracing:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return OtelTracing(provider)


def test_a_call_is_a_server_span_below_its_callers(tracing: OtelTracing, spans: InMemorySpanExporter) -> None:
    trace = tracing.begin("Translate", "my-id", PARENT)
    trace.end(Code.OK)

    (span,) = spans.get_finished_spans()
    assert span.name == "babelserve.v1.TranslationService/Translate"
    assert f"{span.context.trace_id:032x}" == trace.trace_id == PARENT.trace_id
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == PARENT.span_id
    assert dict(span.attributes or {})["request_id"] == "my-id"
    assert dict(span.attributes or {})["rpc.grpc.status_code"] == "OK"


def test_a_sentences_spans_follow_each_other_up_to_its_end(tracing: OtelTracing, spans: InMemorySpanExporter) -> None:
    trace = tracing.begin("Translate", "my-id", None)
    trace.add_sentence(0.25, 0.5, 1.0)
    trace.end(Code.OK)

    decode, encode, queue, call = spans.get_finished_spans()
    assert [span.name for span in (queue, encode, decode)] == ["queue", "encode", "decode"]
    assert {span.parent.span_id for span in (queue, encode, decode) if span.parent} == {call.context.span_id}
    assert (queue.end_time, encode.end_time) == (encode.start_time, decode.start_time)
    seconds = [(span.end_time or 0) - (span.start_time or 0) for span in (queue, encode, decode)]
    assert seconds == [0.25 * NANOSECONDS, 0.5 * NANOSECONDS, 1.0 * NANOSECONDS]


def test_a_long_calls_spans_are_bounded_and_its_sentences_counted(
    tracing: OtelTracing, spans: InMemorySpanExporter
) -> None:
    trace = tracing.begin("Translate", "my-id", None)
    for _ in range(MAX_SENTENCES + 5):
        trace.add_sentence(0.0, 0.0, 0.0)
    trace.end(Code.INTERNAL)

    *children, call = spans.get_finished_spans()
    assert len(children) == 3 * MAX_SENTENCES
    assert dict(call.attributes or {})["babelserve.sentences"] == MAX_SENTENCES + 5
    assert not call.status.is_ok


def test_what_the_caller_does_not_record_is_not_recorded(tracing: OtelTracing, spans: InMemorySpanExporter) -> None:
    trace = tracing.begin("Translate", "my-id", UNSAMPLED)
    trace.add_sentence(0.1, 0.1, 0.1)
    trace.end(Code.OK)

    assert trace.trace_id == PARENT.trace_id
    assert not trace.is_sampled
    assert spans.get_finished_spans() == ()


def test_spans_reach_the_collector_that_the_environment_names(collector: Collector) -> None:
    collector.may_answer.set()
    tracing = open_tracing("otlp", "1.2.3")
    trace = tracing.begin("Translate", "my-id", PARENT)
    trace.add_sentence(0.1, 0.1, 0.1)
    trace.end(Code.OK)

    tracing.close()

    assert collector.names == ["decode", "encode", "queue", "babelserve.v1.TranslationService/Translate"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_collector_that_is_slow_or_down_holds_nobody_up(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "600")
    if not is_there:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    tracing = open_tracing("otlp", "1.2.3")

    longest = 0.0
    for _ in range(2000):  # more than the queue holds
        started = time.monotonic()
        tracing.begin("Translate", "my-id", PARENT).end(Code.OK)
        longest = max(longest, time.monotonic() - started)
    closing = time.monotonic()
    tracing.close()

    assert longest < 5.0  # an answer that was waited for would take 10 seconds
    assert time.monotonic() - closing < 5.0
