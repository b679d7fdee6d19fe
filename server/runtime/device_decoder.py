"""The decoder in device memory, for CUDA: nothing but controls and chosen tokens goes to and fro.

A captured CUDA graph replays its kernels on the addresses and with the host's numbers of its capture. So all memory is
taken once: caches as long as the longest sentence, of which kernels read what is filled, and for each number of rows
and of best tokens a step of its own. A batch takes the smallest step that it fits into; rows that nobody uses are
computed all the same, with a length of 1.

The same code runs on a CPU, without graphs, which is how it is tested where there is no GPU.
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from server.bundle.graphs import ALIGNER_INPUTS, ATTENTION_OUTPUT, LOGITS, PLAIN_STEP
from server.bundle.manifest import Dimensions, Limits
from server.network import Encoded, RowMoves, StepInputs
from server.runtime.device_turns import device_turn, taking_turns
from server.runtime.onnx_runtime_errors import telling_failures_apart
from server.runtime.sessions import Sessions
from server.runtime.sizes import cache_shapes

_Fields = dict[str, type[np.generic]]
_CONTROLS: _Fields = {"input_ids": np.int64, "past_lengths": np.int32, "source_lengths": np.int32}  # of each row
_CHOSEN: _Fields = {"top_ids": np.int64, "top_log_probs": np.float32}  # of each row and best token
_IDLE = (0, 0, 1)  # controls of a row that nobody uses
_NO_GRAPH = -1  # in the place of a graph's id: the run is not captured
_TOP_K = (1, 8)  # best tokens that steps are made for, beside the widest beam's: greedy search, and beams up to 4
GraphIds = Iterator[int]  # each new: a graph is replayed for its id, whatever is bound by then


class DeviceDecoder:
    """See `server.network.Decoder`. The first step prepares, and on CUDA captures, all steps: it takes longer."""

    def __init__(
        self,
        sessions: Sessions,
        device: str,
        dimensions: Dimensions,
        limits: Limits,
        graph_ids: "GraphIds",
        max_rows: int,
    ) -> None:
        """Takes the caches' memory.

        Args:
            sessions: of the step, on CUDA with graphs enabled, of the graphs that copy rows, and the token embedding,
                whose type the caches have, but for states.
            device: whose memory, as ONNX Runtime calls it: "cpu" or "cuda".
            dimensions: of the model.
            limits: of the model, the caches' length.
            graph_ids: of the step's session.
            max_rows: that may be in use at once.
        """
        self._sessions = sessions
        assert sessions.copy_rows is not None, "the variant is for a device"
        self._copy = sessions.copy_rows
        self._copy_self = sessions.copy_states or sessions.copy_rows
        self._device = device
        self._embedding = embedding = sessions.embedding
        self._graph_ids = graph_ids
        self._row_counts = [*(1 << i for i in range((max_rows - 1).bit_length())), max_rows]
        self._top_ks = sorted({min(k, dimensions.vocab_size) for k in (*_TOP_K, 2 * limits.max_beam_size)})
        self._steps: dict[tuple[int, int], _Step] = {}
        self._states, self._cross_names = sessions.states, sessions.cross_names
        self._last = StepInputs(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32), 1)
        self._source_positions = np.zeros(max_rows, np.int64)  # of each row that are filled
        # Zeros, not what the memory held before: kernels may touch it, and 0 * NaN is NaN.
        self._caches: dict[str, Any] = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(shape, dtype), device, 0)
            for name, (shape, dtype) in cache_shapes(
                sessions.states, dimensions, limits, embedding.dtype.name, max_rows
            ).items()
        }

    @property
    def cache_bytes(self) -> int:
        """See `Decoder.cache_bytes`."""
        return sum(int(cache.tensor_size_in_bytes()) for cache in self._caches.values())

    def reserve(self, num_rows: int, self_positions: int, cross_positions: int) -> None:
        """See `Decoder.reserve`; there is room for all that the limits allow."""

    @taking_turns
    @telling_failures_apart
    def admit(self, first_row: int, encoded: Encoded, sources: Sequence[tuple[int, ...]]) -> None:
        """See `Decoder.admit`."""
        rows, positions = range(len(sources)), encoded[0].shape()[2]
        to = range(first_row, first_row + len(sources))
        self._copy_rows(self._copy, self._cross_names, encoded, rows, to, positions)
        self._source_positions[first_row : first_row + len(sources)] = positions

    @taking_turns
    @telling_failures_apart
    def move(self, moves: RowMoves, positions: int) -> None:
        """See `Decoder.move`."""
        if moves.to:
            names = [state.name for state in self._states]
            filled = self._states[0].tensor_shape(1, positions)[2]
            self._copy_rows(self._copy_self, names, self._all(names), moves.from_, moves.to, filled)
        foreign = [i for i, common in enumerate(moves.common) if not common]
        if foreign:
            from_, to = ([rows[i] for i in foreign] for rows in (moves.from_, moves.to))
            longest = int(self._source_positions[from_].max())
            self._copy_rows(self._copy, self._cross_names, self._all(self._cross_names), from_, to, longest)
            self._source_positions[to] = self._source_positions[from_]

    def padded_rows(self, num_rows: int) -> int:
        """See `Decoder.padded_rows`."""
        return _at_least(self._row_counts, num_rows)

    @taking_turns
    @telling_failures_apart
    def step(self, inputs: StepInputs) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `Decoder.step`. There are always log-probabilities: a captured graph cannot branch."""
        self.prepare()
        self._last = inputs
        num_rows, top_k = len(inputs.input_ids), min(inputs.top_k, len(self._embedding))
        shape = self.padded_rows(num_rows), _at_least(self._top_ks, top_k)
        ids, log_probs = self._steps[shape].run(inputs.input_ids, inputs.past_lengths, inputs.source_lengths)
        return ids[:num_rows, :top_k], log_probs[:num_rows, :top_k]

    @taking_turns
    @telling_failures_apart
    def logits(self) -> NDArray[np.float32]:
        """See `Decoder.logits`. It takes the last step again, because captured steps do not return logits."""
        last = self._last
        step = _Step(self._sessions, self._device, self._caches, len(last.input_ids), 1, _NO_GRAPH, has_logits=True)
        step.run(last.input_ids, last.past_lengths, last.source_lengths)
        return step.logits()

    @property
    def keeps_sources(self) -> bool:
        """See `Decoder.keeps_sources`."""
        return False

    def keep(self, row: int, source_length: int) -> int:
        """See `Decoder.keep`; returns the row."""
        return row

    @taking_turns
    @telling_failures_apart
    def align(
        self, sources: Sequence[int], target_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """See `Decoder.align`."""
        session = self._sessions.aligner_session()
        binding: Any = session.io_binding()
        for name, array in zip(ALIGNER_INPUTS, (target_ids, np.array(sources, np.int64), source_lengths), strict=True):
            binding.bind_cpu_input(name, array)
        for name in self._sessions.aligner_caches:
            binding.bind_ortvalue_input(name, self._caches[name])
        binding.bind_output(ATTENTION_OUTPUT, "cpu")
        session.run_with_iobinding(binding)
        attention: NDArray[np.float32] = binding.copy_outputs_to_cpu()[0]
        return attention[:, :, : source_lengths.max()]

    def prepare(self) -> None:
        """Makes the steps, by number of rows and of best tokens, and runs each: this captures it, for this thread.

        It writes the first position of every row, which in a decoder's first step no row has yet; that CUDA does so
        several times for a capture changes nothing, in states neither.
        """
        if self._steps:
            return
        no_ids, no_lengths = np.zeros(0, np.int64), np.zeros(0, np.int32)
        steps: dict[tuple[int, int], _Step] = {}
        for num_rows in reversed(self._row_counts):  # what the largest has taken, the others share
            for top_k in self._top_ks:
                with device_turn:
                    step = _Step(self._sessions, self._device, self._caches, num_rows, top_k, next(self._graph_ids))
                    step.run(no_ids, no_lengths, no_lengths)
                steps[num_rows, top_k] = step
        self._steps = steps

    def _all(self, names: list[str]) -> list[Any]:
        return [self._caches[name] for name in names]

    def _copy_rows(
        self,
        copy: onnxruntime.InferenceSession,
        names: list[str],
        sources: Encoded,
        from_: Sequence[int],
        to: Sequence[int],
        positions: int,
    ) -> None:
        """Copies the first positions of rows of the sources into rows of the caches."""
        caches = self._all(names)
        pairs = np.stack([_vectors(from_, sources[0].shape(), positions), _vectors(to, caches[0].shape(), positions)])
        on_device = onnxruntime.OrtValue.ortvalue_from_numpy(pairs, self._device, 0)
        binding: Any = copy.io_binding()
        binding.bind_input("from", self._device, 0, np.int64, pairs.shape[1:], on_device.data_ptr())
        binding.bind_input(
            "to", self._device, 0, np.int64, [*pairs.shape[1:], 1], on_device.data_ptr() + pairs.nbytes // 2
        )
        for i, (source, cache) in enumerate(zip(sources, caches, strict=True)):
            binding.bind_input(f"source.{i}", *self._as_vectors(source))
            binding.bind_input(f"cache.{i}", *self._as_vectors(cache))
            binding.bind_output(f"new_cache.{i}", *self._as_vectors(cache))
        copy.run_with_iobinding(binding)

    def _as_vectors(self, tensor: Any) -> tuple[str, int, int, list[int], int]:
        shape = tensor.shape()
        return self._device, 0, tensor.element_type(), [math.prod(shape[:-1]), shape[-1]], tensor.data_ptr()


class _Step:
    """The step for one number of rows and of best tokens, with all that goes in and out bound for good.

    What the host gives lies in one buffer, and what it takes in another: a copy each.
    """

    def __init__(
        self,
        sessions: Sessions,
        device: str,
        caches: dict[str, Any],
        num_rows: int,
        top_k: int,
        graph_id: int,
        has_logits: bool = False,
    ) -> None:
        self._session = session = sessions.step_session(PLAIN_STEP)
        self._options = onnxruntime.RunOptions()
        self._options.add_run_config_entry("gpu_graph_id", str(graph_id))
        self._binding: Any = session.io_binding()
        self._chosen_shape = num_rows, top_k
        self._host_controls = np.zeros(_offsets(_CONTROLS, num_rows)[-1], np.uint8)
        self._controls = onnxruntime.OrtValue.ortvalue_from_numpy(self._host_controls.copy(), device, 0)
        self._chosen = onnxruntime.OrtValue.ortvalue_from_shape_and_type(
            [_offsets(_CHOSEN, num_rows * top_k)[-1]], np.uint8, device, 0
        )
        for (name, dtype), offset in zip(_CONTROLS.items(), _offsets(_CONTROLS, num_rows), strict=False):
            self._binding.bind_input(name, device, 0, dtype, [num_rows], self._controls.data_ptr() + offset)
        for (name, dtype), offset in zip(_CHOSEN.items(), _offsets(_CHOSEN, num_rows * top_k), strict=False):
            self._binding.bind_output(name, device, 0, dtype, [num_rows, top_k], self._chosen.data_ptr() + offset)
        for name, cache in caches.items():
            first_rows = device, 0, cache.element_type(), [num_rows, *cache.shape()[1:]], cache.data_ptr()
            self._binding.bind_input(name, *first_rows)
            for output in sessions.cache_outputs[name]:
                self._binding.bind_output(output, *first_rows)
        # By the kind of cache; that of states is not used.
        totals = {name.partition("_")[0]: cache.shape()[2:3] for name, cache in caches.items()}
        self._binding.bind_cpu_input("self_total", np.array(totals["self"], np.int32))
        self._binding.bind_cpu_input("source_total", np.array(totals["cross"], np.int32))
        self._binding.bind_cpu_input("top_k", np.array([top_k], np.int64))
        self._binding.bind_cpu_input("with_log_probs", np.array([True]))
        if has_logits:
            self._binding.bind_output(LOGITS, "cpu")

    def logits(self) -> NDArray[np.float32]:
        """Returns those of the last run, [rows, V], of a step that has them."""
        logits: NDArray[np.float32] = self._binding.get_outputs()[-1].numpy()
        return logits

    def run(
        self, input_ids: NDArray[np.int64], past_lengths: NDArray[np.int32], source_lengths: NDArray[np.int32]
    ) -> list[NDArray[Any]]:
        """Takes the step with as many rows as it has or fewer; returns all rows' best tokens and log-probabilities."""
        num_used = len(input_ids)
        given = input_ids, past_lengths, source_lengths
        for control, used, idle in zip(_views(_CONTROLS, self._host_controls), given, _IDLE, strict=True):
            control[:num_used], control[num_used:] = used, idle
        self._controls.update_inplace(self._host_controls)
        self._session.run_with_iobinding(self._binding, self._options)
        return [view.reshape(self._chosen_shape) for view in _views(_CHOSEN, self._chosen.numpy())]


def _vectors(rows: Sequence[int], shape: Sequence[int], positions: int) -> NDArray[np.int64]:
    """Returns which vectors of a cache [B, H, P, D], seen as [B * H * P, D], the first positions of its rows are."""
    _, heads, length, _ = shape
    firsts = np.add.outer(np.array(rows, np.int64) * heads, np.arange(heads)) * length
    vectors: NDArray[np.int64] = np.add.outer(firsts, np.arange(positions)).ravel()
    return vectors


def _at_least(sizes: list[int], size: int) -> int:
    return sizes[bisect_left(sizes, size)]


def _offsets(fields: _Fields, count: int) -> list[int]:
    """Returns where each field begins that lies, `count` times, behind the ones before it; last where all end."""
    return [0, *itertools.accumulate(count * dtype().itemsize for dtype in fields.values())]


def _views(fields: _Fields, buffer: NDArray[np.uint8]) -> list[NDArray[Any]]:
    offsets = _offsets(fields, len(buffer) // _offsets(fields, 1)[-1])
    return [
        buffer[start:end].view(dtype)
        for dtype, (start, end) in zip(fields.values(), itertools.pairwise(offsets), strict=True)
    ]
