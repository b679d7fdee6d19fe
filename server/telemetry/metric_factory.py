"""Makes metrics on one registry, so that a family is one line: its name, what it means, its labels."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

PREFIX = "babelserve_"


class MetricFactory:
    """Makes families whose names begin with `PREFIX`; a name that the registry has already is a ValueError.

    Args:
        registry: takes them.
        common: labels that all of them have, ahead of their own.
    """

    def __init__(self, registry: CollectorRegistry, *common: str) -> None:
        self._registry = registry
        self._common = common

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Makes a counter; on the page its name ends with `_total`."""
        return Counter(PREFIX + name, text, (*self._common, *labels), registry=self._registry)

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        """Makes a gauge."""
        return Gauge(PREFIX + name, text, (*self._common, *labels), registry=self._registry)

    def histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        """Makes a histogram; `buckets` are their upper bounds in the unit of the name, rising, without infinity."""
        return Histogram(PREFIX + name, text, (*self._common, *labels), buckets=buckets, registry=self._registry)
