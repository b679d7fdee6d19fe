import io
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from server.bundle.shortlist import Shortlist
from server.errors import BundleError

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


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    shortlist = new_shortlist()

    shortlist.save(tmp_path / "shortlist.npz")

    loaded = Shortlist.load((tmp_path / "shortlist.npz").read_bytes(), VOCAB_SIZE)
    assert loaded.by_token.dtype == loaded.common.dtype == np.int32
    np.testing.assert_array_equal(loaded.by_token, shortlist.by_token)
    np.testing.assert_array_equal(loaded.common, shortlist.common)


def test_a_source_with_a_vocabulary_of_its_own_has_the_rows_and_the_targets_are_the_candidates(tmp_path: Path) -> None:
    by_token = np.array([[29, 28], [5, 5], [6, 0]], np.int32)
    Shortlist(by_token, np.array([3, 7], np.int32)).save(tmp_path / "shortlist.npz")
    data = (tmp_path / "shortlist.npz").read_bytes()

    loaded = Shortlist.load(data, vocab_size=30, source_vocab_size=3)

    assert loaded.candidates((0, 2)).tolist() == [0, 3, 6, 7, 28, 29]
    for sizes, named in (((30, 4), "30, of the source 4"), ((29, 3), "29, of the source 3"), ((30, None), "30")):
        with pytest.raises(BundleError, match=rf"is no table for a vocabulary of {named}$"):
            Shortlist.load(data, *sizes)


def test_equal_tables_are_equal_files(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        new_shortlist().save(tmp_path / name)

    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_candidates_are_those_of_each_token_and_the_common_ones_once_and_in_order() -> None:
    shortlist = new_shortlist()

    found = shortlist.candidates((5, 9, 5, 3))

    assert found.tolist() == sorted({*shortlist.by_token[[5, 9, 3]].ravel().tolist(), 3, 7})


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
def test_what_holds_no_table_cannot_be_read(content: bytes) -> None:
    with pytest.raises(BundleError, match=r"shortlist\.npz: cannot be read"):
        Shortlist.load(content, VOCAB_SIZE)


def test_an_archive_that_unpacks_to_far_more_than_a_table_is_not_unpacked() -> None:
    packed = io.BytesIO()
    np.savez_compressed(packed, by_token=np.zeros((VOCAB_SIZE, 5000), np.int32), common=np.zeros(1, np.int32))

    with pytest.raises(BundleError, match="bytes are too many for a vocabulary of 20"):
        Shortlist.load(packed.getvalue(), VOCAB_SIZE)


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
        (np.zeros((VOCAB_SIZE, 2), "datetime64[s]"), np.zeros(1, np.int32)),
        (np.zeros((VOCAB_SIZE, 2), np.int32), np.zeros(1, np.int64)),
    ],
)
def test_a_table_of_another_vocabulary_is_refused(by_token: NDArray[np.generic], common: NDArray[np.generic]) -> None:
    with pytest.raises(BundleError, match=r"shortlist\.npz: is no table for a vocabulary of 20"):
        Shortlist.load(written(by_token=by_token, common=common), VOCAB_SIZE)


def test_a_table_may_have_no_common_tokens(tmp_path: Path) -> None:
    Shortlist(new_shortlist().by_token, np.zeros(0, np.int32)).save(tmp_path / "shortlist.npz")

    assert len(Shortlist.load((tmp_path / "shortlist.npz").read_bytes(), VOCAB_SIZE).common) == 0
