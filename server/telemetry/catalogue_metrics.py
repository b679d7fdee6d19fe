"""Metrics of models that come and go: the label `model` has the names of the folders that the operator serves."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from server.errors import Code
from server.telemetry.metric_factory import MetricFactory

LOAD_OUTCOMES = ("ok", "refused")
UNLOAD_REASONS = ("replaced", "removed", "evicted")
MODEL_STATES = ("loaded", "unloaded", "retired")  # retired: replaced, and still answering what it began
ADMIN_METHODS = ("ListVersions", "Load", "Unload", "Rollback", "SetTraffic")

MOST_MODELS = 1000  # that have series; more, and a page of metrics would take longer than its reader waits

_LOAD_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class CatalogueMetrics:
    """What the catalogue of models counts.

    Args:
        registry: takes them; a second CatalogueMetrics on it raises ValueError.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        new = MetricFactory(registry)
        self._known: set[str] = set()  # models that have series
        self._gone: dict[str, None] = {}  # models that had, the last ones
        self._told: set[tuple[str, str, str]] = set()
        self._models = new.gauge(
            "models",
            "Models in memory (loaded), those that are loaded when they are asked for (unloaded), and those that only"
            " answer what they have begun (retired).",
            "state",
        )
        self._model_info = new.gauge(
            "model_info", "1; its labels say which versions of a model are served.", "model", "version", "sha256"
        )
        self._traffic_percent = new.gauge(
            "model_traffic_percent", "Of a model's requests, how many go to a version, 0 to 100.", "model", "version"
        )
        self._loads = new.counter(
            "model_loads",
            "Bundles that were read, verified and warmed up (ok), or found to be faulty (refused).",
            "model",
            "outcome",
        )
        self._unloads = new.counter("model_unloads", "Models that left memory, and why.", "model", "reason")
        self._last_load_successful = new.gauge(
            "model_last_load_successful",
            "0 while a model's folder holds a bundle that was refused, and another one is served, or none.",
            "model",
        )
        self._admin_requests = new.counter(
            "model_admin_requests", "Calls of ModelAdmin, by status code.", "method", "code"
        )
        self.load_seconds = new.histogram("model_load_seconds", "To read, verify and warm up a model.", _LOAD_SECONDS)
        for state in MODEL_STATES:
            self._models.labels(state)
        for method in ADMIN_METHODS:
            for code in Code:
                self._admin_requests.labels(method, code.name)

    def add_model(self, model: str) -> None:
        """Makes a model's series, unless they are there or too many models have some."""
        self._gone.pop(model, None)
        if model in self._known or len(self._known) >= MOST_MODELS:
            return
        self._known.add(model)
        self._last_load_successful.labels(model).set(1)
        for outcome in LOAD_OUTCOMES:
            self._loads.labels(model, outcome)
        for reason in UNLOAD_REASONS:
            self._unloads.labels(model, reason)

    def forget_model(self, model: str) -> None:
        """Takes the series of a model away whose folder has gone; what it ends with is not counted any more."""
        self._known.discard(model)
        self._gone[model] = None
        while len(self._gone) > MOST_MODELS:
            del self._gone[next(iter(self._gone))]
        for family in (self._last_load_successful, self._loads, self._unloads):
            family.remove_by_labels({"model": model})

    def tell_whole(self, model: str, *, is_whole: bool) -> None:
        """Says whether no bundle in a model's folder was refused."""
        if model in self._known:
            self._last_load_successful.labels(model).set(is_whole)

    def set_models(self, counts: Mapping[str, int], percents: Mapping[tuple[str, str, str], int]) -> None:
        """Says which models there are; those without series are counted alone.

        Args:
            counts: of models in each state; those that are not named, of `MODEL_STATES`, have none.
            percents: of a model's requests that a version gets, by name, version, and the sha256 over all files of the
                variant that runs.
        """
        for state in MODEL_STATES:
            self._models.labels(state).set(counts.get(state, 0))
        percents = {key: percent for key, percent in percents.items() if self._has_series(key[0])}
        told, self._told = self._told, set(percents)
        for model, version, sha256 in told - self._told:
            self._model_info.remove(model, version, sha256)
            self._traffic_percent.remove(model, version)
        for (model, version, sha256), percent in percents.items():
            self._model_info.labels(model, version, sha256).set(1)
            self._traffic_percent.labels(model, version).set(percent)

    def count_load(self, model: str, *, is_successful: bool) -> None:
        """Counts a bundle that was tried, and says whether the last one is served."""
        if not self._has_series(model):
            return
        self._last_load_successful.labels(model).set(is_successful)
        self._loads.labels(model, "ok" if is_successful else "refused").inc()

    def count_unload(self, model: str, reason: str) -> None:
        """Counts a model that left memory; `reason` is one of `UNLOAD_REASONS`."""
        if not self._has_series(model):
            return
        self._unloads.labels(model, reason).inc()

    def count_admin_request(self, method: str, code: Code) -> None:
        """Counts a call of one of `ADMIN_METHODS` that ended."""
        self._admin_requests.labels(method, code.name).inc()

    def _has_series(self, model: str) -> bool:
        if model not in self._gone:
            self.add_model(model)
        return model in self._known
