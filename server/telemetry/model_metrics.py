"""The metrics of a model's engine: families with the labels `model` and `version`, and one version's children.

Versions of a model serve side by side and are compared by these. What one has counted stays on the page when it has
left, for who compares later, until others have come.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from server.errors import Code
from server.telemetry.metric_factory import MetricFactory
from server.telemetry.translation_metrics import TranslationFamilies, TranslationMetrics

OUTCOMES = ("ok", "cancelled", "deadline", "late", "error")  # late: dropped before its deadline, as it would miss it
_LEFT = (
    "Sentences that left the engine, golden ones that prove it too; late: dropped before a deadline that they would"
    " have missed."
)
CACHE_RESULTS = ("hit", "joined", "miss")
LANE_STATES = ("serving", "suspect", "out")
CANARY_RESULTS = ("passed", "wrong", "failed")

_REQUEST_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 120)
_QUEUE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_STEP_SECONDS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_TOKENS = (1, 4, 16, 64, 128, 256, 512, 1024, 4096, 16384)
_MOST_VERSIONS = 4  # of a model, on the page, unless more are in memory

_PREDICTION_RATIO = (0.1, 0.25, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 4, 10)


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """What an engine holds at a moment; in the order of `_GAUGES`, and lanes in that of `LANE_STATES`."""

    waiting_sentences: int
    waiting_tokens: int
    max_rows: int
    rows: int
    cache_bytes: int
    max_waiting_sentences: int
    max_waiting_tokens: int
    serving_lanes: int = 0
    suspect_lanes: int = 0
    out_lanes: int = 0


_GAUGES = (
    ("babelserve_queue_depth", "Sentences that wait in the queue."),
    ("babelserve_queue_tokens", "Source tokens of the waiting sentences."),
    ("babelserve_lane_rows", "Rows (beams of sentences) that all lanes can hold."),
    ("babelserve_lane_rows_used", "Rows that are taken."),
    ("babelserve_kv_cache_bytes", "Memory of the attention caches."),
    ("babelserve_queue_depth_limit", "Waiting sentences that count as a full queue; the last request may exceed it."),
    ("babelserve_queue_tokens_limit", "Source tokens of waiting sentences that count as a full queue."),
)
_LANES = "Lanes that take sentences (serving), must prove themselves first (suspect), or take no more (out)."


class EngineGauges(Collector):
    """Asks the engines for their load when the page is read; engines of one version are added up."""

    def __init__(self) -> None:
        self._engines: list[tuple[tuple[str, str], Callable[[], EngineLoad]]] = []

    def collect(self) -> Iterable[Metric]:
        """See `Collector.collect`."""
        families = [GaugeMetricFamily(name, text, labels=["model", "version"]) for name, text in _GAUGES]
        lanes = GaugeMetricFamily("babelserve_lanes", _LANES, labels=["model", "version", "state"])
        series = [(family, ()) for family in families] + [(lanes, (state,)) for state in LANE_STATES]
        sums: dict[tuple[str, str], list[int]] = {}
        for version, read in list(self._engines):
            so_far = sums.get(version, [0] * len(series))
            sums[version] = [total + value for total, value in zip(so_far, astuple(read()), strict=True)]
        for version, values in sums.items():
            for (family, labels), value in zip(series, values, strict=True):
                family.add_metric((*version, *labels), value)
        return [*families, lanes]

    def watch(self, version: tuple[str, str], read: Callable[[], EngineLoad]) -> Callable[[], None]:
        """Adds an engine of a model's version; the returned function takes it out again."""
        entry = (version, read)
        self._engines.append(entry)
        return lambda: self._engines.remove(entry) if entry in self._engines else None

    def watched(self) -> set[tuple[str, str]]:
        """Returns models and versions that have an engine."""
        return {version for version, _ in list(self._engines)}


