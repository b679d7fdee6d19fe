"""Fuzzes the server's readers of foreign bytes by atheris, which is libFuzzer for Python: `make fuzz`.

    python -m tests.fuzz [TARGET ...] [--runs 100000] [--seconds 60] [--bytes 256] [--keep]

Each target starts from its corpus and what earlier runs left in runs/fuzz, and ends at its first failure, whose input
and log are then in runs/fuzz too. Prints a line for each target; exits 1 if one failed, 77 without atheris.
"""

import argparse
import importlib.util
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from tests.acceptance.report import EXIT_FAILED, EXIT_PASSED, EXIT_TOOL_MISSING
from tests.fuzz.corpus import add_inputs, read_inputs
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
_RUNS = ROOT / "runs" / "fuzz"
_MAX_KEPT_BYTES = 4096
_INPUT_SECONDS = 10  # that no input may take
_PROCESS_MIB = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a target's run.

    Attributes:
        target: which.
        num_runs: inputs that were tried.
        coverage: places of the instrumented code (edges) that they reached.
        seconds: it took, the start included.
        has_failed: an input raised, hanged or took too much memory; the log's end tells.
    """

    target: str
    num_runs: int
    coverage: int
    seconds: float
    has_failed: bool


def fuzz(target: str, max_runs: int, max_seconds: int, max_bytes: int) -> Outcome:
    """Runs a target on inputs of so many bytes until one of the other limits, or a failure."""
    found = _RUNS / target
    found.mkdir(parents=True, exist_ok=True)
    _write(found, read_inputs(target))
    limits = [f"-runs={max_runs}", f"-max_total_time={max_seconds}", f"-max_len={max_bytes}"]
    limits += [f"-timeout={_INPUT_SECONDS}", f"-rss_limit_mb={_PROCESS_MIB}"]
    started = time.monotonic()
    done = _run_fuzzer(target, *limits, f"-artifact_prefix={_RUNS}/{target}-", "-print_final_stats=1", str(found))
    seconds = time.monotonic() - started
    (_RUNS / f"{target}.log").write_text(done.stdout, encoding="utf-8")
    return Outcome(
        target=target,
        num_runs=_last_number(r"number_of_executed_units: *(\d+)", done.stdout),
        coverage=_last_number(r" cov: (\d+)", done.stdout),
        seconds=seconds,
        has_failed=done.returncode != 0,
    )


def keep(target: str) -> int:
    """Adds to a target's corpus what reaches code that the corpus does not; returns how many inputs these are."""
    kept = _RUNS / f"{target}-kept"
    kept.mkdir(parents=True, exist_ok=True)
    _write(kept, read_inputs(target))
    _run_fuzzer(target, "-merge=1", f"-max_len={_MAX_KEPT_BYTES}", str(kept), str(_RUNS / target)).check_returncode()
    return add_inputs(target, (path.read_bytes() for path in kept.iterdir()))


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; default: all in turn")
    parser.add_argument("--runs", type=int, default=100_000, help="inputs for each target; default %(default)s")
    parser.add_argument("--seconds", type=int, default=60, help="for each target; default %(default)s")
    parser.add_argument("--bytes", type=int, default=256, help="of an input, at most; default %(default)s")
    parser.add_argument("--keep", action="store_true", help="add to the corpus what reaches more code")
    arguments = parser.parse_args()
    targets = arguments.targets or list(TARGETS)
    if unknown := set(targets) - TARGETS.keys():
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: make fuzz installs it", file=sys.stderr)
        return EXIT_TOOL_MISSING
    outcomes = []
    for target in targets:
        outcomes.append(fuzz(target, arguments.runs, arguments.seconds, arguments.bytes))
        if arguments.keep and not outcomes[-1].has_failed:
            print(f"{target}: {keep(target)} inputs kept")
    rows = [
        (each.target, each.num_runs, each.coverage, round(each.seconds), "FAILED" if each.has_failed else "")
        for each in outcomes
    ]
    print(tabulate(rows, ("target", "inputs", "edges reached", "seconds", "")))
    return EXIT_FAILED if any(each.has_failed for each in outcomes) else EXIT_PASSED


def _run_fuzzer(target: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.fuzz.fuzzer", target, *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def _write(folder: Path, inputs: list[bytes]) -> None:
    for index, data in enumerate(inputs):
        (folder / f"corpus-{index}").write_bytes(data)


def _last_number(pattern: str, log: str) -> int:
    numbers = re.findall(pattern, log)
    return int(numbers[-1]) if numbers else 0


if __name__ == "__main__":
    sys.exit(main())
