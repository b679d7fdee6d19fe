import errno
import mmap
import weakref

import numpy as np
import pytest
from numpy.typing import NDArray

from server.bundle.states import attention_states, ssru_states
from server.network import RowMoves
from server.runtime.kv_cache import BUCKET, KVCache, _map


def new_cache(max_rows: int = 4) -> KVCache:
    return KVCache(
        states=attention_states(2, 3, 8), num_layers=2, num_heads=3, head_dim=8, max_rows=max_rows, dtype=np.float32
    )


def fill(cache: KVCache) -> None:
    rng = np.random.default_rng(0)
    for tensor in (*cache.states, *cache.cross_attention):
        tensor[...] = rng.random(tensor.shape)


def encoded(num_rows: int, length: int = 6, rng: np.random.Generator | None = None) -> list[NDArray[np.float32]]:
    rng = rng or np.random.default_rng(1)
    return [rng.random((num_rows, 3, length, 8)).astype(np.float32) for _ in range(4)]


def copies(tensors: list[NDArray[np.generic]]) -> list[NDArray[np.generic]]:
    return [tensor.copy() for tensor in tensors]


def capacities(tensors: list[NDArray[np.generic]]) -> set[int]:
    return {tensor.shape[2] for tensor in tensors}


def test_each_layer_has_a_key_and_a_value_buffer() -> None:
    cache = new_cache()

    for tensors in (cache.states, cache.cross_attention):
        assert [tensor.shape for tensor in tensors] == [(4, 3, BUCKET, 8)] * 4
        assert len({tensor.ctypes.data for tensor in tensors}) == 4


def test_buffers_grow_in_buckets_and_keep_their_content() -> None:
    cache = new_cache()
    fill(cache)
    before = copies(cache.states)

    cache.reserve(num_rows=4, self_positions=BUCKET + 1, cross_positions=3)

    for tensor, old in zip(cache.states, before, strict=True):
        assert tensor.shape == (4, 3, 2 * BUCKET, 8)
        np.testing.assert_array_equal(tensor[:, :, :BUCKET], old)
    assert capacities(cache.cross_attention) == {BUCKET}


def test_buffers_shrink_when_more_than_one_and_a_half_times_too_long() -> None:
    cache = new_cache()
    cache.reserve(4, 6 * BUCKET, 6 * BUCKET)

    cache.reserve(4, 4 * BUCKET, 4 * BUCKET - BUCKET)

    assert capacities(cache.states) == {6 * BUCKET}
    assert capacities(cache.cross_attention) == {3 * BUCKET}


def test_no_more_than_one_buffer_is_in_memory_twice_while_all_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = new_cache()
    old = [weakref.ref(buffer._mapping) for buffer in cache._state_buffers]
    num_alive: list[int] = []

    def counting(shape: tuple[int, int, int, int], dtype: np.dtype[np.generic]) -> mmap.mmap:
        num_alive.append(sum(mapping() is not None for mapping in old))
        return _map(shape, dtype)

    monkeypatch.setattr("server.runtime.kv_cache._map", counting)
    cache.reserve(0, 3 * BUCKET, 1)

    assert num_alive == [4, 3, 2, 1]


def test_where_a_mapping_fails_all_buffers_stay_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = new_cache()
    fill(cache)
    before = copies(cache.states)
    left = iter([True, True])

    def failing(shape: tuple[int, int, int, int], dtype: np.dtype[np.generic]) -> mmap.mmap:
        if not next(left, False):
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return _map(shape, dtype)

    with monkeypatch.context() as short:
        short.setattr("server.runtime.kv_cache._map", failing)
        with pytest.raises(OSError, match="Cannot allocate memory"):
            cache.reserve(4, 3 * BUCKET, 1)

    assert cache.layout == 1, "two of them are elsewhere"
    for tensor, old in zip(cache.states, before, strict=True):
        np.testing.assert_array_equal(tensor, old)
    cache.reserve(4, 3 * BUCKET, 1)
    assert capacities(cache.states) == {3 * BUCKET}


