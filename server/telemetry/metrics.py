"""Every metric of the server: its name, unit, labels and buckets, on one registry.

Rules: prefix `babelserve_`, base units, labels from closed sets only and written out from the start, so that a series
never appears because of what a client sent. Counted at the end of a request, beside its duration. An attribute is named
like its metric, without the prefix.
"""

import sys
from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from server.errors import Code

METHODS = ("Translate", "TranslateStream", "ListModels", "other")
OUTCOMES = ("ok", "cancelled", "deadline", "error")
REJECT_REASONS = ("sentences", "tokens")
CACHE_RESULTS = ("hit", "joined", "miss")
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")

# From the objective outward; the ones that alerts will name are bounds exactly.
_REQUEST_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 120)
_QUEUE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_STEP_SECONDS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_TOKENS = (1, 4, 16, 64, 128, 256, 512, 1024, 4096, 16384)


class Metrics:
    """All metrics, registered on one registry.

    Args:
        registry: a fresh one; a second Metrics on it raises ValueError.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the counters' series
        self.registry = registry
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self._register_edge(registry)
        self._register_engine(registry)

    def _register_edge(self, registry: CollectorRegistry) -> None:
        self._build_info = Gauge(
            "babelserve_build_info",
            "1; its labels say which build runs.",
            ("version", "python", "variant", "device"),
            registry=registry,
        )
        self._model_info = Gauge(
            "babelserve_model_info",
            "1; its labels say which model is served.",
            ("model", "version", "sha256"),
            registry=registry,
        )
        self.requests_started_total = Counter(
            "babelserve_requests_started", "Calls that arrived.", ("method",), registry=registry
        )
        self.requests_total = Counter(
            "babelserve_requests", "Calls that ended, by status code.", ("method", "code"), registry=registry
        )
        self.request_duration_seconds = Histogram(
            "babelserve_request_duration_seconds",
            "From a call's arrival to its end.",
            ("method",),
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self.requests_in_flight = Gauge(
            "babelserve_requests_in_flight", "Calls that arrived and have not ended.", ("method",), registry=registry
        )
        self.request_source_tokens = Histogram(
            "babelserve_request_source_tokens",
            "Source tokens of one well-formed call.",
            buckets=_TOKENS,
            registry=registry,
        )
        self.event_loop_lag_seconds = Histogram(
            "babelserve_event_loop_lag_seconds",
            "How late the event loop woke up from a sleep.",
            buckets=_STEP_SECONDS,
            registry=registry,
        )
        self.log_messages_total = Counter(
            "babelserve_log_messages", "Lines written to the log.", ("level",), registry=registry
        )
        self.log_messages_dropped_total = Counter(
            "babelserve_log_messages_dropped", "Log lines that nobody took.", registry=registry
        )
        self.start_duration_seconds = Gauge(
            "babelserve_start_duration_seconds",
            "From the start of the process to SERVING.",
            registry=registry,
        )
        for method in METHODS:
            self.requests_started_total.labels(method)
            self.request_duration_seconds.labels(method)
            self.requests_in_flight.labels(method)
            for code in Code:
                self.requests_total.labels(method, code.name)
        for level in LOG_LEVELS:
            self.log_messages_total.labels(level)

    def _register_engine(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"babelserve_{name}", text, registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"babelserve_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"babelserve_{name}", text, buckets=buckets, registry=registry)

        self.queue_depth = gauge("queue_depth", "Sentences that wait for a row of the batch.")
        self.queue_tokens = gauge("queue_tokens", "Source tokens of the waiting sentences.")
        self.queue_rejected_total = counter("queue_rejected", "Calls refused because the queue was full.", "reason")
        self.queue_duration_seconds = histogram(
            "queue_duration_seconds", "Wait of a sentence for a row of the batch.", _QUEUE_SECONDS
        )
        self.encode_duration_seconds = histogram("encode_duration_seconds", "One run of the encoder.", _STEP_SECONDS)
        self.step_duration_seconds = histogram("step_duration_seconds", "One decoder step.", _STEP_SECONDS)
        self.batch_rows = histogram("batch_rows", "Rows of one decoder step.", _ROWS)
        self.batch_slots = gauge("batch_slots", "Rows that all lanes can hold.")
        self.batch_slots_used = gauge("batch_slots_used", "Rows that are taken.")
        self.source_tokens_total = counter("source_tokens", "Source tokens that were encoded.")
        self.padded_source_tokens_total = counter(
            "padded_source_tokens", "Source tokens that were encoded, padding included."
        )
        self.generated_tokens_total = counter("generated_tokens", "Target tokens of finished translations.")
        self.sentences_total = counter("sentences", "Sentences that left the engine.", "outcome")
        self.sentence_cache_total = counter(
            "sentence_cache", "Sentences that were kept (hit), under way (joined) or new (miss).", "result"
        )
        self.kv_cache_bytes = gauge("kv_cache_bytes", "Memory of the attention caches.")
        self.engine_last_step_timestamp_seconds = gauge(
            "engine_last_step_timestamp_seconds", "Unix time of the last finished step."
        )
        self.engine_failures_total = counter("engine_failures", "Encoder runs and decoder steps that failed.")
        for outcome in OUTCOMES:
            self.sentences_total.labels(outcome)
        for reason in REJECT_REASONS:
            self.queue_rejected_total.labels(reason)
        for result in CACHE_RESULTS:
            self.sentence_cache_total.labels(result)

    def set_build_info(self, *, version: str, variant: str, device: str) -> None:
        """Says once which build runs."""
        python = ".".join(map(str, sys.version_info[:3]))
        self._build_info.labels(version=version, python=python, variant=variant, device=device).set(1)

    def set_model_info(self, *, model: str, version: str, sha256: str) -> None:
        """Says once which model is served; `sha256` is over all files of the variant that runs."""
        self._model_info.labels(model=model, version=version, sha256=sha256).set(1)

    def start_request(self, method: str) -> Callable[[Code, float], None]:
        """Counts a call that arrived; the returned function counts its end, with status and seconds."""
        method = method if method in METHODS else "other"
        self.requests_started_total.labels(method).inc()
        self.requests_in_flight.labels(method).inc()

        def end(code: Code, seconds: float) -> None:
            self.requests_in_flight.labels(method).dec()
            self.requests_total.labels(method, code.name).inc()
            self.request_duration_seconds.labels(method).observe(seconds)

        return end
