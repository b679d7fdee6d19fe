import io
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from server.errors import BundleError
from server.shortlist import COLUMNS, Columns, Shortlist

VOCAB_SIZE = 20


def new_shortlist(vocab_size: int = VOCAB_SIZE, seed: int = 0) -> Shortlist:
    rng = np.random.default_rng(seed)
    by_token = rng.integers(vocab_size, size=(vocab_size, 4), dtype=np.int32)
    return Shortlist(by_token, np.array([3, 7], np.int32))


def written(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def one_array() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros((VOCAB_SIZE, 2), np.int32))
    return file.getvalue()


class TestShortlist:
    def test_what_is_saved_is_loaded(self, tmp_path: Path) -> None:
        shortlist = new_shortlist()

        shortlist.save(tmp_path / "shortlist.npz")

        loaded = Shortlist.load(tmp_path / "shortlist.npz", VOCAB_SIZE)
        assert loaded.by_token.dtype == loaded.common.dtype == np.int32
        np.testing.assert_array_equal(loaded.by_token, shortlist.by_token)
        np.testing.assert_array_equal(loaded.common, shortlist.common)

    def test_equal_tables_are_equal_files(self, tmp_path: Path) -> None:
        for name in ("a.npz", "b.npz"):
            new_shortlist().save(tmp_path / name)

        assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()

    def test_candidates_are_those_of_each_token_and_the_common_ones_once_and_in_order(self) -> None:
        shortlist = new_shortlist()

        found = shortlist.candidates((5, 9, 5, 3))

        assert found.tolist() == sorted({*shortlist.by_token[[5, 9, 3]].ravel().tolist(), 3, 7})
        assert found.dtype == np.int32

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param(b"", id="empty"),
            pytest.param(b"no archive", id="text"),
            pytest.param(written(by_token=np.zeros((VOCAB_SIZE, 2), np.int32))[:200], id="cut off"),
            pytest.param(one_array(), id="one array"),
            pytest.param(written(by_token=np.zeros((VOCAB_SIZE, 2), np.int32)), id="without common"),
            pytest.param(
                written(by_token=np.full((VOCAB_SIZE, 2), None), common=np.zeros(1, np.int32)), id="with a pickle"
            ),
        ],
    )
    def test_a_file_that_holds_no_table_cannot_be_read(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "shortlist.npz").write_bytes(content)

        with pytest.raises(BundleError, match=r"shortlist\.npz: cannot be read"):
            Shortlist.load(tmp_path / "shortlist.npz", VOCAB_SIZE)

    def test_a_missing_file_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(BundleError, match=r"shortlist\.npz: cannot be read"):
            Shortlist.load(tmp_path / "shortlist.npz", VOCAB_SIZE)

    @pytest.mark.parametrize(
        ("by_token", "common"),
        [
            (np.zeros((VOCAB_SIZE - 1, 2), np.int32), np.zeros(1, np.int32)),
            (np.zeros(VOCAB_SIZE, np.int32), np.zeros(1, np.int32)),
            (np.zeros((VOCAB_SIZE, 2, 2), np.int32), np.zeros(1, np.int32)),
            (np.array(3, np.int32), np.zeros(1, np.int32)),
            (np.full((VOCAB_SIZE, 2), VOCAB_SIZE, np.int32), np.zeros(1, np.int32)),
            (np.zeros((VOCAB_SIZE, 2), np.int32), np.array([-1], np.int32)),
            (np.zeros((VOCAB_SIZE, 2), np.int32), np.zeros((1, 1), np.int32)),
            (np.zeros((VOCAB_SIZE, 2), np.float32), np.zeros(1, np.int32)),
            (np.zeros((VOCAB_SIZE, 2), np.int32), np.zeros(1, np.int64)),
        ],
    )
    def test_a_table_of_another_vocabulary_is_refused(
        self, tmp_path: Path, by_token: NDArray[np.generic], common: NDArray[np.generic]
    ) -> None:
        (tmp_path / "shortlist.npz").write_bytes(written(by_token=by_token, common=common))

        with pytest.raises(BundleError, match=r"shortlist\.npz: is no table for a vocabulary of 20"):
            Shortlist.load(tmp_path / "shortlist.npz", VOCAB_SIZE)

    def test_a_table_may_have_no_common_tokens(self, tmp_path: Path) -> None:
        Shortlist(new_shortlist().by_token, np.zeros(0, np.int32)).save(tmp_path / "shortlist.npz")

        assert len(Shortlist.load(tmp_path / "shortlist.npz", VOCAB_SIZE).common) == 0


