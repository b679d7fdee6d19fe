"""Served load: Poisson arrivals against both live servers, at shares of what the weaker one can do."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.bench.models import Model
from tests.bench.report import print_table
from tests.bench.servers import Server, ctranslate2_server, our_server
from tests.bench.statistics import percentiles
from tests.bench.systems import Settings
from tests.bench.text import ROOT

_CALLERS = 64
_SHARES = (0.3, 0.6, 0.8, 0.95)
_OBJECTIVE_SECONDS = 1.0  # what counts as goodput, and bounds p95 in the search for the highest rate
_RATE_STEP = 1.1
_MAX_STEPS = 12


def compare_served(model: Model, ours: Settings, theirs: Settings, beam_size: int, *, quick: bool) -> dict[str, Any]:
    """Runs the served load and prints its tables; returns all that was measured.

    Where there are three cores or more, the load generator has one to itself; on two it shares them with the servers,
    the same for both.
    """
    seconds = 5.0 if quick else 30.0
    cores = sorted(os.sched_getaffinity(0))
    server_cores, client_cores = (cores[:-1], cores[-1:]) if len(cores) > 2 else (cores, cores)
    ours, theirs = (dataclasses.replace(each, workers=min(each.workers, len(server_cores))) for each in (ours, theirs))
    with _pinned(server_cores):
        stack = our_server(ours), ctranslate2_server(theirs, model.bundle)
        with stack[0] as first, stack[1] as second:
            servers = [first, second]
            with _pinned(client_cores):
                clients = {server.name: _Client(server, model.text.lines, beam_size) for server in servers}
            capacity = {name: client.closed(seconds) for name, client in clients.items()}
            weaker = min(capacity.values())
            print_table("Closed loop, 64 callers", ["server", "sentences/s"], list(capacity.items()))
            levels = [_level(clients, share, share * weaker, seconds) for share in _SHARES]
            highest = {name: _highest_rate(client, 0.95 * weaker, seconds, quick) for name, client in clients.items()}
            for client in clients.values():
                client.close()
    _print(levels, highest, servers)
    return {
        "settings": {"ours": str(ours), "ctranslate2": str(theirs)},
        "beam_size": beam_size,
        "cores": {"servers": server_cores, "client": client_cores},
        "capacity_sentences_per_second": capacity,
        "levels": levels,
        "highest_rate_with_p95_in_objective": highest,
        "peak_resident_bytes": {server.name: server.peak_bytes for server in servers},
        "padding_share": {server.name: _padding_share(server) for server in servers},
    }


class _Client:
    """The load generator's process for one server."""

    def __init__(self, server: Server, lines: list[str], beam_size: int) -> None:
        self.server = server
        self._fixed = {"lines": lines, "beam_size": beam_size, "seed": 1}
        command = [sys.executable, "-m", "tests.bench.load", server.address]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self._send(mode="closed", callers=_CALLERS, seconds=2.0)  # warms both up

    def closed(self, seconds: float) -> float:
        """Returns the sentences per second of a closed loop."""
        answer = self._send(mode="closed", callers=_CALLERS, seconds=seconds)
        return len(answer["latencies"]) / seconds

    def open(self, rate: float, seconds: float) -> dict[str, Any]:
        """Returns latencies and costs under Poisson arrivals."""
        cpu_started = self.server.cpu_seconds()
        answer = self._send(mode="open", rate=rate, seconds=seconds)
        latencies = np.array(answer["latencies"] or [float("inf")])
        return {
            "latency_seconds": percentiles(answer["latencies"] or [float("inf")]),
            "goodput_per_second": float((latencies <= _OBJECTIVE_SECONDS).sum() / seconds),
            "failures": answer["failures"],
            "cpu_seconds_per_1000_tokens": 1000
            * (self.server.cpu_seconds() - cpu_started)
            / max(1, answer["target_tokens"]),
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


def _level(clients: dict[str, _Client], share: float, rate: float, seconds: float) -> dict[str, Any]:
    return {"share": share, "rate": rate, **{name: client.open(rate, seconds) for name, client in clients.items()}}


def _highest_rate(client: _Client, start: float, seconds: float, quick: bool) -> float:
    """Returns the highest rate tried whose p95 is within the objective; 0 if not even a fifth of `start` is."""
    rate, best = start, 0.0
    for _ in range(2 if quick else _MAX_STEPS):
        result = client.open(rate, seconds)
        if not result["failures"] and result["latency_seconds"]["p95"] <= _OBJECTIVE_SECONDS:
            best, rate = rate, rate * _RATE_STEP
        elif best or rate < start / 5:
            break
        else:
            start = rate = rate / _RATE_STEP
    return best


@contextmanager
def _pinned(cores: list[int]) -> Iterator[None]:
    """Processes started in the block run on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _padding_share(server: Server) -> float:
    return 1 - server.counts[0] / server.counts[1]


def _print(levels: list[dict[str, Any]], highest: dict[str, float], servers: list[Server]) -> None:
    rows = []
    for level in levels:
        for server in servers:
            result = level[server.name]
            times = [1000 * result["latency_seconds"][name] for name in ("p50", "p95", "p99")]
            load = f"{level['share']:.0%}: {level['rate']:.1f}/s"
            cost = result["cpu_seconds_per_1000_tokens"]
            rows.append([load, server.name, *times, result["goodput_per_second"], cost, result["failures"]])
        ratio = level["ours"]["latency_seconds"]["p95"] / level["ctranslate2"]["latency_seconds"]["p95"]
        rows.append(["", "ratio of p95", "", ratio, "", "", "", ""])
    header = ["load", "server", "p50 ms", "p95 ms", "p99 ms", "goodput/s", "CPU s/1000 tokens", "failed"]
    print_table("Poisson arrivals, load as a share of the weaker server's capacity", header, rows)
    facts = [
        [each.name, highest[each.name], f"{_padding_share(each):.1%}", f"{each.peak_bytes / 1e6:.0f}"]
        for each in servers
    ]
    print_table("Over all levels", ["server", "highest rate with p95 <= 1 s", "padding", "peak MB"], facts)
