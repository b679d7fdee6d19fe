import numpy as np
import pytest

from server.kv_cache import BUCKET, KVCache
from server.scheduler import RowMoves


def new_cache(max_rows: int = 4) -> KVCache:
    return KVCache(num_layers=2, num_heads=3, head_dim=8, max_rows=max_rows, dtype=np.float32)


def fill(cache: KVCache) -> None:
    rng = np.random.default_rng(0)
    cache.self_attention[...] = rng.random(cache.self_attention.shape)
    cache.cross_attention[...] = rng.random(cache.cross_attention.shape)


def test_buffers_grow_in_buckets_and_keep_their_content() -> None:
    cache = new_cache()
    fill(cache)
    before = cache.self_attention.copy()

    cache.reserve(num_rows=4, self_positions=BUCKET + 1, cross_positions=3)

    assert cache.self_attention.shape == (4, 4, 3, 2 * BUCKET, 8)
    np.testing.assert_array_equal(cache.self_attention[:, :, :, :BUCKET], before)
    assert not cache.self_attention[:, :, :, BUCKET:].any()
    assert cache.cross_attention.shape[3] == BUCKET


def test_buffers_shrink_when_more_than_half_is_unused() -> None:
    cache = new_cache()
    cache.reserve(4, 6 * BUCKET, 6 * BUCKET)

    cache.reserve(4, 3 * BUCKET, 2 * BUCKET)

    assert cache.self_attention.shape[3] == 6 * BUCKET
    assert cache.cross_attention.shape[3] == 2 * BUCKET


def test_layout_changes_only_with_a_buffer() -> None:
    cache = new_cache()
    cache.reserve(4, BUCKET, BUCKET)
    assert cache.layout == 0

    cache.reserve(4, BUCKET + 1, BUCKET)
    assert cache.layout == 1


def test_first_rows_are_one_contiguous_tensor() -> None:
    cache = new_cache()
    cache.reserve(3, 40, 20)

    assert all(tensor[:3].flags.c_contiguous for tensor in (*cache.self_attention, *cache.cross_attention))


def test_admitted_sentence_fills_its_row_up_to_its_length() -> None:
    cache = new_cache()
    rng = np.random.default_rng(1)
    cross = [rng.random((2, 3, 6, 8)).astype(np.float32) for _ in range(4)]

    cache.admit(row=2, cross=list(cross), index=1, length=4)

    for tensor, encoded in zip(cache.cross_attention, cross, strict=True):
        np.testing.assert_array_equal(tensor[2, :, :4], encoded[1, :, :4])
        assert not tensor[2, :, 4:].any()


def test_move_copies_self_attention_always_and_cross_attention_between_sentences() -> None:
    cache = new_cache()
    fill(cache)
    self_before, cross_before = cache.self_attention.copy(), cache.cross_attention.copy()

    cache.move(RowMoves(to=[0, 1], from_=[3, 2], is_own=[True, False]), self_positions=5, cross_positions=7)

    np.testing.assert_array_equal(cache.self_attention[:, 0, :, :5], self_before[:, 3, :, :5])
    np.testing.assert_array_equal(cache.self_attention[:, 1, :, :5], self_before[:, 2, :, :5])
    np.testing.assert_array_equal(cache.self_attention[:, 0, :, 5:], self_before[:, 0, :, 5:])
    np.testing.assert_array_equal(cache.cross_attention[:, 0], cross_before[:, 0])
    np.testing.assert_array_equal(cache.cross_attention[:, 1, :, :7], cross_before[:, 2, :, :7])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_size_is_that_of_both_buffers(dtype: type[np.generic]) -> None:
    cache = KVCache(num_layers=2, num_heads=3, head_dim=8, max_rows=4, dtype=dtype)

    assert cache.size_bytes == 2 * (2 * 2) * 4 * 3 * BUCKET * 8 * np.dtype(dtype).itemsize
