"""How much more do several replicas behind Envoy serve than one? `python -m tests.bench.replicas --replicas 1 2`.

Each replica has cores of its own. Envoy, with the configuration that is shipped, and the callers have the cores that
are left; if there are none, they share the replicas' cores, and each replica then has a little less than it would have.
"""

import argparse
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.callers import Callers, pinned
from tests.bench.machine import describe_machine
from tests.bench.report import print_table
from tests.bench.served import highest_rate
from tests.bench.servers import Server, our_server
from tests.bench.statistics import median_ratio
from tests.bench.systems import Settings
from tests.bench.text import DEFAULT_TEXT
from tests.chaos.envoy import running_envoy

_SHARE = 0.8  # of the highest rate, at which latency is measured


def main() -> None:
    """Entry point."""
    arguments = _parse()
    lines = [line for line in arguments.text.read_text(encoding="utf-8").splitlines() if line.strip()]
    measured: dict[int, dict[str, list[float]]] = {count: defaultdict(list) for count in arguments.replicas}
    for number in range(arguments.rounds):
        for count in arguments.replicas if number % 2 == 0 else reversed(arguments.replicas):
            for name, value in _measure(count, lines, arguments).items():
                measured[count][name].append(value)
    print_table("Machine", ["what", "value"], list(describe_machine().items()))
    first = measured[arguments.replicas[0]]
    print_table(
        f"Replicas of {arguments.cores} core(s), medians of {arguments.rounds} rounds",
        ["replicas", "measure", "median", f"beside {arguments.replicas[0]}"],
        [
            (count, name, sorted(values)[len(values) // 2], str(median_ratio(values, first[name])))
            for count, figures in measured.items()
            for name, values in figures.items()
        ],
    )


def _measure(count: int, lines: list[str], arguments: argparse.Namespace) -> dict[str, float]:
    """Returns what so many replicas serve, and what Envoy takes for it."""
    with _replicas(count, arguments) as (envoy, servers):
        callers = Callers(envoy, lines, beam_size=1)
        try:
            capacity = callers.closed(arguments.seconds)
            rate = highest_rate(callers, 0.95 * capacity, arguments.seconds)
            before = [each.cpu_seconds() for each in (envoy, *servers)]
            figures = callers.open(_SHARE * (rate or capacity), arguments.seconds)
            used = [each.cpu_seconds() - start for each, start in zip((envoy, *servers), before, strict=True)]
        finally:
            callers.close()
    return {
        "sentences/s, 64 callers": capacity,
        "sentences/s with p95 <= 1 s": rate,
        f"p95 ms at {_SHARE:.0%} of it": figures["p95 ms"][0],
        "processor s of Envoy, of the replicas' 100": 100 * used[0] / sum(used[1:]),
    }


@contextmanager
def _replicas(count: int, arguments: argparse.Namespace) -> Iterator[tuple[Server, list[Server]]]:
    """Yields Envoy, as the callers see it, and the replicas behind it."""
    cores = sorted(os.sched_getaffinity(0))
    settings = Settings(
        system="ours", path=str(arguments.bundle), precision="cpu-int8", workers=arguments.cores, batch=0
    )
    with ExitStack() as stack:
        servers = []
        for index in range(count):
            with pinned(cores[index * arguments.cores : (index + 1) * arguments.cores]):
                servers.append(stack.enter_context(our_server(settings)))
        ports = [int(server.address.rpartition(":")[2]) for server in servers]
        stack.enter_context(pinned(cores[count * arguments.cores :] or cores))
        envoy = stack.enter_context(running_envoy(*ports))
        yield Server("envoy", envoy.address, envoy.pid), servers


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2], help="numbers of replicas, the first is 1")
    parser.add_argument("--cores", type=int, default=1, help="of each replica")
    parser.add_argument("--bundle", type=Path, default=BUILTIN_BUNDLE)
    parser.add_argument("--text", type=Path, default=DEFAULT_TEXT, help="a sentence in each line")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each level")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    if min(arguments.replicas) < 1 or max(arguments.replicas) * arguments.cores > cores:
        parser.error(f"--replicas {arguments.replicas}: {cores} cores hold 1 to {cores // arguments.cores} of them")
    return arguments


if __name__ == "__main__":
    main()
