"""The load generator's process, and what its journal says in figures."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import numpy as np

from tests.acceptance.server_process import REPOSITORY
from tests.chaos.journal import OK, Entry, Journal
from tests.chaos.load import Command

REFUSED = "RESOURCE_EXHAUSTED"
_REFUSALS = (REFUSED, "UNAVAILABLE", "REFUSED_STREAM")  # the server's, a front's, the HTTP/2 layer's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What became of a load.

    Attributes:
        journal: every call.
        seconds: that new calls began.
        sentences_per_call: of every request.
        target_tokens: of all answers.
        lag: 99th percentile of the seconds by which the client was late; 0 of a closed loop.
        client_load: processor seconds of the client a second.
    """

    journal: Journal
    seconds: float
    sentences_per_call: int
    target_tokens: int
    lag: float
    client_load: float

    @property
    def offered(self) -> float:
        """Calls a second."""
        return len(self.journal.entries) / self.seconds

    @property
    def goodput(self) -> float:
        """Sentences a second of calls that were answered rightly and in time."""
        return self.sentences_per_call * sum(entry.is_good for entry in self.journal.entries) / self.seconds

    def latencies(self, outcome: str = OK) -> list[float]:
        """Returns the seconds of all calls that ended so."""
        return [entry.latency for entry in self.journal.entries if entry.outcome == outcome]

    def refusal_latencies(self) -> list[float]:
        """Returns the seconds of all calls that the server, or a front, refused."""
        return [entry.latency for entry in self.journal.entries if entry.outcome in _REFUSALS]

    @property
    def num_without_pushback(self) -> int:
        """Refusals that do not say when to come back."""
        return sum(entry.outcome in _REFUSALS and entry.pushback_ms is None for entry in self.journal.entries)


class Callers:
    """The process of a load generator."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.chaos.load"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
        )

    def start(self, command: Command) -> None:
        """Begins a load; `finish` waits for its end."""
        assert self._process.stdin is not None
        self._command = command
        self._process.stdin.write(json.dumps(asdict(command)) + "\n")
        self._process.stdin.flush()

    def finish(self) -> Outcomes:
        """Returns what became of the load."""
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline())
        journal = Journal([Entry(*values) for values in answer["journal"]], answer["num_ended_twice"])
        return Outcomes(
            journal=journal,
            seconds=self._command.seconds,
            sentences_per_call=len(self._command.contents[0]),
            target_tokens=answer["target_tokens"],
            lag=percentile(answer["lags"], 99) if answer["lags"] else 0.0,
            client_load=answer["cpu_seconds"] / answer["seconds"],
        )

    def run(self, command: Command) -> Outcomes:
        """Makes a load from beginning to end."""
        self.start(command)
        return self.finish()

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns a percentile; NaN of nothing."""
    return float(np.percentile(values, percent)) if values else math.nan


@contextmanager
def callers(core: int | None = None) -> Iterator[Callers]:
    """A load generator's process, on a core of its own if one is named."""
    with pinned(core):
        process = Callers()
    try:
        yield process
    finally:
        process.close()


@contextmanager
def pinned(core: int | None) -> Iterator[None]:
    """Processes that are started in the block run on this core; None: on any."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before if core is None else {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
