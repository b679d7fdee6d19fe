"""What needs no `transformers`; comparisons with it are made by `make check-imports`."""

import sys

import pytest

from export.imports.foreign import CTRANSLATE2, TRANSFORMERS
from export.imports.reference import Comparison, Difference, refusal


def test_a_comparison_counts_all_and_shows_the_first_differences() -> None:
    found = Comparison("transformers", 9, [Difference(f"text {i}", "eins", "zwei") for i in range(5)])

    lines = str(found).splitlines()

    assert lines[0] == "4 of 9 sentences identical to those of transformers"
    assert [line.strip() for line in lines[1:4]] == ["'text 0'", "ours:   'eins'", "theirs: 'zwei'"]
    assert len(lines) == 10  # three of them


def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (TRANSFORMERS, CTRANSLATE2):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed

    assert refusal(TRANSFORMERS) == "--check needs transformers: pip install 'transformers>=5.23' sacremoses"
    assert refusal(CTRANSLATE2) == "--check needs ctranslate2: pip install 'ctranslate2>=4.8'"


def test_an_engine_that_cannot_be_asked_is_named() -> None:
    assert "cannot ask marian-decoder: translate" in (refusal("marian-decoder") or "")
