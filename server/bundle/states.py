"""The table of states in a manifest: what a decoder step keeps of each row for the next step.

The cross-attention caches are not in the table. A step only reads them, and rows share them.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GROWING, WINDOW, FIXED = KINDS = ("growing", "window", "fixed")

SELF_STATE = "self_state"  # the name of a fixed state, or what it begins with
STATE_PLACES = 2  # of a fixed state: what holds after position p is at p modulo 2, so that a step can be taken again

_DTYPES = ("float32", "float16", "int8")
_NAME = re.compile(r"self_[a-z0-9_.]{1,59}")
# Beyond these a table is mistaken; memory is taken by what it says, before any graph could contradict it.
_MAX_STATES, _MAX_PARTS, _MAX_POSITIONS, _MAX_WIDTH = 2**9, 2**8, 2**13, 2**14


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A tensor [rows, parts, positions, width] that a step reads and writes in place.

    Attributes:
        name: of the tensor; it begins with `self_`.
        kind: `growing` has a position for each token of a row, `window` too, but not more than its shape says: then it
            is a ring, in which a token takes the place of the oldest. `fixed` has the same positions for any row.
        shape: parts, positions and width of a row. A `growing` state says 0 positions.
        dtype: as numpy names it; by default that of the variant's caches.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str | None = None

    @property
    def outputs(self) -> list[str]:
        """Names of the step's outputs that share its memory: what is written, and of a window what was read then."""
        return [f"{part}_{self.name}" for part in (("written", "new") if self.kind == WINDOW else ("new",))]

    @property
    def grows(self) -> bool:
        """Whether a longer row has more positions, be it up to a bound."""
        return self.kind != FIXED

    def num_positions(self, num_tokens: int) -> int:
        """Returns how many positions a row of so many tokens has."""
        own = self.shape[1]
        return {GROWING: num_tokens, WINDOW: min(num_tokens, own)}.get(self.kind, own)

    def tensor_shape(self, num_rows: int, positions: int) -> tuple[int, int, int, int]:
        """Returns the shape for so many rows, of so many tokens if the state grows with them."""
        parts, _, width = self.shape
        return num_rows, parts, self.num_positions(positions), width

    def dtype_in(self, cache_dtype: str) -> str:
        """Returns the type in a variant whose caches have `cache_dtype`."""
        return self.dtype or cache_dtype

    def num_bytes(self, cache_dtype: str, positions: int) -> int:
        """Returns what a row of so many tokens takes."""
        return math.prod(self.tensor_shape(1, positions)) * np.dtype(self.dtype_in(cache_dtype)).itemsize


def attention_states(num_layers: int, num_heads: int, head_dim: int, window: int = 0) -> tuple[State, ...]:
    """Returns the table of a decoder with self-attention: key and value of each layer in turn.

    A row keeps those of its last `window` tokens, or of all with 0.
    """
    kind = WINDOW if window else GROWING
    return tuple(
        State(name=f"self_{part}.{layer}", kind=kind, shape=(num_heads, window, head_dim))
        for layer in range(num_layers)
        for part in ("key", "value")
    )


def ssru_states(num_layers: int, d_model: int) -> tuple[State, ...]:
    """Returns the table of a decoder with SSRUs: the states of all layers in float32, as sums over all tokens so far.

    A position is a layer.
    """
    return (State(name=SELF_STATE, kind=FIXED, shape=(STATE_PLACES, num_layers, d_model), dtype="float32"),)


def lstm_states(num_layers: int, width: int) -> tuple[State, ...]:
    """Returns the table of a decoder of LSTMs: positions are the hidden state and the cell of each layer in turn."""
    return ssru_states(2 * num_layers, width)


def retention_states(num_layers: int, num_heads: int, head_dim: int) -> tuple[State, ...]:
    """Returns the table of a decoder with retention: of each layer the matrices [D, D] of all heads, in float32.

    A position is a row of a head's matrix.
    """
    shape = (STATE_PLACES, num_heads * head_dim, head_dim)
    return tuple(
        State(name=f"{SELF_STATE}.{layer}", kind=FIXED, shape=shape, dtype="float32") for layer in range(num_layers)
    )


def empty_states(
    states: Iterable[State], num_rows: int, positions: int, cache_dtype: str
) -> dict[str, NDArray[np.generic]]:
    """Returns zeros for each state by name, for so many rows, each of so many tokens if the state grows with them."""
    return {
        state.name: np.zeros(state.tensor_shape(num_rows, positions), state.dtype_in(cache_dtype)) for state in states
    }


def state_faults(states: Sequence[State]) -> list[str]:
    """Says what is wrong with a table of a manifest."""
    if len(states) > _MAX_STATES:
        return [f"states must be at most {_MAX_STATES}, not {len(states)}"]
    faults = [f"states[{i}]{fault}" for i, state in enumerate(states) for fault in _faults_of(state)]
    if len({state.name for state in states}) < len(states):
        faults.append("states have a name twice")
    # One run copies rows of all states, and one size of buffer holds each.
    if len({(state.kind, state.shape, state.dtype) for state in states}) > 1:
        faults.append("states must be alike in kind, shape and dtype")
    return faults


def _faults_of(state: State) -> Iterable[str]:
    if not _NAME.fullmatch(state.name):
        yield f".name must be self_ and at most 59 of a-z, 0-9, _ and ., not {state.name!r:.40}"
    if state.kind not in KINDS:
        yield f".kind must be one of {', '.join(KINDS)}, not {state.kind!r:.20}"
    if state.dtype is not None and state.dtype not in _DTYPES:
        yield f".dtype must be one of {', '.join(_DTYPES)}, not {state.dtype!r:.20}"
    if len(state.shape) != len(_sizes := ("parts", "positions", "width")):
        yield f".shape must be {', '.join(_sizes)}, not {len(state.shape)} numbers"
        return
    fewest, most = (0, 0) if state.kind == GROWING else (1, _MAX_POSITIONS)
    bounds = ((1, _MAX_PARTS), (fewest, most), (1, _MAX_WIDTH))
    for name, size, (least, greatest) in zip(_sizes, state.shape, bounds, strict=True):
        if not least <= size <= greatest:
            yield f".shape: {name} must be in {least}..{greatest}, not {size}"