class Rows:
    """Columns, with what each row of them should select."""

    def __init__(self, vocab_size: int, max_rows: int, dtype: type[np.generic] = np.float32) -> None:
        rng = np.random.default_rng(0)
        self.embedding = (rng.random((vocab_size, 5)) * 100).astype(dtype)
        self.columns = Columns(self.embedding, max_rows)
        self.expected: dict[int, set[int]] = {}
        self.layout = self.columns.layout
        self.arrays = self.current_arrays()

    def admit(self, row: int, tokens: NDArray[np.int32]) -> None:
        self.expected.pop(row, None)
        self.columns.admit(row, tokens, sorted(self.expected))
        self.expected[row] = set(tokens.tolist())
        self.check()

    def move(self, to: list[int], from_: list[int]) -> None:
        self.columns.move(np.array(to, np.int64), np.array(from_, np.int64))
        self.expected.update({new: self.expected[old] for new, old in zip(to, from_, strict=True)})
        self.check()

    def leave(self, row: int) -> None:
        del self.expected[row]

    def current_arrays(self) -> list[NDArray[np.generic]]:
        return [self.columns.weight, self.columns.ids, self.columns.is_candidate]

    def check(self) -> None:
        columns = self.columns
        for row, tokens in self.expected.items():
            (used,) = columns.is_candidate[row].nonzero()
            assert len(used) == len(tokens)
            assert set(columns.ids[used].tolist()) == tokens
            np.testing.assert_array_equal(columns.weight[:, used], self.embedding[columns.ids[used]].T)
        arrays = self.current_arrays()
        replaced = [new is not old for new, old in zip(arrays, self.arrays, strict=True)]
        assert all(replaced) if columns.layout > self.layout else not any(replaced)
        assert columns.weight.shape[1] == len(columns.ids) == columns.is_candidate.shape[1]
        assert len(columns.ids) % COLUMNS == 0
        self.layout, self.arrays = columns.layout, arrays


def tokens_from(start: int, count: int) -> NDArray[np.int32]:
    return np.arange(start, start + count, dtype=np.int32)


class TestColumns:
    def test_a_row_selects_its_candidates_and_no_others(self) -> None:
        rows = Rows(VOCAB_SIZE, max_rows=2)

        rows.admit(0, np.array([1, 4, 7], np.int32))
        rows.admit(1, np.array([0, 4, 19], np.int32))

        assert rows.columns.is_candidate.sum() == 6

    def test_a_token_has_one_column_however_many_rows_need_it(self) -> None:
        rows = Rows(VOCAB_SIZE, max_rows=2)

        rows.admit(0, tokens_from(0, 10))
        rows.admit(1, tokens_from(5, 10))

        assert rows.columns.is_candidate.any(axis=0).sum() == 15

    def test_columns_of_a_sentence_that_is_over_serve_the_next(self) -> None:
        rows = Rows(VOCAB_SIZE, max_rows=1)
        rows.admit(0, tokens_from(0, 10))
        places = rows.columns.is_candidate[0].copy()

        rows.admit(0, tokens_from(0, 10))

        np.testing.assert_array_equal(rows.columns.is_candidate[0], places)

    def test_a_full_projection_makes_room_without_growing(self) -> None:
        rows = Rows(4 * COLUMNS, max_rows=2)
        rows.admit(0, tokens_from(0, 100))

        for start in range(0, 3 * COLUMNS, 100):
            rows.admit(1, tokens_from(start, 300))

        assert rows.columns.layout == 0
        assert len(rows.columns.ids) == COLUMNS

    def test_it_grows_where_the_rows_in_use_leave_no_room(self) -> None:
        rows = Rows(4 * COLUMNS, max_rows=3)

        rows.admit(0, tokens_from(0, COLUMNS))
        assert rows.columns.layout == 0
        rows.admit(1, tokens_from(COLUMNS, 1))
        assert (rows.columns.layout, len(rows.columns.ids)) == (1, 2 * COLUMNS)
        rows.admit(2, tokens_from(COLUMNS, 2 * COLUMNS))

        assert (rows.columns.layout, len(rows.columns.ids)) == (2, 4 * COLUMNS)

    def test_rows_swap_places(self) -> None:
        rows = Rows(VOCAB_SIZE, max_rows=2)
        rows.admit(0, tokens_from(0, 3))
        rows.admit(1, tokens_from(2, 8))

        rows.columns.move(np.array([0, 1]), np.array([1, 0]))

        rows.expected = {0: rows.expected[1], 1: rows.expected[0]}
        rows.check()

    @pytest.mark.parametrize("dtype", [np.float32, np.int8])
    @pytest.mark.parametrize("seed", range(4))
    def test_every_row_keeps_its_columns_whatever_comes_and_goes(self, seed: int, dtype: type[np.generic]) -> None:
        rng = np.random.default_rng(seed)
        vocab_size, max_rows = 3000, 6
        rows = Rows(vocab_size, max_rows, dtype)
        choose = [self.admit, self.admit, self.move, self.leave]

        for _ in range(300):
            choose[rng.integers(len(choose))](rows, rng, max_rows)

        assert rows.columns.layout > 0

    @staticmethod
    def admit(rows: Rows, rng: np.random.Generator, max_rows: int) -> None:
        count = rng.integers(1, 400)
        rows.admit(int(rng.integers(max_rows)), rng.choice(3000, count, replace=False).astype(np.int32))

    @staticmethod
    def move(rows: Rows, rng: np.random.Generator, max_rows: int) -> None:
        if rows.expected:
            to = rng.permutation(max_rows)[: rng.integers(1, max_rows)]
            rows.move(to.tolist(), rng.choice(sorted(rows.expected), len(to)).tolist())

    @staticmethod
    def leave(rows: Rows, rng: np.random.Generator, _max_rows: int) -> None:
        if rows.expected:
            rows.leave(int(rng.choice(sorted(rows.expected))))
