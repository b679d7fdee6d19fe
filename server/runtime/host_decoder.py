"""The decoder in host memory, for CPUs: numpy caches, tight, bound in place to step sessions that all lanes share."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from server.bundle.graphs import (
    ALIGNER_INPUTS,
    ATTENTION_OUTPUT,
    CHOSEN_NAMES,
    COLUMNS,
    SHORTLIST_NAMES,
    StepForm,
    step_controls,
)
from server.bundle.shortlist import Shortlist
from server.network import Encoded, RowMoves, StepInputs
from server.runtime.columns import Columns
from server.runtime.kv_cache import KVCache
from server.runtime.onnx_runtime_errors import telling_failures_apart
from server.runtime.sessions import Sessions


class HostDecoder:
    """See `server.network.Decoder`.

    Args:
        cache: of `max_rows` rows, this decoder's own.
        sessions: of the steps, loaded as they are needed.
        shortlist: for steps that choose among each sentence's candidates; None for those of the whole vocabulary.
        max_rows: that may be in use at once.
    """

    def __init__(self, cache: KVCache, sessions: Sessions, shortlist: Shortlist | None, max_rows: int) -> None:
        self.cache = cache
        self._sessions = sessions
        self._vocab_size = len(sessions.embedding)
        self._steps: dict[tuple[StepForm, bool], _BoundStep] = {}
        self._shortlist = shortlist
        self._columns = None if shortlist is None else Columns(sessions.embedding, max_rows)
        # What steps project to, all tokens or whole blocks of a shortlist's columns: ONNX Runtime would take memory for
        # it anew in every step, and leave its heap in pieces.
        self._projected = np.empty(max_rows * (self._vocab_size + COLUMNS), np.float32)
        self._logits = self._projected[: max_rows * self._vocab_size].reshape(max_rows, self._vocab_size)

    @property
    def cache_bytes(self) -> int:
        """See `Decoder.cache_bytes`."""
        return self.cache.size_bytes

    @telling_failures_apart
    def reserve(self, num_rows: int, self_positions: int, cross_positions: int) -> None:
        """See `Decoder.reserve`."""
        self.cache.reserve(num_rows, self_positions, cross_positions)

    @telling_failures_apart
    def admit(self, first_row: int, encoded: Encoded, sources: Sequence[tuple[int, ...]]) -> None:
        """See `Decoder.admit`."""
        for index, source_ids in enumerate(sources):
            self.cache.admit(first_row + index, encoded, index, len(source_ids))
        if self._shortlist is not None and self._columns is not None:
            self._columns.admit(first_row, [self._shortlist.candidates(source_ids) for source_ids in sources])

    @telling_failures_apart
    def move(self, moves: RowMoves, positions: int) -> None:
        """See `Decoder.move`."""
        self.cache.move(moves, positions)
        if self._columns is not None and moves.to:
            self._columns.move(np.array(moves.to), np.array(moves.from_))

    def padded_rows(self, num_rows: int) -> int:
        """See `Decoder.padded_rows`."""
        return num_rows

    @telling_failures_apart
    def step(self, inputs: StepInputs) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `Decoder.step`."""
        slots = self.cache.slots
        if len(inputs.input_ids) != slots.num_rows:  # kernels would end the process
            raise ValueError(f"a step of {len(inputs.input_ids)} rows, but {slots.num_rows} are in use")
        form = StepForm(self._columns is not None, slots.are_shared)
        controls = step_controls(
            inputs.input_ids,
            inputs.past_lengths,
            inputs.source_lengths,
            min(inputs.top_k, self._vocab_size),
            inputs.with_log_probs,
            slots.rows if form.shares_slots else None,
        )
        return self._step(form, inputs.is_alone).run(controls)

    def logits(self) -> NDArray[np.float32]:
        """See `Decoder.logits`."""
        return self._logits[: self.cache.slots.num_rows]

    @property
    def keeps_sources(self) -> bool:
        """See `Decoder.keeps_sources`."""
        return True

    def keep(self, row: int, source_length: int) -> list[NDArray[np.generic]]:
        """See `Decoder.keep`; returns copies, per cache that the aligner reads [H, S, D]."""
        (slot,) = self.cache.slots.slots_of([row])
        tensors = dict(zip(self._sessions.cross_names, self.cache.cross_attention, strict=True))
        return [tensors[name][slot, :, :source_length].copy() for name in self._sessions.aligner_caches]

    @telling_failures_apart
    def align(
        self,
        sources: Sequence[list[NDArray[np.generic]]],
        target_ids: NDArray[np.int64],
        source_lengths: NDArray[np.int32],
    ) -> NDArray[np.float32]:
        """See `Decoder.align`."""
        sessions = self._sessions
        feeds = dict(zip(ALIGNER_INPUTS, (target_ids, np.arange(len(sources)), source_lengths), strict=True))
        feeds |= {
            name: _padded(each) for name, each in zip(sessions.aligner_caches, zip(*sources, strict=True), strict=True)
        }
        attention: NDArray[np.float32]
        (attention,) = sessions.aligner_session().run([ATTENTION_OUTPUT], feeds)
        return attention

    def _step(self, form: StepForm, is_alone: bool) -> "_BoundStep":
        if (form, is_alone) not in self._steps:
            sessions = self._sessions
            self._steps[form, is_alone] = _BoundStep(
                sessions.step_session(form, is_alone),
                form,
                self.cache,
                sessions.cache_outputs,
                self._vocab_size,
                self._projected,
                self._columns,
            )
        return self._steps[form, is_alone]


