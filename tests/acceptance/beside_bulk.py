"""What a bulk call and a long text take of a server: its memory, and the time of others who call meanwhile.

    python -m tests.acceptance.beside_bulk
    python -m tests.acceptance.beside_bulk --sentences 10000 --rounds 2

One bulk call of many sentences lasts through all rounds. Its sender pauses in every other phase, so that calm phases
and busy ones take turns on the same server. In each phase others ask for one sentence at a time, at the instants of a
Poisson process whose seed is the phase's number in its round. What remains of the bulk call then has the server alone.
At the end others call beside one text of 1 MB.
"""

import argparse
import itertools
import platform
import random
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from babelserve import Client
from tests.acceptance.calls import DEFAULT_SENTENCES, read_sentences
from tests.acceptance.report import Check, print_checks
from tests.acceptance.server_process import running_server
from tests.acceptance.start_up import read_memory

_MOST_RATIO = 1.3  # of the others' 95th percentile, beside bulk work
_MOST_MIB = 256.0  # that the server may grow by
_SETTLE_SECONDS = 3.0  # after which what was sent before has been translated
_LONG_BYTES = 1_000_000


class PausedSender:
    """Gives texts to a bulk call while it may.

    Args:
        sentences: that are sent again and again.
        most: number of texts.
    """

    def __init__(self, sentences: Sequence[str], most: int) -> None:
        self.may_send = threading.Event()
        self.num_sent = 0
        self._sentences = itertools.islice(itertools.cycle(sentences), most)

    def texts(self) -> Iterator[str]:
        """Yields the texts; no two are equal."""
        for number, sentence in enumerate(self._sentences):
            self.may_send.wait()
            self.num_sent = number + 1
            yield f"{sentence} {number}"


def call_others(client: Client, sentences: Sequence[str], rate: float, seconds: float, seed: int) -> list[float]:
    """Asks for single sentences at random instants.

    Args:
        client: of the server.
        sentences: drawn from at random.
        rate: calls a second on average.
        seconds: of the phase.
        seed: of instants and sentences.

    Returns:
        Seconds of each call, from the instant at which it was due.
    """
    chance = random.Random(seed)

    def call(due: float, sentence: str) -> float:
        client.translate([sentence], target="de")
        return time.monotonic() - due

    calls = []
    with ThreadPoolExecutor(64) as pool:
        due = time.monotonic()
        end = due + seconds
        while (due := due + chance.expovariate(rate)) < end:
            time.sleep(max(0.0, due - time.monotonic()))
            calls.append(pool.submit(call, due, chance.choice(sentences)))
    return [each.result() for each in calls]


def compare(name: str, calm: Sequence[float], busy: Sequence[float]) -> Check:
    """Compares the others' times."""
    low, high = (float(np.percentile(each, 95)) for each in (calm, busy))
    halves = [f"{np.median(each) * 1e3:.0f}" for each in (calm, busy)]
    measured = (
        f"p95 {low * 1e3:.0f} -> {high * 1e3:.0f} ms, x {high / low:.2f} "
        f"(p50 {halves[0]} -> {halves[1]}; {len(calm)} and {len(busy)} calls)"
    )
    return Check(f"others' 95th percentile beside {name}", measured, f"<= {_MOST_RATIO}", high <= _MOST_RATIO * low)


def measure(arguments: argparse.Namespace) -> list[Check]:
    """Runs the server and all phases, and returns the table's lines."""
    sentences = read_sentences(arguments.input, 1000)
    checks = [Check("machine", f"{platform.processor() or platform.machine()}, {arguments.rate:g} calls/s of others")]
    with running_server(arguments.server) as server, Client(server.address, deadline_seconds=600) as client:
        call_others(client, sentences, arguments.rate, 5.0, 0)  # warms up
        before = read_memory(server.process.pid).resident
        sender = PausedSender(sentences, arguments.sentences)
        found: list[int] = []
        failed: list[int] = []

        def bulk() -> None:
            for each in client.translate_bulk(sender.texts(), target="de"):
                (found if each.translation.error is None else failed).append(each.index)

        calling = threading.Thread(target=bulk)
        calling.start()
        times: dict[bool, list[float]] = {False: [], True: []}
        for round_number in range(arguments.rounds):
            for is_busy in (False, True):
                (sender.may_send.set if is_busy else sender.may_send.clear)()
                time.sleep(_SETTLE_SECONDS)
                times[is_busy] += call_others(client, sentences, arguments.rate, arguments.seconds, round_number)
        beside = len(found)
        sender.may_send.set()
        started = time.monotonic()
        calling.join()
        alone = (len(found) - beside) / (time.monotonic() - started)
        checks.append(compare("a bulk call", times[False], times[True]))
        is_whole = sorted(found) == list(range(arguments.sentences))
        measured = f"{len(found)} of {arguments.sentences} texts, {len(failed)} failed; {alone:.0f} a second when alone"
        checks.append(Check("each text answered once", measured, "all", is_whole))
        checks.append(_grown("all of the bulk call", server.process.pid, before))
        checks += _beside_long_text(client, sentences, arguments, times[False])
        checks.append(_grown("a text of 1 MB, too", server.process.pid, before))
    return checks


def _beside_long_text(
    client: Client, sentences: Sequence[str], arguments: argparse.Namespace, calm: Sequence[float]
) -> list[Check]:
    text = " ".join(itertools.islice(itertools.cycle(sentences), 100_000))[:_LONG_BYTES]
    with ThreadPoolExecutor(1) as pool:
        started = time.monotonic()
        translating = pool.submit(lambda: list(client.translate_bulk([text], target="de")))
        time.sleep(_SETTLE_SECONDS)
        busy = call_others(client, sentences, arguments.rate, arguments.seconds, 0)
        (answer,) = translating.result()
    num_tokens = answer.translation.target_tokens
    took = f"{time.monotonic() - started:.0f} s, {num_tokens} target tokens"
    return [
        compare("a text of 1 MB", calm, busy),
        Check("the text of 1 MB", took, "is translated", answer.translation.error is None and num_tokens > 0),
    ]


def _grown(name: str, pid: int, before: float) -> Check:
    memory = read_memory(pid)
    measured = f"{memory.peak - before:.0f} MiB over {before:.0f}"
    return Check(f"peak of memory after {name}", measured, f"<= {_MOST_MIB:.0f} MiB", memory.peak - before <= _MOST_MIB)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--sentences", type=int, default=100_000, help="texts of the bulk call (default: %(default)s)")
    add("--rounds", type=int, default=5, help="of a calm and a busy phase each (default: %(default)s)")
    add("--seconds", type=float, default=20.0, help="of a phase (default: %(default)s)")
    add("--rate", type=float, default=5.0, help="calls a second of others (default: %(default)s)")
    add("--input", type=Path, default=DEFAULT_SENTENCES, help="sentences, one a line")
    add("server", nargs="*", help="flags of the server, after --")
    return print_checks(measure(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
