"""What hostile or clumsy clients do to everyone else.

    python -m tests.chaos.attacks unfinished-messages --connections 13
    python -m tests.chaos.attacks all --front envoy

Starts a server (with `--front envoy` behind deploy/envoy.yaml), measures honest callers for some seconds in calm and
then under the attack, which runs in a process of its own, and prints one line for each attack. An attack fails if an
honest call ended in anything but OK, if their p95 more than doubled, if memory passed the limit, or if the server died.
Beside calls that are legal, though large, the p95 may be 20 ms more instead: a message of 4 MiB takes as much of the
event loop. What gRPC gives a server no means against, the front has to mend (SECURITY.md): of such attacks without it
the table says so, and they fail for memory and death alone.

The server has a core of its own. The front, honest callers and the attacker, who is nice to them, share the others:
they would have machines of their own.
"""

import argparse
import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence

import grpc
from tabulate import tabulate

from tests.acceptance.report import EXIT_FAILED, EXIT_PASSED
from tests.acceptance.server_process import ServerProcess, running_server
from tests.chaos.attacks_sent import ATTACKS, Target
from tests.chaos.attacks_strangers import Figures, measure
from tests.chaos.callers import pinned
from tests.chaos.envoy import running_envoy

_NICENESS = 19  # of the attacker
_LEGAL, _MORE_MS = ("unread-answers", "unread-streams", "large-calls", "compressed"), 20.0
_NEED_FRONT = ("half-messages", "rapid-resets", "continuation", "pings")
*_OTHER_CORES, _SERVER_CORE = sorted(os.sched_getaffinity(0))


def try_attack(name: str, options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Runs one attack against a server of its own.

    Returns:
        The line of the table, and what was wrong.
    """
    with _served(options) as (server, address):
        calm_end = time.monotonic() + options.calm_seconds
        calm = measure(address, server.process.pid, lambda: time.monotonic() >= calm_end)
        target = Target(address=address, connections=options.connections, seconds=options.seconds)
        attacker = multiprocessing.get_context("spawn").Process(target=_attack, args=(name, target), daemon=True)
        attacker.start()
        end = time.monotonic() + options.seconds
        figures = measure(address, server.process.pid, lambda: time.monotonic() >= end)
        attacker.terminate()
        attacker.join()
        has_died = server.process.poll() is not None
    return _verdict(name, calm, figures, options, has_died=has_died)


def _attack(name: str, target: Target) -> None:
    os.nice(_NICENESS)
    with contextlib.suppress(OSError, grpc.RpcError):  # refused, which is as it should be
        ATTACKS[name](target)


def _verdict(
    name: str, calm: Figures, figures: Figures, options: argparse.Namespace, *, has_died: bool
) -> tuple[list[str], list[str]]:
    failed = {code: count for code, count in figures.codes.items() if code != "OK"}
    ratio = figures.p95_ms / calm.p95_ms
    is_slow = ratio > 2 and not (name in _LEGAL and figures.p95_ms - calm.p95_ms <= _MORE_MS)
    strangers = [f"{count} {code}" for code, count in failed.items()]
    strangers += [f"p95 {ratio:.1f} times calm"] if is_slow else []
    faults = [f"over {options.limit_mib:g} MiB"] if figures.peak_mib > options.limit_mib else []
    faults += ["the server died"] if has_died else []
    told = "; ".join(strangers + faults) or "ok"
    if strangers and name in _NEED_FRONT and options.front == "none":
        told = f"needs the front: {told}"
    else:
        faults += strangers
    line = [name, f"{figures.codes['OK']}", f"{sum(failed.values())}", f"{calm.p95_ms:.1f}", f"{figures.p95_ms:.1f}"]
    return [*line, f"{ratio:.2f}", f"{calm.peak_mib:.0f}", f"{figures.peak_mib:.0f}", told], faults


@contextlib.contextmanager
def _served(options: argparse.Namespace) -> Iterator[tuple[ServerProcess, str]]:
    """A server, and the address that clients have: its own, or that of the front."""
    with contextlib.ExitStack() as stack:
        os.sched_setaffinity(0, _OTHER_CORES or {_SERVER_CORE})
        with pinned(_SERVER_CORE):
            server = stack.enter_context(running_server([f"--memory-mib={options.limit_mib:.0f}", *options.flag]))
        address = server.address
        if options.front == "envoy":
            address = stack.enter_context(running_envoy(server.port)).address
        yield server, address


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs attacks, prints the table and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.attacks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("attack", choices=(*ATTACKS, "all"))
    parser.add_argument("--front", choices=("none", "envoy"), default="none", help="what stands before the server")
    parser.add_argument("--connections", type=int, default=13, help="of the attacker (%(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long an attack lasts (%(default)s)")
    parser.add_argument("--calm-seconds", type=float, default=5.0, help="before it (%(default)s)")
    parser.add_argument("--limit-mib", type=float, default=1024.0, help="memory the server may take (%(default)s)")
    parser.add_argument("--flag", action="append", default=[], help="of the server, as --flag=--max-rows=16")
    options = parser.parse_args(arguments)
    names = list(ATTACKS) if options.attack == "all" else [options.attack]
    print(f"server on core {_SERVER_CORE}; front, callers and attacker (nice {_NICENESS}) on {_OTHER_CORES}")
    results = [try_attack(name, options) for name in names]
    columns = ("attack", "OK", "not OK", "calm p95 ms", "p95 ms", "ratio", "calm MiB", "peak MiB", "")
    print(tabulate([line for line, _ in results], columns, disable_numparse=True))
    return EXIT_FAILED if any(faults for _, faults in results) else EXIT_PASSED


if __name__ == "__main__":
    sys.exit(main())
