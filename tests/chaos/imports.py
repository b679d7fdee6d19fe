"""S9: what strangers' models may hold: an import ends in a clear error, soon, in little memory, and leaves nothing."""

import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from export.imports.__main__ import main
from tests.acceptance.report import Check
from tests.chaos.case import Case, Options, at_most, none, told
from tests.chaos.hostile_imports import Input, inputs
from tests.chaos.import_models import FAMILIES

_MOST_SECONDS = 20.0  # of a processor: the machine may have other work
_MOST_BYTES = 1 << 30  # in memory at once, of which Python with torch takes a quarter
_MORE_BYTES = 3 << 30  # of addresses, beyond those of Python with torch: so that the machine outlives a failure
_GIVEN_UP_SECONDS = 120.0
_QUICK_STRIDE = 6  # of the inputs one in so many is in the quick part
_PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an import ended: what is wrong with that, seconds of a processor, and the most bytes of memory."""

    name: str
    faults: list[str]
    seconds: float
    num_bytes: int


def hostile_imports(options: Options) -> Iterator[Check]:
    """Imports every input in a process of its own, which has torch already."""
    names = [each.name for each in inputs()][:: options.count(1, _QUICK_STRIDE)]
    with multiprocessing.get_context("spawn").Pool(_PROCESSES) as pool:
        outcomes = list(pool.imap_unordered(try_input, names))
        pool.close()
        pool.join()
    yield told("inputs", str(len(outcomes)))
    yield none("faults", [f"{each.name}: {fault}" for each in outcomes for fault in each.faults])
    slowest = max(outcomes, key=lambda each: each.seconds)
    largest = max(outcomes, key=lambda each: each.num_bytes)
    yield at_most(f"the slowest ({slowest.name})", slowest.seconds, _MOST_SECONDS, " s")
    yield at_most(f"the largest ({largest.name})", largest.num_bytes / 1e6, _MOST_BYTES / 1e6, " MB")


def try_input(name: str) -> Outcome:
    """Makes an input, and imports it."""
    with tempfile.TemporaryDirectory(prefix="babelserve-chaos-") as scratch:
        directory = Path(scratch)
        for folder in ("in", "out", "tmp"):
            (directory / folder).mkdir()
        status, _ = _forked(lambda: _make(name, directory), directory)
        if status:
            return Outcome(name, [f"could not be made: {(directory / 'stderr').read_text(errors='replace')}"], 0, 0)
        (one,) = (each for each in inputs() if each.name == name)
        status, usage = _forked(lambda: _import(directory), directory)
        faults = list(_faults(one, directory, status))
    return Outcome(name, faults, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def _faults(one: Input, directory: Path, status: int) -> Iterator[str]:
    said = (directory / "stderr").read_bytes().decode(errors="replace")
    printed = (directory / "stdout").read_bytes().decode(errors="replace")
    if status not in (1, 2):
        yield f"ended by signal {-status}" if status < 0 else f"exit code {status}"
    if "Traceback" in said + printed:
        yield f"a traceback: {said[-300:]!r}"
    if one.expected not in said:
        yield f"does not say {one.expected!r} but {said[:300]!r}"
    lines = (said + printed).split("\n")
    if not all(line.isprintable() for line in lines) or any(line.startswith("/models/out: proven") for line in lines):
        yield "a stranger's words reach the terminal"
    left = [path.name for folder in ("out", "tmp") for path in (directory / folder).iterdir()]
    if left:
        yield f"left {', '.join(left)}"


def _make(name: str, directory: Path) -> int:
    (one,) = (each for each in inputs() if each.name == name)
    arguments = one.make()(FAMILIES[one.family](directory / "in"))
    if arguments is None:
        arguments = [str(next(path for path in (directory / "in").iterdir() if path.is_dir()))]
    (directory / "arguments").write_text(json.dumps(arguments), encoding="utf-8")
    return 0


def _import(directory: Path) -> int:
    arguments = json.loads((directory / "arguments").read_text(encoding="utf-8"))
    addresses = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (addresses + _MORE_BYTES, addresses + _MORE_BYTES))
    tempfile.tempdir = str(directory / "tmp")
    sys.argv = ["babelserve-import", arguments[0], str(directory / "out" / "bundle"), *arguments[1:]]
    main()
    return 0


def _forked(run: Callable[[], int], directory: Path) -> tuple[int, resource.struct_rusage]:
    """Runs a function in a fork of this process; returns its exit code, or minus the signal, and what it took."""
    sys.stdout.flush()
    process = os.fork()
    if not process:
        _end(run, directory)
    give_up = time.monotonic() + _GIVEN_UP_SECONDS
    while True:
        found, status, usage = os.wait4(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), usage
        if time.monotonic() > give_up:
            os.kill(process, 9)
        time.sleep(0.01)


def _end(run: Callable[[], int], directory: Path) -> None:
    """Runs a function and ends this process as Python would; what it prints goes to files."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    status = 1
    try:
        status = run()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001  # what a program would end with
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


CASES = (Case("S9", "models that nobody vetted", hostile_imports),)
