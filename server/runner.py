"""ONNX Runtime: the encoder and decoder-step sessions of a bundle. No other file of the server knows that it exists.

Both sessions are shared by all lanes and run in the caller's thread alone (`intra_op_num_threads=1`): two lanes of one
thread beat one lane of two threads on a two-core processor, and the weights are in memory once.

On CUDA the caches still live in host memory and are copied for every step: right, but not fast.
"""

from typing import Any, Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from server.bundle import ENCODER_FILE, STEP_FILE, Bundle, cache_names
from server.errors import BundleError, SettingsError
from server.kv_cache import KVCache

CONTROL_NAMES = ("input_ids", "past_lengths", "source_lengths", "self_total", "source_total", "top_k")
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
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Feeds one token to each of the first B rows of the cache.

        Args:
            input_ids: [B], the last token of each row (bos at first).
            past_lengths: [B], positions of the self-attention cache that are filled; the step fills one more.
            source_lengths: [B], at least 1.
            top_k: how many best tokens to return, at least 1.

        Returns:
            The best tokens [B, k], best first, and their log-probabilities [B, k].
        """


class Runner(Protocol):
    """Runs the network of one bundle; may be called from several threads."""

    def encode(self, source_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]) -> list[NDArray[np.generic]]:
        """Encodes padded sentences [B, S] into cross-attention keys and values, per layer two tensors [B, H, S, D]."""

    def open_decoder(self, max_rows: int) -> Decoder:
        """Returns a decoder with an empty cache of `max_rows` rows."""


class OrtRunner:
    """The graphs of one variant on ONNX Runtime."""

    def __init__(self, bundle: Bundle, variant: str, device: str, num_threads: int = 1) -> None:
        """Loads both graphs.

        Args:
            bundle: checked by `open_bundle`.
            variant: one of the manifest's.
            device: "cpu" or "cuda".
            num_threads: that ONNX Runtime may use within one call.

        Raises:
            BundleError: a graph does not load, or its tensors are not those of the manifest.
            SettingsError: the device's execution provider is not there.
        """
        self._dimensions = bundle.manifest.dimensions
        self._dtype = np.dtype(bundle.manifest.variants[variant].dtype)
        self._copies_to_device = device != "cpu"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = num_threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.enable_cpu_mem_arena = False  # saves memory at no cost in speed (measured in a prototype)
        self._encoder = _load(bundle, variant, ENCODER_FILE, device, options)
        self._step = _load(bundle, variant, STEP_FILE, device, options)
        num_layers = self._dimensions.decoder_layers
        self_names, self._cross_names = cache_names("self", num_layers), cache_names("cross", num_layers)
        faults = [
            *_tensor_faults(self._encoder, ["source_ids", "source_lengths"], self._cross_names),
            *_tensor_faults(
                self._step,
                [*CONTROL_NAMES, *self_names, *self._cross_names],
                ["top_ids", "top_log_probs", *cache_names("new_self", num_layers)],
            ),
            *_shape_faults(self._step, [*self_names, *self._cross_names], self._cache_shape),
        ]
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
            num_layers=self._dimensions.decoder_layers,
            num_heads=self._dimensions.num_heads,
            head_dim=self._dimensions.head_dim,
            max_rows=max_rows,
            dtype=self._dtype,
        )
        return OrtDecoder(self._step, cache, self._copies_to_device)

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
        names = cache_names("new_self", self._dimensions.decoder_layers)
        controls = dict(zip(CONTROL_NAMES, _controls(input_ids, past_lengths, source_lengths, 1), strict=True))
        outputs: list[NDArray[np.generic]] = self._step.run(["logits", *names], {**controls, **caches})
        return outputs

    @property
    def _cache_shape(self) -> tuple[int, int]:
        return self._dimensions.num_heads, self._dimensions.head_dim


class OrtDecoder:
    """A cache bound in place to the shared step session."""

    def __init__(self, session: onnxruntime.InferenceSession, cache: KVCache, copies_to_device: bool) -> None:
        self.cache = cache
        self._session = session
        self._copies_to_device = copies_to_device
        num_layers = cache.self_attention.shape[0] // 2
        self._self_names, self._new_self_names = cache_names("self", num_layers), cache_names("new_self", num_layers)
        self._cross_names = cache_names("cross", num_layers)
        self._binding: Any = session.io_binding()
        self._bound: tuple[int, int, int] | None = None  # rows, top_k and cache layout of the binding

    def step(
        self,
        input_ids: NDArray[np.int64],
        past_lengths: NDArray[np.int32],
        source_lengths: NDArray[np.int32],
        top_k: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `Decoder.step`."""
        num_rows = len(input_ids)
        # A binding of host memory to another device is a copy made while binding, so it must be made again each time.
        shape = (num_rows, top_k, self.cache.layout)  # an output stays bound with the shape of its first run
        if self._bound != shape or self._copies_to_device:
            self._bind_cache(num_rows)
            self._bound = shape
        controls = _controls(input_ids, past_lengths, source_lengths, top_k)
        for name, array in zip(CONTROL_NAMES, controls, strict=True):
            self._binding.bind_cpu_input(name, array)
        self._session.run_with_iobinding(self._binding)
        outputs = self._binding.get_outputs()
        return outputs[0].numpy(), outputs[1].numpy()

    def _bind_cache(self, num_rows: int) -> None:
        binding, cache = self._binding, self.cache
        binding.clear_binding_inputs()
        binding.clear_binding_outputs()
        binding.bind_output("top_ids", "cpu")
        binding.bind_output("top_log_probs", "cpu")
        for name, new_name, tensor in zip(self._self_names, self._new_self_names, cache.self_attention, strict=True):
            binding.bind_input(name, *_address(tensor[:num_rows]))
            binding.bind_output(new_name, *_address(tensor[:num_rows]))
        for name, tensor in zip(self._cross_names, cache.cross_attention, strict=True):
            binding.bind_input(name, *_address(tensor[:num_rows]))


def _controls(
    input_ids: NDArray[np.int64], past_lengths: NDArray[np.int32], source_lengths: NDArray[np.int32], top_k: int
) -> tuple[NDArray[np.generic], ...]:
    """Returns the step's inputs that are not caches, in the order of `CONTROL_NAMES`."""
    totals = past_lengths.max(keepdims=True) + np.int32(1), source_lengths.max(keepdims=True)
    return input_ids, past_lengths, source_lengths, *totals, np.array([top_k], np.int64)


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


def _load(
    bundle: Bundle, variant: str, file: str, device: str, options: onnxruntime.SessionOptions
) -> onnxruntime.InferenceSession:
    provider = PROVIDERS[device]
    if provider not in onnxruntime.get_available_providers():
        raise SettingsError([f"device {device}: this ONNX Runtime has no {provider}: install babelserve[gpu]"])
    if device == "cuda":
        onnxruntime.preload_dlls()
    path = bundle.graph_path(variant, file)
    # ONNX Runtime would fuse Add and LayerNormalization into a node that is 7 times slower on the CPU.
    disabled = ["SkipLayerNormFusion"] if device == "cpu" else []
    try:  # ONNX Runtime's errors have no common base of their own
        session = onnxruntime.InferenceSession(path, options, providers=[provider], disabled_optimizers=disabled)
    except Exception as error:
        raise BundleError([f"{path}: ONNX Runtime cannot load it: {error}"]) from error
    found = session.get_providers()[0]
    if found != provider:
        raise SettingsError([f"device {device}: ONNX Runtime fell back to {found}: its CUDA libraries did not load"])
    return session