class _BoundStep:
    """A step session with everything that goes in and out bound once, and again only when a shape changes."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        form: StepForm,
        cache: KVCache,
        cache_outputs: dict[str, list[str]],
        vocab_size: int,
        projected: NDArray[np.float32],
        columns: Columns | None,
    ) -> None:
        self._session = session
        self._form = form
        self._cache = cache
        self._vocab_size = vocab_size
        self._projected = projected
        self._columns = columns  # of a step with a shortlist
        self._cache_outputs = cache_outputs
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
        chosen: tuple[NDArray[Any], ...] = (self._top_ids, self._top_log_probs)
        for name, array in zip(CHOSEN_NAMES, chosen, strict=True):
            binding.bind_output(name, *_address(array))
        by_row = [tensor[:num_rows] for tensor in cache.states]
        by_slot = [tensor[:num_slots] for tensor in cache.cross_attention]
        for (name, outputs), tensor in zip(self._cache_outputs.items(), [*by_row, *by_slot], strict=True):
            place = _address(tensor)
            binding.bind_input(name, *place)
            for output in outputs:
                binding.bind_output(output, *place)
        shape = [num_rows, self._vocab_size]
        if self._columns is not None:
            columns = self._columns
            shape = [*columns.weight.shape[:2], num_rows]
            arrays: list[NDArray[Any]] = [columns.weight, columns.ids, columns.candidates[:num_rows]]
            for name, array in zip(SHORTLIST_NAMES, arrays, strict=True):
                binding.bind_input(name, *_address(array))
        binding.bind_output(self._form.projected, *_address(self._projected[: math.prod(shape)].reshape(shape)))


def _padded(tensors: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
    """Returns [rows, H, S, D] of tensors [H, own S, D], with zeros where they end: 0 * NaN would be NaN."""
    heads, _, width = tensors[0].shape
    padded = np.zeros((len(tensors), heads, max(each.shape[1] for each in tensors), width), tensors[0].dtype)
    for row, each in zip(padded, tensors, strict=True):
        row[:, : each.shape[1]] = each
    return padded


def _address(rows: NDArray[np.generic]) -> tuple[str, int, type[np.generic], tuple[int, ...], int]:
    return "cpu", 0, rows.dtype.type, rows.shape, rows.ctypes.data
