"""Real runners on a CPU, of the kind that a test knows it gets."""

from typing import Any

from server.bundle.bundle import Bundle
from server.runtime.runner import HostRunner, open_runner


def open_host_runner(bundle: Bundle, variant: str = "cpu-fp32", **threads: Any) -> HostRunner:
    """Opens a variant whose caches are in host memory."""
    runner = open_runner(bundle, variant, "cpu", **threads)
    assert isinstance(runner, HostRunner)
    return runner
