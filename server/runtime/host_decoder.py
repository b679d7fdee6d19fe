"""The decoder in host memory, for CPUs: numpy caches, tight, bound in place to step sessions that all lanes share."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from server.bundle.bundle import StepForm, cache_names
from server.bundle.shortlist import COLUMNS, Columns, Shortlist
from server.engine.scheduler import RowMoves
from server.network import Encoded, StepInputs, step_controls
from server.runtime.kv_cache import KVCache

SHORTLIST_NAMES = ("shortlist_weight", "shortlist_ids", "candidates")


class HostDecoder:
    """See `server.network.Decoder`."""

    def __init__(
        self,
        cache: KVCache,
        embedding: NDArray[np.generic],
        step_session: Callable[[StepForm, bool], onnxruntime.InferenceSession],
        shortlist: Shortlist | None,
        max_rows: int,
    ) -> None:
        """Has no session yet.

        Args:
            cache: of `max_rows` rows, this decoder's own.
            embedding: the token embedding [V, M], which the sessions read and do not own.
            step_session: gives the session of a step, while other lanes are at work or (True) while none is.
            shortlist: None for none.
            max_rows: that may be in use at once.
        """
        self.cache = cache
        self._embedding = embedding
        self._step_session = step_session
        self._steps: dict[tuple[StepForm, bool], _BoundStep] = {}
        # What steps project to, all tokens or whole blocks of a shortlist's columns: ONNX Runtime would take memory for
        # it anew in every step, and leave its heap in pieces.
        self._projected = np.empty(max_rows * (len(embedding) + COLUMNS), np.float32)
        self._shortlist = shortlist
        self._columns = Columns(embedding, max_rows) if shortlist is not None else None

    @property
    def cache_bytes(self) -> int:
        """See `Decoder.cache_bytes`."""
        return self.cache.size_bytes

    def reserve(self, num_rows: int, self_positions: int, cross_positions: int) -> None:
        """See `Decoder.reserve`."""
        self.cache.reserve(num_rows, self_positions, cross_positions)

    def admit(self, rows: list[int], encoded: Encoded, source_lengths: NDArray[np.int32]) -> None:
        """See `Decoder.admit`."""
        for index, (row, length) in enumerate(zip(rows, source_lengths.tolist(), strict=True)):
            self.cache.admit(row, encoded, index, length)

    def admit_candidates(self, first_row: int, sources: list[tuple[int, ...]]) -> None:
        """See `Decoder.admit_candidates`."""
        assert self._shortlist is not None
        assert self._columns is not None
        self._columns.admit(first_row, [self._shortlist.candidates(source_ids) for source_ids in sources])

    def move(self, moves: RowMoves, positions: int) -> None:
        """See `Decoder.move`."""
        self.cache.move(moves, positions)
        if self._columns is not None and moves.to:
            self._columns.move(np.array(moves.to), np.array(moves.from_))

    def step(self, inputs: StepInputs) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `Decoder.step`."""
        if len(inputs.input_ids) != self.cache.slots.num_rows:  # kernels would end the process
            raise ValueError(f"a step of {len(inputs.input_ids)} rows, but {self.cache.slots.num_rows} are in use")
        form = StepForm(inputs.use_shortlist, self.cache.slots.are_shared)
        controls = step_controls(
            inputs.input_ids,
            inputs.past_lengths,
            inputs.source_lengths,
            min(inputs.top_k, len(self._embedding)),
            inputs.with_log_probs,
            self.cache.slots.rows if form.shares_slots else None,
        )
        return self._step(form, inputs.is_alone).run(controls)

    def _step(self, form: StepForm, is_alone: bool) -> "_BoundStep":
        if (form, is_alone) not in self._steps:
            columns = self._columns if form.has_shortlist else None
            session = self._step_session(form, is_alone)
            self._steps[form, is_alone] = _BoundStep(
                session, self.cache, len(self._embedding), self._projected, columns
            )
        return self._steps[form, is_alone]


class _BoundStep:
    """A step session with everything that goes in and out bound once, and again only when a shape changes."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        cache: KVCache,
        vocab_size: int,
        projected: NDArray[np.float32],
        columns: Columns | None,
    ) -> None:
        self._session = session
        self._cache = cache
        self._vocab_size = vocab_size
        self._projected = projected
        self._columns = columns  # of a step with a shortlist
        num_layers = len(cache.self_attention) // 2
        self._cache_names = [*cache_names("self", num_layers), *cache_names("cross", num_layers)]
        self._binding: Any = session.io_binding()
        self._bound: tuple[int, ...] | None = None  # rows, slots, best tokens and layouts of the binding
        self._controls: dict[str, NDArray[Any]] = {}
        self._top_ids = np.empty((0, 0), np.int64)
        self._top_log_probs = np.empty((0, 0), np.float32)

    def run(self, controls: dict[str, NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Takes a step; `controls` are from `step_controls`."""
        num_rows, num_slots = len(controls["input_ids"]), len(controls["source_lengths"])
        top_k = int(controls["top_k"][0])
        shape = (num_rows, num_slots, top_k, self._cache.layout, self._columns.layout if self._columns else 0)
        if self._bound != shape:
            self._bind(controls, num_rows, num_slots, top_k)
            self._bound = shape
        else:
            for name, given in controls.items():
                self._controls[name][:] = given
        self._session.run_with_iobinding(self._binding)
        return self._top_ids, self._top_log_probs

    def _bind(self, controls: dict[str, NDArray[Any]], num_rows: int, num_slots: int, top_k: int) -> None:
        binding, cache = self._binding, self._cache
        binding.clear_binding_inputs()
        binding.clear_binding_outputs()
        self._controls = controls
        for name, array in controls.items():
            binding.bind_input(name, *_address(array))
        self._top_ids = np.empty((num_rows, top_k), np.int64)
        self._top_log_probs = np.empty((num_rows, top_k), np.float32)
        binding.bind_output("top_ids", *_address(self._top_ids))
        binding.bind_output("top_log_probs", *_address(self._top_log_probs))
        by_row = [tensor[:num_rows] for tensor in cache.self_attention]
        by_slot = [tensor[:num_slots] for tensor in cache.cross_attention]
        for name, tensor in zip(self._cache_names, [*by_row, *by_slot], strict=True):
            place = _address(tensor)
            binding.bind_input(name, *place)
            binding.bind_output(f"new_{name}", *place)
        projected, shape = "logits", [num_rows, self._vocab_size]
        if self._columns is not None:
            columns = self._columns
            projected, shape = "products", [*columns.weight.shape[:2], num_rows]
            arrays: list[NDArray[Any]] = [columns.weight, columns.ids, columns.candidates[:num_rows]]
            for name, array in zip(SHORTLIST_NAMES, arrays, strict=True):
                binding.bind_input(name, *_address(array))
        binding.bind_output(projected, *_address(self._projected[: math.prod(shape)].reshape(shape)))


def _address(rows: NDArray[np.generic]) -> tuple[str, int, type[np.generic], tuple[int, ...], int]:
    return "cpu", 0, rows.dtype.type, rows.shape, rows.ctypes.data
