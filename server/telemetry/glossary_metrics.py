"""Metrics of the server's glossaries: the label `glossary` has the names of files in the operator's folder."""

from prometheus_client import CollectorRegistry

from server.telemetry.metric_factory import MetricFactory


class GlossaryMetrics:
    """What the folder of glossaries counts. A glossary that leaves the folder loses its gauges.

    Args:
        registry: takes them; a second GlossaryMetrics on it raises ValueError.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        new = MetricFactory(registry)
        self.terms = new.gauge("glossary_terms", "Terms of a glossary that the server has loaded.", "glossary")
        self._last_load_successful = new.gauge(
            "glossary_last_load_successful",
            "0 while a glossary's file was refused, and an older content is in force, or none.",
            "glossary",
        )
        self._loads = new.counter(
            "glossary_loads", "Files of glossaries that were taken (ok), or found to be faulty (refused).", "outcome"
        )
        for outcome in ("ok", "refused"):
            self._loads.labels(outcome)

    def count_load(self, glossary: str, *, is_successful: bool) -> None:
        """Counts a file that was read, and says whether what it holds is in force."""
        self.terms.labels(glossary)
        self._last_load_successful.labels(glossary).set(is_successful)
        self._loads.labels("ok" if is_successful else "refused").inc()

    def remove(self, glossary: str) -> None:
        """Takes a glossary, which has been counted, from the page."""
        self.terms.remove(glossary)
        self._last_load_successful.remove(glossary)
