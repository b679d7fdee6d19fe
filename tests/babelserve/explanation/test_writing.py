from pathlib import Path

import pytest

from babelserve.explanation.page import page
from babelserve.explanation.writing import MOST_TEXTS, explained, few
from babelserve.lines import Line
from babelserve.outputs import UsageError
from tests.babelserve.explanation.sentences import line, sentence


def test_results_pass_through_and_the_page_has_all_of_them(tmp_path: Path) -> None:
    results = [[line(sentence())], [line(), line(sentence(text="Zwei."))]]
    path = tmp_path / "why.html"

    assert list(explained(results, path, "de", None)) == results
    assert path.read_text() == page([each for batch in results for each in batch], "de", None)


def test_a_page_has_a_bound() -> None:
    lines = [Line(text="a", num_bytes=2)] * MOST_TEXTS

    assert list(few(lines)) == lines
    with pytest.raises(UsageError, match=f"up to {MOST_TEXTS} texts"):
        list(few([*lines, lines[0]]))
