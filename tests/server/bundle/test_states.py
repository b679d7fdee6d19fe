import dataclasses

import pytest

from server.bundle.states import (
    State,
    attention_states,
    empty_states,
    retention_states,
    ssru_states,
    state_faults,
)

GROWING = attention_states(3, 2, 8)
FIXED = ssru_states(3, 48)
RETENTION = retention_states(3, 2, 8)
WINDOW = attention_states(1, 2, 8, window=4)[0]


def test_attention_keeps_a_key_and_a_value_of_each_layer() -> None:
    assert [state.name for state in GROWING] == [
        f"self_{part}.{layer}" for layer in range(3) for part in ("key", "value")
    ]


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16"])
def test_what_grows_is_as_long_as_a_row_and_a_window_up_to_its_bound(dtype: str) -> None:
    for state, shape, found in (
        (GROWING[0], (5, 2, 17, 8), dtype),
        (WINDOW, (5, 2, 4, 8), dtype),
        (dataclasses.replace(WINDOW, shape=(2, 18, 8)), (5, 2, 17, 8), dtype),
        (FIXED[0], (5, 2, 3, 48), "float32"),
        (RETENTION[2], (5, 2, 16, 8), "float32"),  # two places, the rows of both heads' matrices, their columns
    ):
        assert (state.tensor_shape(5, 17), state.dtype_in(dtype)) == (shape, found)


def test_a_row_takes_what_its_tensor_has() -> None:
    assert [state.num_bytes("int8", 17) for state in (GROWING[0], WINDOW, FIXED[0])] == [2 * 17 * 8, 64, 2 * 3 * 48 * 4]
    assert GROWING[0].num_bytes("float32", 0) == 0


def test_empty_states_are_zeros_of_the_shapes_and_types_of_the_table() -> None:
    found = empty_states([GROWING[1], FIXED[0]], 5, 17, "int8")

    assert {name: (each.shape, each.dtype.name) for name, each in found.items()} == {
        "self_value.0": ((5, 2, 17, 8), "int8"),
        "self_state": ((5, 2, 3, 48), "float32"),
    }
    assert not any(each.any() for each in found.values())


@pytest.mark.parametrize("states", [(), GROWING, FIXED, RETENTION, (WINDOW,), attention_states(256, 256, 1024)])
def test_a_table_of_ours_is_right(states: tuple[State, ...]) -> None:
    assert state_faults(states) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": "cross_key.0"}, ".name must be self_ and at most 59 of a-z, 0-9, _ and ., not 'cross_key.0'"),
        ({"name": "self_" + "a" * 60}, ".name must be"),
        ({"kind": "shrinking"}, ".kind must be one of growing, window, fixed, not 'shrinking'"),
        ({"dtype": "float64"}, ".dtype must be one of float32, float16, int8, not 'float64'"),
        ({"shape": (2, 8)}, ".shape must be parts, positions, width, not 2 numbers"),
        ({"shape": (0, 4, 8)}, ".shape: parts must be in 1..256, not 0"),
        ({"shape": (2, 0, 8)}, ".shape: positions must be in 1..8192, not 0"),
        ({"shape": (2, 8193, 8)}, ".shape: positions must be in 1..8192, not 8193"),
        ({"shape": (2, 4, 2**40)}, f".shape: width must be in 1..16384, not {2**40}"),
        ({"kind": "growing"}, ".shape: positions must be in 0..0, not 4"),
    ],
)
def test_a_state_that_cannot_be_is_named(change: dict[str, object], fault: str) -> None:
    found = state_faults([dataclasses.replace(WINDOW, **change)])  # type: ignore[arg-type]  # that is what is tried

    assert len(found) == 1
    assert found[0].startswith(f"states[0]{fault}")


def test_states_have_names_of_their_own_and_are_alike() -> None:
    other = dataclasses.replace(WINDOW, shape=(2, 5, 8))

    assert state_faults([WINDOW, other]) == [
        "states have a name twice",
        "states must be alike in kind, shape and dtype",
    ]


def test_too_many_states_are_counted_and_not_listed() -> None:
    assert state_faults([WINDOW] * 513) == ["states must be at most 512, not 513"]
