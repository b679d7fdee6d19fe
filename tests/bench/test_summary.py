"""That README.md shows what is kept in results/."""

from dataclasses import replace

import pytest

from tests.bench.record import Row, read_record
from tests.bench.summary import README, RESULTS, replace_block, summarize
from tests.bench.test_record import FACTS, RECORD


def test_a_summary_has_a_table_for_each_thing_compared_with_and_a_note_for_each_run() -> None:
    other = Row(**FACTS, measure="tokens/s", ours=5.0, theirs=4.0, against="15c2e86", is_headline=True)

    text = summarize([RECORD, replace(RECORD, commit="abcdef0", rows=(other,))])

    assert text == (
        "| commit   | setting                             | ours   | CTranslate2   | ratio            | rounds   |\n"
        "|----------|-------------------------------------|--------|---------------|------------------|----------|\n"
        "| dfab3b9  | base, offline int8 greedy, tokens/s | 4,042  | 2,965         | 1.36 (1.34-1.43) | 15       |\n"
        "\n"
        "| commit   | setting                             | ours   | 15c2e86   | ratio   | rounds   |\n"
        "|----------|-------------------------------------|--------|-----------|---------|----------|\n"
        "| abcdef0  | base, offline int8 greedy, tokens/s | 5      | 4         | 1.25    | 1        |\n"
        "\n"
        "- dfab3b9, 2026-11-22: AMD EPYC, 2 cores; onnxruntime 1.31.1. A note.\n"
        "- abcdef0, 2026-11-22: AMD EPYC, 2 cores; onnxruntime 1.31.1. A note.\n"
    )
    assert "padding %" in summarize([RECORD], with_all_rows=True)


def test_readme_shows_the_results_that_are_kept() -> None:
    page = README.read_text(encoding="utf-8")
    records = [read_record(path) for path in sorted(RESULTS.glob("*.json"), reverse=True)]

    assert replace_block(page, summarize(records)) == page, "run python -m tests.bench.summary --write"
    assert [f"{each.date}-{each.commit}" for each in records] == sorted(
        (path.stem for path in RESULTS.glob("*.json")), reverse=True
    )


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no marks"):
        replace_block("a page", "a table")