class EngineFamilies:
    """The families whose labels `model` and `version` are bound by `ModelMetrics`, on one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        new = MetricFactory(registry, "model", "version")
        self._versions: dict[str, dict[str, None]] = {}  # of each model, the last that came last
        self._gone: set[str] = set()  # models without a folder, some of whose engines still run
        self._lock = threading.Lock()  # models are loaded on threads of their own
        self.gauges = EngineGauges()
        registry.register(self.gauges)
        self.translations = TranslationFamilies(registry)
        self.requests = new.counter(
            "model_requests", "Calls, except bulk ones, that a version of a model answered, by status code.", "code"
        )
        self.request_duration_seconds = new.histogram(
            "model_request_duration_seconds",
            "From the arrival of such a call to its answer, if it was OK.",
            _REQUEST_SECONDS,
        )
        self.request_source_tokens = new.histogram(
            "request_source_tokens", "Source tokens of one well-formed request, without ends of sentences.", _TOKENS
        )
        self.queue_duration_seconds = new.histogram(
            "queue_duration_seconds", "Wait of a foreground sentence until it enters a batch.", _QUEUE_SECONDS
        )
        self.encode_duration_seconds = new.histogram(
            "encode_duration_seconds", "One run of the encoder.", _STEP_SECONDS
        )
        self.step_duration_seconds = new.histogram("step_duration_seconds", "One decoder step.", _STEP_SECONDS)
        self.batch_rows = new.histogram("batch_rows", "Rows of one decoder step.", _ROWS)
        self.source_tokens = new.counter(
            "source_tokens", "Source tokens that were encoded, ends of sentences included."
        )
        self.padded_source_tokens = new.counter(
            "padded_source_tokens", "Source tokens that were encoded, with padding."
        )
        self.generated_tokens = new.counter(
            "generated_tokens", "Target tokens of answered sentences, ends of sentences included."
        )
        self.sentences = new.counter("sentences", _LEFT, "outcome")
        self.wasted_tokens = new.counter(
            "wasted_tokens", "Target tokens decoded, per beam, of sentences that were not answered.", "outcome"
        )
        self.undelivered_tokens = new.counter(
            "undelivered_tokens", "Target tokens of translated sentences whose call failed, or had been left."
        )
        self.wait_prediction_ratio = new.histogram(
            "queue_wait_prediction_ratio",
            "Time to an answer, by the time forecast at admission.",
            _PREDICTION_RATIO,
        )
        self.sentence_cache = new.counter(
            "sentence_cache", "Sentences that were kept (hit), under way (joined) or new (miss).", "result"
        )
        self.engine_last_step_timestamp_seconds = new.gauge(
            "engine_last_step_timestamp_seconds", "Unix time of the last finished step."
        )
        self.engine_failures = new.counter("engine_failures", "Encoder runs and decoder steps that failed.")
        self.canaries = new.counter(
            "canaries", "Golden sentences that lanes had to translate, by what came out.", "result"
        )
        self.lane_rebuilds = new.counter("lane_rebuilds", "Lanes that were replaced by new ones.")

    def add(self, model: str, version: str) -> None:
        """Makes room for a version's series: of versions that came long ago and have no engine, they go."""
        with self._lock:
            versions = self._versions.setdefault(model, {})
            versions.pop(version, None)
            versions[version] = None
            self._gone.discard(model)
            in_use = self.gauges.watched()
            others = [each for each in versions if each != version and (model, each) not in in_use]
            for each in others[: max(0, len(versions) - _MOST_VERSIONS)]:
                self._remove(model, each)

    def forget(self, model: str) -> None:
        """Takes the series of a model away whose folder has gone: of its versions with an engine when that ends."""
        with self._lock:
            self._gone.add(model)
            self._clear(model)

    def end(self, model: str) -> None:
        """Is told when an engine of a model has ended."""
        with self._lock:
            if model in self._gone:
                self._clear(model)

    def _clear(self, model: str) -> None:
        in_use = self.gauges.watched()
        for version in [each for each in self._versions.get(model, ()) if (model, each) not in in_use]:
            self._remove(model, version)
        if not self._versions.get(model):
            self._versions.pop(model, None)
            self._gone.discard(model)

    def _remove(self, model: str, version: str) -> None:
        del self._versions[model][version]
        for family in (*vars(self).values(), *vars(self.translations).values()):
            if isinstance(family, Counter | Gauge | Histogram):
                family.remove_by_labels({"model": model, "version": version})