def test_a_shrunken_buffer_keeps_the_positions_of_the_rows_in_use() -> None:
    cache = new_cache()
    cache.reserve(4, 4 * BUCKET, 2 * BUCKET)
    fill(cache)
    before = copies(cache.states)

    cache.reserve(num_rows=3, self_positions=BUCKET - 1, cross_positions=2 * BUCKET)

    for tensor, old in zip(cache.states, before, strict=True):
        assert tensor.shape == (4, 3, BUCKET, 8)
        np.testing.assert_array_equal(tensor[:3], old[:3, :, :BUCKET])


@pytest.mark.parametrize("seed", range(3))
def test_rows_in_use_keep_their_content_however_lengths_change(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cache = new_cache()
    fill(cache)
    positions = BUCKET
    for _ in range(40):
        before = copies(cache.states)
        num_rows, needed = int(rng.integers(1, 5)), int(rng.integers(1, 9 * BUCKET))
        kept = min(positions, needed, before[0].shape[2])

        cache.reserve(num_rows, needed, 1)

        for tensor, old in zip(cache.states, before, strict=True):
            assert tensor.shape[2] >= needed
            np.testing.assert_array_equal(tensor[:num_rows, :, :kept], old[:num_rows, :, :kept])
            assert np.isfinite(tensor).all()
            tensor[:num_rows, :, :needed] = rng.random((num_rows, 3, needed, 8))
        positions = needed


def test_layout_changes_only_with_a_buffer() -> None:
    cache = new_cache()
    cache.reserve(4, BUCKET, BUCKET)
    assert cache.layout == 0

    cache.reserve(4, BUCKET + 1, BUCKET)
    assert cache.layout == 1

    cache.reserve(4, 2 * BUCKET, 1)
    assert cache.layout == 1

    cache.reserve(4, BUCKET, BUCKET)
    assert cache.layout == 2


def test_first_rows_are_one_contiguous_tensor() -> None:
    cache = new_cache()
    cache.reserve(3, 40, 20)

    assert all(tensor[:3].flags.c_contiguous for tensor in (*cache.states, *cache.cross_attention))


def test_admitted_sentence_fills_a_slot_up_to_its_length() -> None:
    cache = new_cache()
    cross = encoded(2)

    cache.admit(row=2, cross=cross, index=1, length=4)

    for tensor, each in zip(cache.cross_attention, cross, strict=True):
        np.testing.assert_array_equal(tensor[0, :, :4], each[1, :, :4])
        assert not tensor[0, :, 4:].any()


def test_move_copies_what_differs_of_self_attention() -> None:
    cache = new_cache()
    for row in range(4):
        cache.admit(row, encoded(1), 0, 6)
    fill(cache)
    before = copies(cache.states)

    cache.move(RowMoves(to=[0, 1], from_=[3, 2], common=[2, 0]), positions=5)

    for tensor, old in zip(cache.states, before, strict=True):
        np.testing.assert_array_equal(tensor[0, :, 2:5], old[3, :, 2:5])
        np.testing.assert_array_equal(tensor[0, :, :2], old[0, :, :2])
        np.testing.assert_array_equal(tensor[1, :, :5], old[2, :, :5])
        np.testing.assert_array_equal(tensor[:, :, 5:], old[:, :, 5:])


def test_each_row_finds_its_sentence_in_its_slot_however_rows_come_and_go() -> None:
    rng = np.random.default_rng(2)
    cache = new_cache(max_rows=12)
    sentences: list[list[NDArray[np.float32]]] = []  # of each row
    for _ in range(300):
        cross, positions = encoded(1, int(rng.integers(1, 60)), rng), BUCKET
        if sentences and rng.random() < 0.7:
            to, from_ = rng.integers(min(12, len(sentences) + 1)), rng.integers(len(sentences))
            if to != from_:
                cache.move(RowMoves([int(to)], [int(from_)], [0]), positions)
                sentences[to : to + 1] = [sentences[from_]]
        elif len(sentences) < 12:
            cache.reserve(len(sentences), positions, max(each[0].shape[2] for each in [*sentences, cross]))
            cache.admit(len(sentences), cross, 0, cross[0].shape[2])
            sentences.append(cross)
        del sentences[len(sentences) - int(rng.integers(3) == 0) :]
        cache.reserve(len(sentences), positions, max([1, *(each[0].shape[2] for each in sentences)]))

        assert {row for rows in cache.slots.rows.tolist() for row in rows} == set(range(len(sentences)))
        for slot, rows in enumerate(cache.slots.rows.tolist()):
            for row in rows:
                for tensor, each in zip(cache.cross_attention, sentences[row], strict=True):
                    np.testing.assert_array_equal(tensor[slot, :, : each.shape[2]], each[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_size_is_that_of_all_buffers(dtype: type[np.generic]) -> None:
    states = attention_states(2, 3, 8)
    cache = KVCache(states=states, num_layers=2, num_heads=3, head_dim=8, max_rows=4, dtype=dtype)

    assert cache.size_bytes == 2 * (2 * 2) * 4 * 3 * BUCKET * 8 * np.dtype(dtype).itemsize


def test_another_thread_may_ask_for_the_size_while_a_buffer_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    states = attention_states(1, 1, 8)
    cache = KVCache(states=states, num_layers=1, num_heads=1, head_dim=8, max_rows=2, dtype=np.float32)
    before = cache.size_bytes
    seen: list[int] = []

    def asking(shape: tuple[int, int, int, int], dtype: np.dtype[np.generic]) -> mmap.mmap:
        seen.append(cache.size_bytes)
        return _map(shape, dtype)

    monkeypatch.setattr("server.runtime.kv_cache._map", asking)

    cache.reserve(2, 4 * BUCKET, 1)

    assert seen[0] == before < seen[1] < cache.size_bytes


def test_states_are_of_one_size_and_move_whole() -> None:
    cache = KVCache(states=ssru_states(3, 20), num_layers=3, num_heads=2, head_dim=8, max_rows=4, dtype=np.int8)
    for row in range(3):
        cache.admit(row, [np.ones((1, 2, 6, 8), np.int8)] * 6, 0, 6)
    (states,) = cache.states
    states[...] = np.arange(states.size).reshape(states.shape)
    before = states.copy()

    cache.move(RowMoves(to=[0], from_=[2], common=[5]), positions=9)
    cache.reserve(3, 10 * BUCKET, 6)

    assert (states.shape, states.dtype.name) == ((4, 2, 3, 20), "float32")
    assert cache.states[0] is states
    np.testing.assert_array_equal(states[[0, 1, 2]], before[[2, 1, 2]])
    assert cache.size_bytes == states.nbytes + 6 * 4 * 2 * BUCKET * 8


def test_windows_move_whole_and_grow_up_to_their_bound() -> None:
    states = attention_states(2, 3, 8, window=BUCKET + 5)
    cache = KVCache(states=states, num_layers=2, num_heads=3, head_dim=8, max_rows=4, dtype=np.float32)
    for row in range(4):
        cache.admit(row, encoded(1), 0, 6)
    assert capacities(cache.states) == {BUCKET}
    cache.reserve(4, 1000, 6)
    fill(cache)
    before = copies(cache.states)

    cache.move(RowMoves(to=[0], from_=[2], common=[4]), positions=1000)
    cache.reserve(4, 10_000, 6)

    for tensor, old in zip(cache.states, before, strict=True):
        assert tensor.shape == (4, 3, BUCKET + 5, 8)
        np.testing.assert_array_equal(tensor, old[[2, 1, 2, 3]])
    assert cache.layout == 1
