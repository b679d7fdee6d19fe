"""Third of three: what goes wrong on a GPU, and a soak.

Another process takes the memory before the server starts, and while it serves; a kernel fails in another process, and
in the server's own context; two servers share the GPU; and calls go on for minutes while memory is watched.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

from tests.acceptance.server_process import (
    ServerNotServing,
    ServerProcess,
    launch_server,
    running_server,
)
from tests.bench.systems import resident_bytes
from tests.bench.text import ROOT
from tests.gpu.calling import call, call_for, server_flags
from tests.gpu.device import used_mib
from tests.gpu.live import read_pairs
from tests.gpu.parts import Context, Part, parser_of, run_parts

_START_SECONDS = 90.0
_EXIT_CANNOT_START, _EXIT_ENGINE_LOST = 2, 3
_TOO_LITTLE_MIB = 100  # for a CUDA context, let alone a model
_LITTLE_MIB = 4096  # left: another process has 95 % of a card of 80 GB
_MOST_GROWTH_MIB = 64  # of a soak, once it is warm


def _little_memory(context: Context) -> None:
    """Starts where another process has taken most of the memory: a model this small still fits."""
    with _holding(context, _LITTLE_MIB), _serving(context) as server:
        context.figure("device MiB of all", used_mib(context.device))
        _all_ok(context, server, "calls with most of the memory taken")


def _no_memory(context: Context) -> None:
    """Starts where hardly any memory is left: the server says so and ends."""
    if context.device == "cpu":
        context.figure("left out", "a CPU's memory is not taken")
        return
    with _holding(context, _TOO_LITTLE_MIB):
        server = launch_server(context.out / "no-memory.log", server_flags(context.device))
        try:
            server.wait_until_serving(_START_SECONDS)
        except ServerNotServing:
            code = server.process.wait(_START_SECONDS)
            words = server.stderr().splitlines()[-5:]
            context.check("exit code", code, code == _EXIT_CANNOT_START, f"{_EXIT_CANNOT_START}")
            context.check("last lines", str(words), "Traceback" not in server.stderr(), "no traceback")
        else:
            context.check("state", "SERVING", is_met=False, bar="no memory to serve from")
        finally:
            server.stop()


def _memory_taken(context: Context) -> None:
    """Takes all memory beside a server that serves: it has all that it needs, or refuses in clear words."""
    sentences, _ = read_pairs(500)
    with _serving(context) as server:
        _all_ok(context, server, "calls before")
        with _holding(context, _TOO_LITTLE_MIB):
            found = call(server, sentences, 32 if context.is_quick else 400)
            allowed = {"OK", "UNAVAILABLE", "RESOURCE_EXHAUSTED"}
            context.check("calls meanwhile", json.dumps(found), found.keys() <= allowed, f"{sorted(allowed)}")
        _all_ok(context, server, "calls afterwards")


def _trap_elsewhere(context: Context) -> None:
    """A kernel fails in another process: nobody here notices."""
    command = [sys.executable, "-m", "tests.gpu.neighbour", context.device, "trap"]
    sentences, _ = read_pairs(500)
    with _serving(context) as server:
        neighbour = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        found = call_for(server, sentences, 1.0 if context.is_quick else 15.0)
        words = neighbour.communicate(timeout=60)[0].strip()
        context.check("the other process", words, bool(words) == (context.device == "cuda"), "has failed on a GPU")
        context.check("calls", json.dumps(found), set(found) == {"OK"}, "OK all")


def _trap_within(context: Context) -> None:
    """A kernel fails in the server's own context: callers are told, and the process ends, to be launched anew."""
    sentences, _ = read_pairs(500)
    module = ("tests.gpu.trapping_server", context.device)
    with running_server(server_flags(context.device), module=module, timeout_seconds=_START_SECONDS) as server:
        _all_ok(context, server, "calls before")
        server.process.send_signal(signal.SIGUSR1)
        started = time.monotonic()
        found = call_for(server, sentences, 1.0 if context.is_quick else 5.0)
        allowed = {"OK", "UNAVAILABLE"}
        context.check("calls", json.dumps(found), found.keys() <= allowed, f"{sorted(allowed)}")
        if context.device == "cuda":
            code, expected = server.process.wait(60.0), _EXIT_ENGINE_LOST
            context.figure("seconds to the end, at most", time.monotonic() - started)
        else:
            code, expected = server.stop(), 0
        context.check("exit code", code, code == expected, str(expected))
        words = [line for line in server.stderr().splitlines() if "trapped" in line or "CUDA" in line]
        context.check("words", str(words[-6:]), any("trapped" in line for line in words), "tell of the trap")


