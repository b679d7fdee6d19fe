"""The memory of the GPU, asked for when the page is read; on a CPU the page has nothing of it."""

from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from server.telemetry.metric_factory import PREFIX

_TOTAL = "Memory of the GPU, or of the MIG instance, that this server computes on."
_FREE = "What of it nobody has taken, this server and others together."


class DeviceGauges(Collector):
    """Shows a GPU's memory once there is one."""

    def __init__(self) -> None:
        self._read: Callable[[], tuple[int, int] | None] = lambda: None

    def watch(self, read: Callable[[], tuple[int, int] | None]) -> None:
        """Shows from now on what a function returns: bytes in all and bytes that are free, or None for unknown."""
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """See `Collector.collect`."""
        memory = self._read()
        if memory is None:
            return
        for name, text, value in zip(("total", "free"), (_TOTAL, _FREE), memory, strict=True):
            yield GaugeMetricFamily(f"{PREFIX}device_memory_{name}_bytes", text, value=value)
