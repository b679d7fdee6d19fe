"""REPORT.md: what every case found, on which machine, at which commit."""

import datetime as dt
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from tests.acceptance.report import Check
from tests.acceptance.server_process import REPOSITORY
from tests.bench.machine import describe_machine, versions
from tests.chaos.case import Case, Options

PATH = Path(__file__).with_name("REPORT.md")

_UNPROVEN = """\
- Kubernetes itself: probe restarts, EndpointSlice timing, disruption budgets, autoscaling. R3 and R5 stop and kill
  processes on one machine.
- A GPU: R19's CUDA errors are raised by the launcher. R20 (out of memory by a co-tenant, a long soak) needs one.
- Latency of a wide network: this kernel has no netem. R12 drops and resets packets on the loopback.
- R13, and R7's swap_commit: the server swaps no models while it serves.
- R22's resumption: no bulk command resumes by itself. The client's output is whole rows, in order, however it ends.
- S4 is `python -m tests.chaos.attacks`, S1's million inputs are `tests/fuzz`, S5 and S6 are the tests of their rooms.
- More than 20,000 file descriptors a process, kernels with cgroup v2 only, vulnerability databases."""


def write_report(results: Sequence[tuple[Case, list[Check]]], options: Options, path: Path = PATH) -> None:
    """Writes the report.

    Args:
        results: of all cases that were run, in order.
        options: that they were run with.
        path: of the file.
    """
    checks = [check for _, each in results for check in each]
    num_held, num_judged = sum(check.passed is True for check in checks), _num_judged(checks)
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    part = ", quick part" if options.is_quick else ""
    lines = [
        "# What the chaos suite found",
        "",
        f"{today}, commit {_commit()}, seed {options.seed}{part}: {num_held} of {num_judged} checks hold.",
        "Written by `make chaos`; `tests/chaos/__init__.py` says what is promised.",
        "",
        *(f"- {name}: {value}" for name, value in (*describe_machine().items(), *versions().items())),
        "",
        "| case | | checks | failed |",
        "|---|---|---|---|",
        *(f"| {case.name} | {case.title} | {_num_judged(each)} | {_failed(each)} |" for case, each in results),
        "",
        "## What cannot be proved here",
        "",
        _UNPROVEN,
    ]
    for case, each in results:
        rows = [(check.name, check.measured, check.bar, check.verdict) for check in each]
        table = tabulate(rows, ("", "measured", "bar", ""), tablefmt="github", disable_numparse=True)
        lines += ["", f"## {case.name}: {case.title}", "", table]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _num_judged(checks: Sequence[Check]) -> int:
    return sum(check.passed is not None for check in checks)


def _failed(checks: Sequence[Check]) -> str:
    return ", ".join(check.name for check in checks if check.passed is False) or "none"


def _commit() -> str:
    """Returns the commit, and whether the checkout differs from it."""
    command = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--abbrev=12"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
