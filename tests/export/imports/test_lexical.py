import numpy as np
import pytest

from export.imports.formats.tensors import FormatError
from export.imports.lexical import shortlist_of


def ids(*rows: list[int]) -> list[np.ndarray]:
    return [np.array(row, np.uint32) for row in rows]


def test_a_foreign_shortlist_has_the_same_candidates() -> None:
    shortlist = shortlist_of(33, ids([], [50, 60], [7]), vocab_size=65, num_targets=64)

    assert shortlist.by_token.shape == (65, 2)
    assert shortlist.candidates((1,)).tolist() == [*range(33), 50, 60]
    assert shortlist.candidates((2,)).tolist() == [*range(33)]
    assert shortlist.candidates((0,)).tolist() == [*range(33)]
    assert shortlist.candidates((64,)).tolist() == [*range(33)]


def test_a_shortlist_has_as_many_common_tokens_as_the_widest_beam_needs() -> None:
    assert shortlist_of(3, ids([40]), vocab_size=65, num_targets=64).candidates((0,)).tolist() == [*range(32), 40]


@pytest.mark.parametrize(
    ("first", "row", "expected"),
    [
        (3, [8], "names target id 8, the model has 8"),
        (9, [1], "names target id 8"),
        (1, list(range(7)) * 40, "has 280"),
    ],
)
def test_a_shortlist_that_does_not_fit_is_refused(first: int, row: list[int], expected: str) -> None:
    with pytest.raises(FormatError, match=expected):
        shortlist_of(first, ids(row), vocab_size=9, num_targets=8)
