"""That what is written is what is read, and what a row says."""

from pathlib import Path
from typing import Any

from tests.bench.record import Record, Row, commit_of, read_record, rows_of
from tests.bench.statistics import Ratio
from tests.bench.text import ROOT

FACTS: dict[str, Any] = {"section": "offline", "model": "base", "setting": "offline int8 greedy"}
SPEED = Row(
    **FACTS,
    measure="tokens/s",
    ours=4042.0,
    theirs=2965.0,
    ratio=Ratio(1.36, 1.34, 1.43),
    rounds=15,
    sentences=500,
    settings=("cpu-int8", "int8"),
    is_headline=True,
)
PADDING = Row(**FACTS, measure="padding %", ours=1.1, theirs=0.0)
RECORD = Record(
    date="2026-11-22",
    commit="dfab3b9",
    machine={"processor": "AMD EPYC", "usable_cores": 2},
    versions={"onnxruntime": "1.31.1"},
    rows=(SPEED, PADDING),
    note="A note.",
)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    RECORD.write(tmp_path / "made" / "results.json")

    assert read_record(tmp_path / "made" / "results.json") == RECORD


def test_rows_are_medians_over_the_rounds_and_their_ratio_where_there_is_one() -> None:
    ours = {"tokens/s": [2.0, 4.0, 6.0], "padding %": [0.0, 0.0, 0.0], "peak MB": [7.0]}
    theirs = {"tokens/s": [1.0, 2.0, 3.0], "padding %": [0.0, 0.0, 0.0], "peak MB": [14.0]}

    speed, padding, peak = rows_of(ours, theirs, ["tokens/s"], **FACTS)

    assert (speed.ours, speed.theirs, speed.quotient, speed.is_headline) == (4.0, 2.0, "2.00 (2.00-2.00)", True)
    assert (padding.quotient, padding.is_headline) == ("", False)
    assert (peak.ratio, peak.quotient) == (None, "0.50")
    assert [row.theirs for row in rows_of(ours, **FACTS)] == [None] * 3


def test_a_commit_has_seven_digits_and_no_directory_has_none(tmp_path: Path) -> None:
    assert commit_of(tmp_path) == "unknown"
    assert len(commit_of(ROOT).removesuffix("-dirty")) == 7
