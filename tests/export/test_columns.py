import numpy as np
import pytest

from export.columns import quantize_columns


def test_columns_are_rounded_to_the_nearest_of_255_levels() -> None:
    matrix = np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32) * np.logspace(-4, 3, 7, dtype=np.float32)

    found, scales, are_exact = quantize_columns(matrix)

    assert (found.dtype.name, scales.dtype.name, scales.shape) == ("int8", "float32", (7,))
    assert np.array_equal(np.abs(found).max(axis=0), [127] * 7)
    assert (np.abs(found * scales - matrix) <= scales * 0.5001).all()
    assert not are_exact


def test_columns_in_parts_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(0).normal(size=(3, 11)).astype(np.float32)
    whole = quantize_columns(matrix).quantized
    monkeypatch.setattr("export.columns._AT_A_TIME", 6)
    assert all(np.array_equal(quantize_columns(each)[0], whole) for each in (matrix, np.asfortranarray(matrix)))


def test_a_column_of_zeros_stays_zero() -> None:
    found, scales, are_exact = quantize_columns(np.zeros((3, 2), np.float32))

    assert are_exact
    assert not found.any()
    assert np.isfinite(scales).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_was_int8_stays_what_it_was(dtype: str) -> None:
    rng = np.random.default_rng(0)
    theirs = rng.integers(-127, 128, (300, 50)).astype(np.int8)
    theirs[:, 7] //= 4  # their scale is of the whole matrix: a column may use few of its levels
    theirs[:, 8] = 0
    matrix = (theirs / np.array(rng.uniform(20, 500), dtype)).astype(np.float32)

    found, scales, are_exact = quantize_columns(matrix)

    assert are_exact
    np.testing.assert_allclose(found * scales, matrix, rtol=1e-6, atol=1e-12)
    exactly = np.abs(theirs).max(axis=0) == 127
    assert exactly.any()
    assert np.array_equal(found[:, exactly], theirs[:, exactly])


def test_one_number_between_the_levels_makes_a_column_be_rounded_anew() -> None:
    theirs = np.random.default_rng(0).integers(-100, 101, (300, 3)).astype(np.float32)
    theirs[0] = 100
    theirs[299, 1] = 0.4

    found, scales, are_exact = quantize_columns(theirs)

    assert not are_exact
    assert np.abs(found).max(axis=0).tolist() == [100, 127, 100]
    assert (np.abs(found * scales - theirs) <= scales * 0.5001).all()
