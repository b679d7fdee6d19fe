import numpy as np
import pytest
from numpy.typing import NDArray

from server.bundle.graphs import CANDIDATES, COLUMNS
from server.runtime.columns import Columns

VOCAB_SIZE = 20


class AdmittedRows:
    """Columns, with what each row of them should select."""

    def __init__(self, vocab_size: int, max_rows: int, dtype: type[np.generic] = np.float32) -> None:
        rng = np.random.default_rng(0)
        self.embedding = (rng.random((vocab_size, 5)) * 100 - 50).astype(dtype)
        self.columns = Columns(self.embedding, max_rows)
        self.expected: list[set[int]] = []
        self.layout = self.columns.layout
        self.arrays = self.current_arrays()

    def admit(self, row: int, *candidates: NDArray[np.int32]) -> None:
        self.columns.admit(row, candidates)
        self.expected[row:] = [set(tokens.tolist()) for tokens in candidates]
        self.check()

    def move(self, to: list[int], from_: list[int]) -> None:
        self.columns.move(np.array(to, np.int64), np.array(from_, np.int64))
        moved = [self.expected[row] for row in from_]
        for row, tokens in zip(to, moved, strict=True):
            self.expected[row] = tokens
        self.check()

    def leave(self) -> None:
        self.expected.pop()

    def current_arrays(self) -> list[NDArray[np.generic]]:
        return [self.columns.weight, self.columns.ids, self.columns.candidates]

    def check(self) -> None:
        columns = self.columns
        for row, tokens in enumerate(self.expected):
            used = columns.candidates[row][columns.candidates[row] >= 0]
            assert len(used) == len(tokens)
            assert set(columns.ids[used].tolist()) == tokens
            weight = columns.weight[np.divmod(used, COLUMNS)].astype(np.float32)
            unsigned = columns.weight.dtype == np.uint8
            np.testing.assert_array_equal(weight - 128 if unsigned else weight, self.embedding[columns.ids[used]])
        arrays = self.current_arrays()
        replaced = [new is not old for new, old in zip(arrays, self.arrays, strict=True)]
        assert all(replaced) if columns.layout > self.layout else not any(replaced)
        assert columns.weight.shape[:2] == (len(columns.ids) // COLUMNS, COLUMNS)
        assert columns.candidates.shape[1] % CANDIDATES == 0
        self.layout, self.arrays = columns.layout, arrays


def tokens_from(start: int, count: int) -> NDArray[np.int32]:
    return np.arange(start, start + count, dtype=np.int32)


def test_a_row_selects_its_candidates_and_no_others() -> None:
    rows = AdmittedRows(VOCAB_SIZE, max_rows=2)

    rows.admit(0, np.array([1, 4, 7], np.int32))
    rows.admit(1, np.array([0, 4, 19], np.int32))

    assert (rows.columns.candidates >= 0).sum() == 6


def test_a_token_has_one_column_however_many_rows_need_it() -> None:
    rows = AdmittedRows(VOCAB_SIZE, max_rows=2)

    rows.admit(0, tokens_from(0, 10))
    rows.admit(1, tokens_from(5, 10))

    assert len(np.unique(rows.columns.candidates)) == 15 + 1  # and -1


def test_columns_of_a_sentence_that_is_over_serve_the_next() -> None:
    rows = AdmittedRows(VOCAB_SIZE, max_rows=1)
    rows.admit(0, tokens_from(0, 10))
    places = rows.columns.candidates[0].copy()

    rows.admit(0, tokens_from(0, 10))

    np.testing.assert_array_equal(rows.columns.candidates[0], places)


def test_a_full_projection_makes_room_without_growing() -> None:
    rows = AdmittedRows(4 * COLUMNS, max_rows=2)
    rows.admit(0, tokens_from(0, 100))

    for start in range(0, 3 * COLUMNS, 100):
        rows.admit(1, tokens_from(start, 300))

    assert rows.columns.layout == 0
    assert len(rows.columns.ids) == COLUMNS


def test_it_grows_where_the_rows_in_use_leave_no_room() -> None:
    rows = AdmittedRows(4 * COLUMNS, max_rows=2 + COLUMNS // CANDIDATES)

    rows.admit(0, *(tokens_from(start, CANDIDATES) for start in range(0, COLUMNS, CANDIDATES)))
    assert rows.columns.layout == 0
    row = len(rows.expected)
    rows.admit(row, tokens_from(COLUMNS, 1))
    assert (rows.columns.layout, len(rows.columns.ids)) == (1, 2 * COLUMNS)
    rows.admit(row + 1, tokens_from(COLUMNS, 2 * COLUMNS))

    assert (rows.columns.layout, len(rows.columns.ids)) == (2, 3 * COLUMNS)


def test_it_shrinks_when_few_columns_are_needed() -> None:
    rows = AdmittedRows(4 * COLUMNS, max_rows=2)
    rows.admit(0, tokens_from(0, 10))
    rows.admit(1, tokens_from(0, 4 * COLUMNS))

    rows.admit(1, tokens_from(5, 10))

    assert len(rows.columns.ids) == COLUMNS


def test_bytes_are_unsigned() -> None:
    rows = AdmittedRows(VOCAB_SIZE, max_rows=1, dtype=np.int8)

    rows.admit(0, np.array([3], np.int32))

    assert rows.columns.weight.dtype == np.uint8
    assert rows.columns.weight[0, 0].tolist() == [value + 128 for value in rows.embedding[3].tolist()]


def test_rows_swap_places() -> None:
    rows = AdmittedRows(VOCAB_SIZE, max_rows=2)
    rows.admit(0, tokens_from(0, 3))
    rows.admit(1, tokens_from(2, 8))

    rows.move([0, 1], [1, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
@pytest.mark.parametrize("seed", range(4))
def test_every_row_keeps_its_columns_whatever_comes_and_goes(seed: int, dtype: type[np.generic]) -> None:
    rng = np.random.default_rng(seed)
    vocab_size, max_rows = 3000, 6
    rows = AdmittedRows(vocab_size, max_rows, dtype)

    for _ in range(300):
        num_rows = len(rows.expected)
        action = rng.integers(4)
        if action < 2 and num_rows < max_rows:
            counts = rng.integers(1, 400, size=rng.integers(1, max_rows - num_rows + 1))
            rows.admit(num_rows, *(rng.permutation(vocab_size)[:count].astype(np.int32) for count in counts))
        elif action == 2 and num_rows:
            to = rng.permutation(num_rows)[: rng.integers(1, num_rows + 1)]
            rows.move(to.tolist(), rng.integers(num_rows, size=len(to)).tolist())
        elif num_rows:
            rows.leave()

    assert rows.columns.layout > 0
