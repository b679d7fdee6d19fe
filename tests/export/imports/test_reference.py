"""What needs no `transformers`; comparisons with it are made by `make check-imports`."""

import importlib.util

import pytest

from export.imports.foreign import TRANSFORMERS
from export.imports.reference import Comparison, Difference, refusal


def test_a_comparison_counts_all_and_shows_the_first_differences() -> None:
    found = Comparison("transformers", 9, [Difference(f"text {i}", "eins", "zwei") for i in range(5)])

    lines = str(found).splitlines()

    assert lines[0] == "4 of 9 sentences identical to those of transformers"
    assert [line.strip() for line in lines[1:4]] == ["'text 0'", "ours:   'eins'", "theirs: 'zwei'"]
    assert len(lines) == 10  # three of them


@pytest.mark.skipif(importlib.util.find_spec(TRANSFORMERS) is not None, reason="transformers is installed")
def test_the_package_that_is_missing_is_named() -> None:
    assert refusal(TRANSFORMERS) == "--check needs transformers: pip install 'transformers>=5.23' sacremoses"


def test_an_engine_that_cannot_be_asked_is_named() -> None:
    assert "cannot ask marian-decoder: translate" in (refusal("marian-decoder") or "")
