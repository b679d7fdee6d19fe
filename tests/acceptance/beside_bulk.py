"""What a bulk call and a long text take of a server: its memory, and the time of others who call meanwhile.

    python -m tests.acceptance.beside_bulk
    python -m tests.acceptance.beside_bulk --sentences 20000 --rounds 2

Three kinds of phases take turns on the same server, because the speed of a machine changes: calm ones, those beside a
bulk call, and those beside one text of 1 MB. In each phase others ask for one sentence at a time, at the instants of a
Poisson process whose seed is the number of the round. One bulk call lasts through all rounds, and its sender pauses in
the other phases; what remains of it then has the server alone. The call with the text is cancelled after each phase; at
the end the text is translated once as a whole.
"""

import argparse
import contextlib
import itertools
import multiprocessing
import platform
import random
import sys
import threading
import time
from collections.abc import Iterator, MutableSequence, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

from babelserve import Client, TranslationError
from tests.acceptance.calls import DEFAULT_SENTENCES, read_sentences
from tests.acceptance.report import Check, print_checks
from tests.acceptance.server_process import running_server
from tests.acceptance.start_up import read_memory

_MOST_RATIO = 1.3  # of the others' 95th percentile, beside bulk work
_MOST_MIB = 256.0  # that the server may grow by
_SETTLE_SECONDS = 3.0  # after which a phase is steady
_MOST_SETTLE_SECONDS = 60.0  # in which what the bulk call has sent must be answered
_LONG_BYTES = 1_000_000
_SENT, _ANSWERED, _FAILED = range(3)  # counts of a bulk call
_CALM, _BULK, _LONG = "calm", "a bulk call", "a text of 1 MB"  # kinds of phases


class BulkCaller:
    """Makes a bulk call in a process of its own, as callers do, and gives it texts while it may.

    Args:
        address: of the server.
        sentences: that are sent again and again.
        most: number of texts.
    """

    def __init__(self, address: str, sentences: Sequence[str], most: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.may_send = context.Event()
        self._counts = context.Array("q", 3)
        arguments = address, list(sentences), most, self.may_send, self._counts
        self.process = context.Process(target=_call_in_bulk, args=arguments, daemon=True)
        self.process.start()

    @property
    def num_sent(self) -> int:
        """Texts that have been sent."""
        return int(self._counts[_SENT])

    @property
    def num_answered(self) -> int:
        """Texts with an answer, each counted once."""
        return int(self._counts[_ANSWERED])

    @property
    def num_failed(self) -> int:
        """Answers that are errors, or that repeat an earlier one."""
        return int(self._counts[_FAILED])

    def settle(self) -> None:
        """Waits until all that was sent has an answer. Raises RuntimeError if that takes too long."""
        until = time.monotonic() + _MOST_SETTLE_SECONDS
        while self.num_answered + self.num_failed < self.num_sent:
            if time.monotonic() > until:
                raise RuntimeError(f"texts of the bulk call have no answer after {_MOST_SETTLE_SECONDS:.0f} s")
            time.sleep(0.05)


def _call_in_bulk(
    address: str, sentences: Sequence[str], most: int, may_send: Event, counts: MutableSequence[int]
) -> None:
    def texts() -> Iterator[str]:
        for number, sentence in enumerate(itertools.islice(itertools.cycle(sentences), most)):
            may_send.wait()
            counts[_SENT] = number + 1
            yield f"{sentence} {number}"  # no two are equal

    found: set[int] = set()
    with Client(address) as client:
        for each in client.translate_bulk(texts(), target="de"):
            if each.translation.error is None and each.index not in found:
                found.add(each.index)
                counts[_ANSWERED] += 1
            else:
                counts[_FAILED] += 1


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
    long_text = " ".join(itertools.islice(itertools.cycle(sentences), 100_000))[:_LONG_BYTES]
    checks = [Check("machine", f"{platform.processor() or platform.machine()}, {arguments.rate:g} calls/s of others")]
    with running_server(arguments.server) as server, Client(server.address, deadline_seconds=600) as client:
        call_others(client, sentences, arguments.rate, 5.0, 0)  # warms up
        before = read_memory(server.process.pid).resident
        bulk = BulkCaller(server.address, sentences, arguments.sentences)
        times: dict[str, list[float]] = {_CALM: [], _BULK: [], _LONG: []}
        for round_number in range(arguments.rounds):
            for kind, of_kind in times.items():
                if kind == _BULK:
                    bulk.may_send.set()
                else:
                    bulk.may_send.clear()
                    bulk.settle()
                with _beside(server.address, long_text) if kind == _LONG else contextlib.nullcontext():
                    time.sleep(_SETTLE_SECONDS)
                    of_kind += call_others(client, sentences, arguments.rate, arguments.seconds, round_number)
        beside = bulk.num_answered
        left = arguments.sentences - beside
        bulk.may_send.set()
        started = time.monotonic()
        bulk.process.join()
        alone = left / (time.monotonic() - started)
        checks += [compare(kind, times[_CALM], times[kind]) for kind in (_BULK, _LONG)]
        is_whole = bulk.num_answered == arguments.sentences and not bulk.num_failed
        measured = (
            f"{bulk.num_answered} of {arguments.sentences}, {bulk.num_failed} failed; {alone:.0f} a second when alone"
        )
        checks.append(Check("each text answered once", measured, "all", is_whole))
        checks.append(Check("texts left after the last phase", str(left), "> 0", left > 0))
        checks.append(_grown("all of the bulk call", server.process.pid, before))
        checks.append(_translated(client, long_text))
        checks.append(_grown("a text of 1 MB, too", server.process.pid, before))
    return checks


@contextlib.contextmanager
def _beside(address: str, text: str) -> Iterator[None]:
    """Has a text translated during the block, and cancels the call at its end.

    Raises:
        RuntimeError: The translation ended before the end of the block.
    """
    ended: list[object] = []
    with Client(address, deadline_seconds=600) as client:

        def translate() -> None:
            try:
                ended.extend(client.translate_bulk([text], target="de"))
            except TranslationError as error:
                ended.append(error)

        calling = threading.Thread(target=translate)
        calling.start()
        yield
        if ended or not calling.is_alive():
            raise RuntimeError(f"the long text ended before the end of its phase: {str(ended[:1])[:200]}")
    calling.join()


def _translated(client: Client, text: str) -> Check:
    started = time.monotonic()
    (answer,) = client.translate_bulk([text], target="de")
    num_tokens = answer.translation.target_tokens
    took = f"{time.monotonic() - started:.0f} s, {num_tokens} target tokens"
    is_whole = answer.translation.error is None and num_tokens > 0
    return Check("the text of 1 MB", took, "is translated", is_whole)


def _grown(name: str, pid: int, before: float) -> Check:
    memory = read_memory(pid)
    measured = f"{memory.peak - before:.0f} MiB over {before:.0f}"
    return Check(f"peak of memory after {name}", measured, f"<= {_MOST_MIB:.0f} MiB", memory.peak - before <= _MOST_MIB)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add(
        "--sentences",
        type=int,
        default=100_000,
        help="texts of the bulk call; it must outlast all phases (default: %(default)s)",
    )
    add("--rounds", type=int, default=5, help="of one phase of each kind (default: %(default)s)")
    add("--seconds", type=float, default=20.0, help="of a phase (default: %(default)s)")
    add("--rate", type=float, default=5.0, help="calls a second of others (default: %(default)s)")
    add("--input", type=Path, default=DEFAULT_SENTENCES, help="sentences, one a line")
    add("server", nargs="*", help="flags of the server, after --")
    return print_checks(measure(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
