"""ONNX Runtime: the encoder and decoder-step sessions of a bundle. No other file of the server knows that it exists.

The sessions are shared by all lanes, so that the weights are in memory once, and run in the caller's thread alone: two
lanes of one thread translate a third more than one lane of two threads. Only a lane that has nobody beside it would
leave the other cores idle; its steps may use them too, in a session of their own.

On CUDA the caches still live in host memory and are copied for every step: right, but not fast.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from server.bundle import (
    EMBEDDING,
    ENCODER_FILE,
    STEP_FILE,
    STEP_SHORTLIST_FILE,
    WEIGHTS_FILE,
    Bundle,
    cache_names,
)
from server.errors import BundleError, SettingsError
from server.kv_cache import KVCache
from server.scheduler import RowMoves
from server.shortlist import Columns, Shortlist

CONTROL_NAMES = ("input_ids", "past_lengths", "source_lengths", "self_total", "source_total", "top_k", "with_log_probs")
SHORTLIST_NAMES = ("shortlist_weight", "shortlist_ids", "candidates")
PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class Decoder(Protocol):
    """One lane's decoder: a cache and the step that reads and writes it. Used by one thread."""

    cache: KVCache

    def step(
        self,
        input_ids: NDArray[np.int64],
        past_lengths: NDArray[np.int32],
        source_lengths: NDArray[np.int32],
        top_k: int,
        *,
        with_log_probs: bool = True,
        use_shortlist: bool = False,
        is_alone: bool = False,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Feeds one token to each of the first B rows of the cache.

        Args:
            input_ids: [B], the last token of each row (bos at first).
            past_lengths: [B], positions of the self-attention cache that are filled; the step fills one more.
            source_lengths: [B], at least 1.
            top_k: how many best tokens to return, at least 1.
            with_log_probs: False spares the softmax.
            use_shortlist: all rows have been given candidates, and choose among them.
            is_alone: no other lane is at work, so that the step may use its cores.

        Returns:
            The best tokens [B, k], best first, and their log-probabilities [B, k], or else their logits. Both arrays
            are overwritten by the next step.
        """

    def admit_candidates(self, row: int, source_ids: tuple[int, ...]) -> None:
        """Gives a row that `cache.admit` has filled the shortlist of its sentence."""

    def move(self, moves: RowMoves, self_positions: int, cross_positions: int) -> None:
        """Copies rows of the cache, see `KVCache.move`, with their candidates."""


class Runner(Protocol):
    """Runs the network of one bundle; may be called from several threads."""

    def encode(self, source_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]) -> list[NDArray[np.generic]]:
        """Encodes padded sentences [B, S] into cross-attention keys and values, per layer two tensors [B, H, S, D]."""

    def open_decoder(self, max_rows: int) -> Decoder:
        """Returns a decoder with an empty cache of `max_rows` rows."""


class OrtRunner:
    """The graphs of one variant on ONNX Runtime."""

    def __init__(
        self, bundle: Bundle, variant: str, device: str, num_threads: int = 1, num_threads_alone: int = 1
    ) -> None:
        """Loads both graphs.

        Args:
            bundle: checked by `open_bundle`.
            variant: one of the manifest's.
            device: "cpu" or "cuda".
            num_threads: that ONNX Runtime may use within one call.
            num_threads_alone: the same for the steps of a lane that is alone at work.

        Raises:
            BundleError: a graph does not load, or its tensors are not those of the manifest.
            SettingsError: the device's execution provider is not there.
        """
        self.dimensions = bundle.manifest.dimensions
        self._dtype = np.dtype(bundle.manifest.variants[variant].dtype)
        self.copies_to_device = device != "cpu"
        _check_provider(device)
        self.embedding = _open_embedding(bundle, variant)  # one mapping for all sessions, which do not own it
        self._embedding_value = onnxruntime.OrtValue.ortvalue_from_numpy(self.embedding)
        self._encoder = self._load(bundle, variant, ENCODER_FILE, device, num_threads)
        self.step_session = self.step_session_alone = self._load(bundle, variant, STEP_FILE, device, num_threads)
        if num_threads_alone > num_threads:
            self.step_session_alone = self._load(bundle, variant, STEP_FILE, device, num_threads_alone)
        self.shortlist: Shortlist | None = None
        self.step_session_shortlist: onnxruntime.InferenceSession | None = None
        if bundle.shortlist_path is not None and STEP_SHORTLIST_FILE in bundle.manifest.variants[variant].files:
            self.shortlist = Shortlist.load(bundle.shortlist_path, self.dimensions.vocab_size)
            self.step_session_shortlist = self._load(bundle, variant, STEP_SHORTLIST_FILE, device, num_threads)
        self._cross_names = cache_names("cross", self.dimensions.decoder_layers)
        faults = [
            *_tensor_faults(self._encoder, ["source_ids", "source_lengths"], self._cross_names),
            *self._step_faults(self.step_session, []),
        ]
        if self.shortlist is not None and self.step_session_shortlist is not None:
            faults += self._step_faults(self.step_session_shortlist, SHORTLIST_NAMES)
            least = 2 * bundle.manifest.limits.max_beam_size  # a step may ask for so many best tokens
            if len(self.shortlist.common) < least:
                faults.append(f"the shortlist has {len(self.shortlist.common)} common tokens, it needs {least}")
        if faults:
            raise BundleError([f"{bundle.directory}/{variant}: {fault}" for fault in faults])

    def encode(self, source_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]) -> list[NDArray[np.generic]]:
        """See `Runner.encode`."""
        feeds = {"source_ids": source_ids, "source_lengths": source_lengths}
        encoded: list[NDArray[np.generic]] = self._encoder.run(self._cross_names, feeds)
        return encoded

    def open_decoder(self, max_rows: int) -> "OrtDecoder":
        """See `Runner.open_decoder`."""
        cache = KVCache(
            num_layers=self.dimensions.decoder_layers,
            num_heads=self.dimensions.num_heads,
            head_dim=self.dimensions.head_dim,
            max_rows=max_rows,
            dtype=self._dtype,
        )
        return OrtDecoder(self, cache, max_rows)

    def step_logits(
        self,
        input_ids: NDArray[np.int64],
        past_lengths: NDArray[np.int32],
        source_lengths: NDArray[np.int32],
        caches: dict[str, NDArray[np.generic]],
    ) -> list[NDArray[np.generic]]:
        """Runs one step on caches of the caller's, for proofs.

        Returns:
            Logits [B, V] over the whole vocabulary, then the written self-attention caches in the order of
            `cache_names`.
        """
        names = cache_names("new_self", self.dimensions.decoder_layers)
        controls = step_controls(input_ids, past_lengths, source_lengths)
        outputs: list[NDArray[np.generic]] = self.step_session.run(["logits", *names], {**controls, **caches})
        return outputs

    def _load(
        self, bundle: Bundle, variant: str, file: str, device: str, num_threads: int
    ) -> onnxruntime.InferenceSession:
        provider = PROVIDERS[device]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = num_threads
        options.inter_op_num_threads = 1
        # Between two steps further threads would go on spinning, for nothing but the neighbours' harm.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        options.log_severity_level = 3
        disabled: list[str] = []
        if device == "cpu":
            # Both keep memory for shapes that come again, which hardly any does here: no faster, a quarter larger.
            options.enable_cpu_mem_arena = options.enable_mem_pattern = False
            options.add_initializer(EMBEDDING, self._embedding_value)
            # ONNX Runtime would fuse Add and LayerNormalization into a node that is 7 times slower on the CPU.
            disabled = ["SkipLayerNormFusion"]
        path = bundle.graph_path(variant, file)
        try:  # ONNX Runtime's errors have no common base of their own
            session = onnxruntime.InferenceSession(path, options, providers=[provider], disabled_optimizers=disabled)
        except Exception as error:
            raise BundleError([f"{path}: ONNX Runtime cannot load it: {error}"]) from error
        found = session.get_providers()[0]
        if found != provider:
            message = f"device {device}: ONNX Runtime fell back to {found}: its CUDA libraries did not load"
            raise SettingsError([message])
        return session

    def _step_faults(self, session: onnxruntime.InferenceSession, more_inputs: Sequence[str]) -> list[str]:
        """Returns what is wrong with the tensors of a step graph."""
        sizes = self.dimensions
        caches = [*cache_names("self", sizes.decoder_layers), *cache_names("cross", sizes.decoder_layers)]
        outputs = ["top_ids", "top_log_probs", *(f"new_{name}" for name in caches)]
        return [
            *_tensor_faults(session, [*CONTROL_NAMES, *more_inputs, *caches], outputs),
            *_shape_faults(session, caches, (sizes.num_heads, sizes.head_dim)),
        ]


class OrtDecoder:
    """A cache bound in place to the shared step sessions."""

    def __init__(self, runner: OrtRunner, cache: KVCache, max_rows: int) -> None:
        self.cache = cache
        self._runner = runner  # holds the embedding that the sessions read and do not own
        self._together = _BoundStep(runner.step_session, cache, runner.copies_to_device)
        self._alone = _BoundStep(runner.step_session_alone, cache, runner.copies_to_device)
        self._columns: Columns | None = None
        if runner.step_session_shortlist is not None:
            self._columns = Columns(runner.embedding, max_rows)
            session = runner.step_session_shortlist
            self._shortlisted = _BoundStep(session, cache, runner.copies_to_device, self._columns)

    def step(
        self,
        input_ids: NDArray[np.int64],
        past_lengths: NDArray[np.int32],
        source_lengths: NDArray[np.int32],
        top_k: int,
        *,
        with_log_probs: bool = True,
        use_shortlist: bool = False,
        is_alone: bool = False,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `Decoder.step`."""
        top_k = min(top_k, self._runner.dimensions.vocab_size)
        controls = step_controls(input_ids, past_lengths, source_lengths, top_k, with_log_probs)
        step = self._shortlisted if use_shortlist else self._alone if is_alone else self._together
        return step.run(controls, len(input_ids), top_k)

    def admit_candidates(self, row: int, source_ids: tuple[int, ...]) -> None:
        """See `Decoder.admit_candidates`."""
        assert self._columns is not None
        assert self._runner.shortlist is not None
        self._columns.admit(row, self._runner.shortlist.candidates(source_ids))

    def move(self, moves: RowMoves, self_positions: int, cross_positions: int) -> None:
        """See `Decoder.move`."""
        self.cache.move(moves, self_positions, cross_positions)
        if self._columns is not None and moves.to:
            self._columns.move(np.array(moves.to), np.array(moves.from_))


class _BoundStep:
    """A step session with everything that goes in and out bound once, and again only when a shape changes."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        cache: KVCache,
        copies_to_device: bool,
        columns: Columns | None = None,
    ) -> None:
        self._session = session
        self._cache = cache
        self._copies_to_device = copies_to_device
        self._columns = columns
        num_layers = len(cache.self_attention) // 2
        self._cache_names = [*cache_names("self", num_layers), *cache_names("cross", num_layers)]
        self._binding: Any = session.io_binding()
        self._bound: tuple[int, ...] | None = None  # rows, candidates and layouts of the binding
        self._controls: dict[str, NDArray[np.generic]] = {}
        self._top_ids = np.empty((0, 0), np.int64)
        self._top_log_probs = np.empty((0, 0), np.float32)

    def run(
        self, controls: dict[str, NDArray[np.generic]], num_rows: int, top_k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Takes a step; `controls` are from `step_controls`."""
        shape = (num_rows, top_k, self._cache.layout, self._columns.layout if self._columns else 0)
        # A binding of host memory to another device is a copy made while binding, so it must be made again each time.
        if self._bound != shape or self._copies_to_device:
            self._bind(controls, num_rows, top_k)
            self._bound = shape
        else:
            for name, given in controls.items():
                self._controls[name][:] = given
        self._session.run_with_iobinding(self._binding)
        return self._top_ids, self._top_log_probs

    def _bind(self, controls: dict[str, NDArray[np.generic]], num_rows: int, top_k: int) -> None:
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
        tensors = [*cache.self_attention, *cache.cross_attention]
        for name, tensor in zip(self._cache_names, tensors, strict=True):
            binding.bind_input(name, *_address(tensor[:num_rows]))
            binding.bind_output(f"new_{name}", *_address(tensor[:num_rows]))
        if self._columns is not None:
            arrays = self._columns.weight, self._columns.ids, self._columns.candidates[:num_rows]
            for name, array in zip(SHORTLIST_NAMES, arrays, strict=True):
                binding.bind_input(name, *_address(array))


def step_controls(
    input_ids: NDArray[np.int64],
    past_lengths: NDArray[np.int32],
    source_lengths: NDArray[np.int32],
    top_k: int = 1,
    with_log_probs: bool = False,
) -> dict[str, NDArray[np.generic]]:
    """Returns a step's inputs that are not caches, `CONTROL_NAMES`; none of them the caller's arrays."""
    return {
        "input_ids": input_ids.copy(),
        "past_lengths": past_lengths.copy(),
        "source_lengths": source_lengths.copy(),
        "self_total": past_lengths.max(keepdims=True) + np.int32(1),
        "source_total": source_lengths.max(keepdims=True),
        "top_k": np.array([top_k], np.int64),
        "with_log_probs": np.array([with_log_probs]),
    }


def _address(rows: NDArray[np.generic]) -> tuple[str, int, type[np.generic], tuple[int, ...], int]:
    return "cpu", 0, rows.dtype.type, rows.shape, rows.ctypes.data


def _tensor_faults(session: onnxruntime.InferenceSession, inputs: list[str], outputs: list[str]) -> list[str]:
    has_inputs = {tensor.name for tensor in session.get_inputs()}
    has_outputs = {tensor.name for tensor in session.get_outputs()}
    return [
        *(f"the graph lacks input {name}" for name in inputs if name not in has_inputs),
        *(f"the graph has an unknown input {name}" for name in sorted(has_inputs - set(inputs))),
        *(f"the graph lacks output {name}" for name in outputs if name not in has_outputs),
    ]


def _shape_faults(session: onnxruntime.InferenceSession, caches: list[str], shape: tuple[int, int]) -> list[str]:
    return [
        f"input {tensor.name} has heads x width {tensor.shape[1]} x {tensor.shape[3]}, the manifest says {shape}"
        for tensor in session.get_inputs()
        if tensor.name in caches and (tensor.shape[1], tensor.shape[3]) != shape
    ]


def _check_provider(device: str) -> None:
    provider = PROVIDERS[device]
    if provider not in onnxruntime.get_available_providers():
        raise SettingsError([f"device {device}: this ONNX Runtime has no {provider}: install babelserve[gpu]"])
    if device == "cuda":
        onnxruntime.preload_dlls()


def _open_embedding(bundle: Bundle, variant: str) -> NDArray[np.generic]:
    facts, sizes = bundle.manifest.variants[variant], bundle.manifest.dimensions
    path = bundle.graph_path(variant, WEIGHTS_FILE)
    shape = (sizes.vocab_size, sizes.d_model)
    try:
        return np.memmap(path, facts.dtype, mode="r", offset=facts.embedding_offset, shape=shape)
    except (OSError, OverflowError, ValueError) as error:
        raise BundleError([f"{path}: has no token embedding {shape} at {facts.embedding_offset}: {error}"]) from error