def _two_servers(context: Context) -> None:
    sentences, _ = read_pairs(500)
    with _serving(context) as first:
        alone = used_mib(context.device)
        with _serving(context) as second:
            context.figure("device MiB of all, one server and two", [alone, used_mib(context.device)])
            seconds = 1.0 if context.is_quick else 10.0
            context.figure("calls/s of one alone", call_for(first, sentences, seconds).total() / seconds)
            with ThreadPoolExecutor(2) as pool:
                both = list(pool.map(lambda server: call_for(server, sentences, seconds), (first, second)))
            context.figure("calls/s of both at once", [found.total() / seconds for found in both])
            for name, found in zip(("first", "second"), both, strict=True):
                context.check(f"calls of the {name}", json.dumps(found), set(found) == {"OK"}, "OK all")


def _soak(context: Context) -> None:
    """Calls and cancels for minutes; memory must not grow once it is warm."""
    minutes = 0.03 if context.is_quick else context.options.minutes
    end = time.monotonic() + 60 * minutes
    sentences, _ = read_pairs(500)
    memory: list[tuple[int, int]] = []
    with _serving(context) as server:
        total = call_for(server, sentences, 60 * minutes / 10)
        while True:
            memory.append((used_mib(context.device), resident_bytes(server.process.pid) >> 20))
            left = end - time.monotonic()
            if left <= 0:
                break
            total += call_for(server, sentences, min(left, 10.0), cancel_every=20)
            context.figure("MiB of the device and of the process, calls", [*memory[-1], total.total()])
        code = server.stop()
    context.check("calls", json.dumps(total), total.keys() <= {"OK", "CANCELLED"}, "OK, or CANCELLED by the caller")
    for name, first, last in zip(("device", "process"), memory[0], memory[-1], strict=True):
        is_met = last - first <= _MOST_GROWTH_MIB or context.is_quick  # seconds do not warm it
        context.check(f"MiB that memory of the {name} has grown", last - first, is_met, f"<= {_MOST_GROWTH_MIB}")
    context.check("exit code", code, code == 0, "0")


def _serving(context: Context) -> AbstractContextManager[ServerProcess]:
    return running_server(server_flags(context.device), timeout_seconds=_START_SECONDS)


def _all_ok(context: Context, server: ServerProcess, name: str) -> None:
    count = 32 if context.is_quick else 200
    found = call(server, read_pairs(500)[0], count)
    context.check(name, json.dumps(found), found == {"OK": count}, "OK all")


@contextmanager
def _holding(context: Context, left_mib: int) -> Iterator[None]:
    """Another process has taken the device's memory but for so much, until the block ends."""
    command = [sys.executable, "-m", "tests.gpu.neighbour", context.device, "hold", str(left_mib)]
    neighbour = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert neighbour.stdout is not None
    try:
        if neighbour.stdout.readline() != "holding\n":
            raise RuntimeError(f"the process that takes the memory ended with exit code {neighbour.wait(10)}")
        context.figure("device MiB of all while it is taken", used_mib(context.device))
        yield
    finally:
        neighbour.communicate(timeout=60)  # ends its input


PARTS = (
    Part("little-memory", 60, _little_memory),
    Part("no-memory", 60, _no_memory),
    Part("memory-taken", 60, _memory_taken),
    Part("trap-elsewhere", 60, _trap_elsewhere),
    Part("trap-within", 60, _trap_within),
    Part("two-servers", 60, _two_servers),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts and returns the exit status."""
    soak = Part("soak", 0, _soak)
    parser = parser_of("faults", __doc__, [*PARTS, soak])
    parser.add_argument("--minutes", type=float, default=4.0, help="of the soak (%(default)s)")
    options = parser.parse_args(arguments)
    seconds = 60 * options.minutes + 30
    return run_parts("faults", [*PARTS, Part("soak", seconds, _soak)], options)


if __name__ == "__main__":
    sys.exit(main())
