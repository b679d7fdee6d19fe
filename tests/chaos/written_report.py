"""REPORT.md: what every case found when it was last run whole, each with its date, commit and machine."""

from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from tests.chaos.case import Case
from tests.chaos.records import DIRECTORY, Record, read

PATH = Path(__file__).with_name("REPORT.md")

_UNPROVEN = """\
- **Kubernetes** itself: probe restarts, EndpointSlice timing, disruption budgets, autoscaling. R3 and R5 stop and kill
  processes on one machine.
- **A GPU**: R7's and R19's CUDA errors are raised by the launcher. R20 (out of memory by a co-tenant, a long soak)
  needs one.
- **cgroup v2**: R15 and R17 limit memory and processor time by version 1, and are skipped where there is no such
  controller. Other kernels than the one below.
- Latency of a wide network: this kernel has no netem. R12 drops and resets packets on the loopback.
- R13: models are swapped in `tests/e2e/test_models.py`; R7 has the faults at the moment of it.
- R22's resumption: no bulk command resumes by itself. The client's output is whole rows, in order, however it ends.
- More than 20,000 file descriptors a process; vulnerability databases."""


_MOST_NAMED = 3  # checks that failed, in a row of the table of cases


def write_report(cases: Sequence[Case], path: Path = PATH, directory: Path = DIRECTORY) -> None:
    """Writes the report.

    Args:
        cases: all there are, in order; one without a record is said not to have been run.
        path: of the file.
        directory: of the records.
    """
    records = {case.name: found for case in cases if (found := read(case.name, directory)) is not None}
    run = [each for each in records.values() if not each.is_skipped]
    num_judged, num_failed = sum(each.num_judged for each in run), sum(len(each.failed) for each in run)
    rows = [(case.name, case.title, *_overview(records.get(case.name))) for case in cases]
    columns = ("case", "", "date", "commit", "part", "minutes", "checks", "failed")
    lines = [
        "# What the chaos suite found",
        "",
        f"{len(run)} of {len(cases)} cases have been run; {num_judged - num_failed} of their {num_judged} checks hold.",
        "Written by `python -m tests.chaos --report` (`make chaos`) from `results/`: each case's last whole run, or",
        "its quick part if it has had no other. `tests/chaos/__init__.py` says what is promised. A row that is",
        "not judged only informs, or could not be judged in that run.",
        "",
        tabulate(rows, columns, tablefmt="github", disable_numparse=True),
        "",
        "Machines:",
        "",
        *(f"- {machine}" for machine in dict.fromkeys(each.machine for each in run)),
        "",
        "## What cannot be proved here",
        "",
        _UNPROVEN,
    ]
    for case in cases:
        if case.name in records and not records[case.name].is_skipped:
            lines += ["", *_section(case, records[case.name])]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _overview(record: Record | None) -> tuple[str, ...]:
    if record is None:
        return ("", "", "not run", "", "", "")
    if record.is_skipped:
        return (record.date, record.commit, f"skipped: {record.checks[0].measured}", "", "", "")
    part = "quick" if record.is_quick else "whole"
    failed = ", ".join(record.failed) or "none"
    if len(record.failed) > _MOST_NAMED:
        failed = f"{len(record.failed)}, see below"
    return (record.date, record.commit, part, f"{record.seconds / 60:.1f}", str(record.num_judged), failed)


def _section(case: Case, record: Record) -> list[str]:
    rows = [(check.name, check.measured, check.bar, check.verdict) for check in record.checks]
    part = ", quick part" if record.is_quick else ""
    return [
        f"## {case.name}: {case.title}",
        "",
        f"{record.date}, commit {record.commit}, seed {record.seed}{part}; load at its end {record.load:g}.",
        "",
        tabulate(rows, ("", "measured", "bar", ""), tablefmt="github", disable_numparse=True),
    ]
