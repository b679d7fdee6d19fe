"""The metrics of the process and of its requests: name, unit, labels and buckets, on one registry for all metrics.

Rules: prefix `babelserve_`, base units, labels from closed sets only and written out from the start, so that a series
never appears because of what a client sent. Counted at the end of a request, beside its duration. An attribute is named
like its metric, without the prefix. What belongs to a model's engine is in `server.telemetry.model_metrics`, what to
tenants and certificates in `server.telemetry.access_metrics`, what to models that come and go in
`server.telemetry.catalogue_metrics`, what to glossaries in `server.telemetry.glossary_metrics`, what to a GPU in
`server.telemetry.device_metrics`.
"""

import sys
from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from server.errors import Code
from server.telemetry.access_metrics import AccessMetrics
from server.telemetry.catalogue_metrics import CatalogueMetrics
from server.telemetry.device_metrics import DeviceGauges
from server.telemetry.glossary_metrics import GlossaryMetrics
from server.telemetry.metric_factory import MetricFactory
from server.telemetry.model_metrics import EngineFamilies, ModelMetrics

METHODS = (
    "Translate",
    "TranslateStream",
    "TranslateBulk",
    "Score",
    "ListModels",
    "ListGlossaries",
    "DetectLanguages",
    "PutKeptGlossary",
    "GetKeptGlossary",
    "ListKeptGlossaries",
    "DeleteKeptGlossary",
    "other",
)
GRPC, HTTP, LIBRETRANSLATE, DEEPL, AZURE, GOOGLE, RIVA, KSERVE = FRONTS = (
    "grpc",
    "http",
    "libretranslate",
    "deepl",
    "azure",
    "google",
    "riva",
    "kserve",
)
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")

# From the objective outward; the ones that alerts will name are bounds exactly.
_REQUEST_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 120)
_LAG_SECONDS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1)


class Metrics:
    """All metrics, registered on one registry.

    Args:
        registry: a fresh one; a second Metrics on it raises ValueError.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        new = MetricFactory(registry)
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the counters' series
        self.registry = registry
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self._engines = EngineFamilies(registry)
        self.access = AccessMetrics(registry)
        self.catalogue = CatalogueMetrics(registry)
        self.glossaries = GlossaryMetrics(registry)
        self.device = DeviceGauges()
        registry.register(self.device)
        self._build_info = new.gauge(
            "build_info", "1; its labels say which build runs.", "version", "python", "variant", "device"
        )
        self.requests_started_total = new.counter("requests_started", "Calls that arrived.", "method")
        self.requests_total = new.counter("requests", "Calls that ended, by status code.", "method", "code")
        self.unread_messages_total = new.counter(
            "unread_messages", "Calls over before their message was read: it was too long, or the caller left."
        )
        self.request_duration_seconds = new.histogram(
            "request_duration_seconds", "From a call's arrival to its end.", _REQUEST_SECONDS, "method"
        )
        fronts = new.counter("front_requests", "Calls that ended, by whose protocol they spoke.", "front", "code")
        self._of_front = {front: {code: fronts.labels(front, code.name) for code in Code} for front in FRONTS}
        goodput = new.counter("goodput_requests", "Calls answered OK within their deadline.", "method")
        self._goodput_requests = {method: goodput.labels(method) for method in METHODS}
        self.goodput_tokens_total = new.counter(
            "goodput_tokens", "Target tokens of calls answered within their deadline, ends of sentences left out."
        )
        self.requests_in_flight = new.gauge("requests_in_flight", "Calls that arrived and have not ended.", "method")
        self.event_loop_lag_seconds = new.histogram(
            "event_loop_lag_seconds", "How late the event loop woke up from a sleep.", _LAG_SECONDS
        )
        self.log_messages_total = new.counter("log_messages", "Lines written to the log.", "level")
        self.log_messages_dropped_total = new.counter("log_messages_dropped", "Log lines that nobody took.")
        self.log_messages_suppressed_total = new.counter(
            "log_messages_suppressed", "Lines left out of the log, as they repeated too often."
        )
        self.native_log_lines_total = new.counter(
            "native_log_lines", "Lines that native libraries wrote to stderr, logged or not."
        )
        self.ready = new.gauge(
            "ready", "1 while health says SERVING: not draining, and of each model a lane serves and none is out."
        )
        self.draining = new.gauge("draining", "1 from the signal that ends the server.")
        self.start_duration_seconds = new.gauge("start_duration_seconds", "From the start of the process to SERVING.")
        self._of_method = {
            method: (
                self.requests_started_total.labels(method),
                self.requests_in_flight.labels(method),
                self.request_duration_seconds.labels(method),
                {code: self.requests_total.labels(method, code.name) for code in Code},
            )
            for method in METHODS
        }
        for level in LOG_LEVELS:
            self.log_messages_total.labels(level)

    def forget_model(self, model: str) -> None:
        """Takes the series of a model away whose folder has gone."""
        self.catalogue.forget_model(model)
        self._engines.forget(model)

    def of_model(self, model: str, version: str) -> ModelMetrics:
        """Returns the metrics of the engine of a model's version."""
        return ModelMetrics(self._engines, model, version)

    def set_build_info(self, *, version: str, variant: str, device: str) -> None:
        """Says once which build runs."""
        python = ".".join(map(str, sys.version_info[:3]))
        self._build_info.labels(version=version, python=python, variant=variant, device=device).set(1)

    def start_request(self, method: str) -> Callable[[Code, float, str | None], None]:
        """Counts a call that arrived; the returned function counts its end: status, seconds, id of a recorded trace."""
        method = method if method in METHODS else "other"
        started, in_flight, durations, ended = self._of_method[method]
        started.inc()
        in_flight.inc()

        def end(code: Code, seconds: float, trace_id: str | None) -> None:
            exemplar = {"trace_id": trace_id} if trace_id is not None else None
            in_flight.dec()
            ended[code].inc()
            durations.observe(seconds, exemplar)

        return end

    def count_front(self, front: str, code: Code) -> None:
        """Counts the end of a call that came by a front, one of `FRONTS`."""
        self._of_front[front][code].inc()

    def count_goodput(self, method: str, num_tokens: int) -> None:
        """Counts a call that was answered within its deadline, and the target tokens of its answer."""
        self._goodput_requests.get(method, self._goodput_requests["other"]).inc()
        self.goodput_tokens_total.inc(num_tokens)
