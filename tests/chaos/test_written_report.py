"""The report merges runs of different days, and hides none that failed."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.acceptance.report import Check
from tests.chaos.case import SKIPPED, Case, told
from tests.chaos.records import Record, keep, read
from tests.chaos.written_report import write_report

CASES = [Case(name, f"title of {name}", lambda _: []) for name in ("R1", "R2", "R3", "R4")]
GOOD = Check("errors", "0 of 100", "0", passed=True)
BAD = Check("p99", "7 ms", "<= 5 ms", passed=False)
WHOLE = Record(
    case="R1",
    date="2026-01-01",
    commit="aaa",
    is_quick=False,
    seed=1,
    load=0.5,
    machine="one",
    seconds=90.0,
    checks=[GOOD],
)


def test_each_case_keeps_its_date_commit_and_machine(tmp_path: Path) -> None:
    keep(WHOLE, tmp_path)
    later = replace(WHOLE, case="R2", date="2026-02-02", commit="bbb", machine="other", checks=[GOOD, BAD])
    keep(later, tmp_path)
    keep(replace(WHOLE, case="R3", checks=[Check(SKIPPED, "needs root")]), tmp_path)

    write_report(CASES, tmp_path / "REPORT.md", tmp_path)

    lines = (tmp_path / "REPORT.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    cells = {row[0]: row[2:] for row in rows}
    assert "2 of 4 cases have been run; 2 of their 3 checks hold." in lines
    assert cells["R1"] == ["2026-01-01", "aaa", "whole", "1.5", "1", "none"]
    assert cells["R2"] == ["2026-02-02", "bbb", "whole", "1.5", "2", "p99"]
    assert cells["R3"][2] == "skipped: needs root"
    assert cells["R4"][2] == "not run"
    assert cells["p99"] == ["<= 5 ms", "FAILED"]
    assert {"- one", "- other"} <= set(lines)


def test_a_line_without_a_verdict_is_said_not_to_be_judged(tmp_path: Path) -> None:
    unjudged = Check("p99 on a busy machine", "7 ms", "<= 5 ms", passed=None)
    keep(replace(WHOLE, checks=[GOOD, told("calls", "100"), unjudged]), tmp_path)

    write_report(CASES, tmp_path / "REPORT.md", tmp_path)

    lines = (tmp_path / "REPORT.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    assert ["calls", "100", "", "not judged"] in rows
    assert ["p99 on a busy machine", "7 ms", "<= 5 ms", "not judged"] in rows
    assert "1 of 4 cases have been run; 1 of their 1 checks hold." in lines


@pytest.mark.parametrize(
    ("new", "is_kept"),
    [
        (replace(WHOLE, commit="ccc", checks=[BAD]), True),
        (replace(WHOLE, commit="ccc", is_quick=True), False),
        (replace(WHOLE, commit="ccc", checks=[Check(SKIPPED, "needs root")]), False),
    ],
    ids=["whole", "quick", "skipped"],
)
def test_only_a_whole_run_replaces_a_whole_run(tmp_path: Path, new: Record, is_kept: bool) -> None:
    keep(WHOLE, tmp_path)

    assert keep(new, tmp_path) == is_kept
    assert read("R1", tmp_path) == (new if is_kept else WHOLE)