class ModelMetrics:
    """What the engine of a model's version counts; every series is there from the start.

    Args:
        families: of the server.
        model: name of the model, one of those that the operator serves.
        version: of the model, likewise.

    Attributes:
        translations: what the engine's translations look like.
    """

    def __init__(self, families: EngineFamilies, model: str, version: str) -> None:
        families.add(model, version)
        self.translations = TranslationMetrics(families.translations, model, version)
        self._families = families
        self._version = (model, version)
        self._requests = {code: families.requests.labels(model, version, code.name) for code in Code}
        self._request_duration_seconds = families.request_duration_seconds.labels(model, version)
        self.request_source_tokens = families.request_source_tokens.labels(model, version)
        self.queue_duration_seconds = families.queue_duration_seconds.labels(model, version)
        self.encode_duration_seconds = families.encode_duration_seconds.labels(model, version)
        self.step_duration_seconds = families.step_duration_seconds.labels(model, version)
        self.batch_rows = families.batch_rows.labels(model, version)
        self.source_tokens_total = families.source_tokens.labels(model, version)
        self.padded_source_tokens_total = families.padded_source_tokens.labels(model, version)
        self.generated_tokens_total = families.generated_tokens.labels(model, version)
        self.engine_last_step_timestamp_seconds = families.engine_last_step_timestamp_seconds.labels(model, version)
        self.engine_failures_total = families.engine_failures.labels(model, version)
        self.undelivered_tokens_total = families.undelivered_tokens.labels(model, version)
        self.lane_rebuilds_total = families.lane_rebuilds.labels(model, version)
        self._canaries = {result: families.canaries.labels(model, version, result) for result in CANARY_RESULTS}
        self._wait_prediction_ratio = families.wait_prediction_ratio.labels(model, version)
        self._wasted_tokens = {outcome: families.wasted_tokens.labels(model, version, outcome) for outcome in OUTCOMES}
        self._sentences = {outcome: families.sentences.labels(model, version, outcome) for outcome in OUTCOMES}
        self._cached = {result: families.sentence_cache.labels(model, version, result) for result in CACHE_RESULTS}

    def watch(self, read: Callable[[], EngineLoad]) -> Callable[[], None]:
        """Shows an engine's load from now on; the returned function ends that."""
        unwatch = self._families.gauges.watch(self._version, read)

        def end() -> None:
            unwatch()
            self._families.end(self._version[0])

        return end

    def count_request(self, code: Code, seconds: float) -> None:
        """Counts a call's end, so many seconds after it arrived; who reads durations asks for those of answers."""
        self._requests[code].inc()
        if code is Code.OK:
            self._request_duration_seconds.observe(seconds)

    def count_sentences(self, outcome: str, count: int = 1) -> None:
        """Counts sentences that left the engine; `outcome` is one of `OUTCOMES`."""
        self._sentences[outcome].inc(count)

    def count_canary(self, result: str) -> None:
        """Counts a golden sentence that came back; `result` is one of `CANARY_RESULTS`."""
        self._canaries[result].inc()

    def count_wasted(self, outcome: str, num_tokens: int) -> None:
        """Counts target tokens of a sentence that got no answer; `outcome` is one of `OUTCOMES`."""
        if num_tokens:
            self._wasted_tokens[outcome].inc(num_tokens)

    def observe_queue_wait(self, predicted_seconds: float, real_seconds: float) -> None:
        """Compares a forecast of the time to an answer, greater than 0, with the time that it took."""
        self._wait_prediction_ratio.observe(real_seconds / predicted_seconds)

    def count_cached(self, result: str, count: int) -> None:
        """Counts sentences that were looked up; `result` is one of `CACHE_RESULTS`."""
        self._cached[result].inc(count)
