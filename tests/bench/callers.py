"""The load generator as a process for one server, and the cores that both run on."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.bench.servers import Server
from tests.bench.statistics import percentiles
from tests.bench.text import ROOT

OBJECTIVE_SECONDS = 1.0  # what counts as goodput
_CALLERS = 64


class Callers:
    """The load generator's process for one server."""

    def __init__(self, server: Server, lines: list[str], beam_size: int) -> None:
        self.server = server
        self._fixed = {"lines": lines, "beam_size": beam_size}
        command = [sys.executable, "-m", "tests.bench.load", server.address]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.closed(2.0)  # warms both up

    def closed(self, seconds: float) -> float:
        """Returns the sentences per second of a closed loop."""
        answer = self._send(mode="closed", callers=_CALLERS, seconds=seconds, seed=1)
        return len(answer["latencies"]) / seconds

    def open(self, rate: float, seconds: float, seed: int = 1) -> dict[str, list[float]]:
        """Returns latencies and costs under Poisson arrivals, the same for each server by the same seed."""
        cpu_started = self.server.cpu_seconds()
        answer = self._send(mode="open", rate=rate, seconds=seconds, seed=seed)
        cpu_seconds = self.server.cpu_seconds() - cpu_started
        latencies = np.array(answer["latencies"] or [float("inf")])
        times = percentiles(answer["latencies"] or [float("inf")])
        return {
            **{f"{name} ms": [1000 * times[name]] for name in ("p50", "p95", "p99")},
            "goodput/s": [float((latencies <= OBJECTIVE_SECONDS).sum() / seconds)],
            "CPU s/1000 tokens": [1000 * cpu_seconds / max(1, answer["target_tokens"])],
            "failed": [answer["failures"]],
        }

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()

    def _send(self, **command: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**self._fixed, **command}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def divide_cores() -> tuple[list[int], list[int]]:
    """Returns the cores of the servers and those of the load generator."""
    cores = sorted(os.sched_getaffinity(0))
    return (cores[:-1], cores[-1:]) if len(cores) > 2 else (cores, cores)


@contextmanager
def pinned(cores: list[int]) -> Iterator[None]:
    """Processes started in the block run on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
