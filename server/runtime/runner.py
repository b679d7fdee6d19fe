"""ONNX Runtime: the encoder and decoder-step sessions of a bundle.

On a CPU the sessions are shared by all lanes, so that the weights are in memory once, and run in the caller's thread
alone: two lanes of one thread translate a third more than one lane of two threads. Only a lane that has nobody beside
it would leave the other cores idle; its steps may use them too, in sessions of their own.

Each session of a step keeps the weights in a layout of its own, so it is loaded when it is first needed: who searches
greedily only does not pay for the steps of beams, in memory, nor for a branch between the two, in time.

The variants for CUDA have their caches on the device. They run on a CPU too, if slowly, for proofs.
"""

import functools
import itertools
import threading
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from server.bundle.bundle import (
    COPY_ROWS_FILE,
    EMBEDDING,
    ENCODER_FILE,
    PLAIN_STEP,
    WEIGHTS_FILE,
    Bundle,
    StepForm,
    cache_names,
    is_on_device,
    step_forms,
)
from server.bundle.shortlist import Shortlist
from server.errors import BundleError, SettingsError
from server.network import CONTROL_NAMES, SLOT_NAMES, Decoder, Encoded, step_controls
from server.runtime.device_decoder import DeviceDecoder
from server.runtime.host_decoder import SHORTLIST_NAMES, HostDecoder
from server.runtime.kv_cache import KVCache

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class Runner(Protocol):
    """Runs the network of one bundle; may be called from several threads."""

    def encode(self, source_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]) -> Encoded:
        """Encodes padded sentences [B, S], for `Decoder.admit`."""

    def open_decoder(self, max_rows: int) -> Decoder:
        """Returns a decoder with an empty cache of `max_rows` rows."""


class OrtRunner:
    """The graphs of one variant on ONNX Runtime."""

    def __init__(
        self, bundle: Bundle, variant: str, device: str, num_threads: int = 1, num_threads_alone: int | None = None
    ) -> None:
        """Loads the graphs, of the steps the plain one; the others follow when they are first needed.

        Args:
            bundle: checked by `open_bundle`.
            variant: one of the manifest's.
            device: "cpu" or "cuda".
            num_threads: that ONNX Runtime may use within one call.
            num_threads_alone: the same for the steps of a lane that is alone at work; None for as many.

        Raises:
            BundleError: a graph does not load, or its tensors are not those of the manifest.
            SettingsError: the device's execution provider is not there.
        """
        facts = bundle.manifest.variants[variant]
        self._step_forms = step_forms(variant, facts.has_shortlist)
        self.dimensions = bundle.manifest.dimensions
        self._limits = bundle.manifest.limits
        self._dtype = np.dtype(facts.dtype)
        self._path = functools.partial(bundle.graph_path, variant)
        self._device = device
        self._num_threads = num_threads
        self._num_threads_alone = num_threads if num_threads_alone is None else num_threads_alone
        _check_provider(device)
        self.embedding = _open_embedding(bundle, variant)  # one mapping for all sessions, which do not own it
        self._embedding_value = onnxruntime.OrtValue.ortvalue_from_numpy(self.embedding)
        self._cross_names = cache_names("cross", self.dimensions.decoder_layers)
        # Of CUDA's attention kernels the plain ones (16): they alone mind the lengths of a batch on every GPU, and need
        # no plan for each shape.
        self._encoder = self._load(ENCODER_FILE, num_threads, sdpa_kernel="16")
        faults = _tensor_faults(self._encoder, ["source_ids", "source_lengths"], self._cross_names)
        _refuse(self._path(ENCODER_FILE), faults)
        self._copy_rows: onnxruntime.InferenceSession | None = None
        if is_on_device(variant):
            self._copy_rows = self._load(COPY_ROWS_FILE, num_threads)
            _refuse(self._path(COPY_ROWS_FILE), self._copy_rows_faults(self._copy_rows))
        self._graph_ids = itertools.count(1)  # of captured steps; 0 is the one of runs that name none
        self._shortlist: Shortlist | None = None
        if facts.has_shortlist:
            self._shortlist = Shortlist.load(bundle.shortlist_path, self.dimensions.vocab_size)
            _refuse(bundle.shortlist_path, self._shortlist_faults(self._shortlist, bundle.manifest.special_ids.eos))
        self._steps: dict[tuple[StepForm, int], onnxruntime.InferenceSession] = {}
        self._loading = threading.Lock()
        self.step_session(PLAIN_STEP)

    def encode(self, source_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]) -> Encoded:
        """See `Runner.encode`; numpy arrays, or OrtValues for a decoder on a device."""
        feeds = {"source_ids": source_ids, "source_lengths": source_lengths}
        if self._copy_rows is None:
            encoded: Encoded = self._encoder.run(self._cross_names, feeds)
            return encoded
        binding: Any = self._encoder.io_binding()
        for name, array in feeds.items():
            binding.bind_cpu_input(name, array)
        for name in self._cross_names:
            binding.bind_output(name, self._device)
        self._encoder.run_with_iobinding(binding)
        on_device: Encoded = binding.get_outputs()
        return on_device

    def open_decoder(self, max_rows: int) -> HostDecoder | DeviceDecoder:
        """See `Runner.open_decoder`."""
        if self._copy_rows is not None:
            return DeviceDecoder(
                self.step_session(PLAIN_STEP),
                self._copy_rows,
                self._device,
                self.dimensions,
                self._limits,
                self.embedding,
                self._graph_ids,
                max_rows,
            )
        cache = KVCache(
            num_layers=self.dimensions.decoder_layers,
            num_heads=self.dimensions.num_heads,
            head_dim=self.dimensions.head_dim,
            max_rows=max_rows,
            dtype=self._dtype,
        )
        return HostDecoder(cache, self.embedding, self.step_session, self._shortlist, max_rows)

    def step_session(self, form: StepForm, is_alone: bool = False) -> onnxruntime.InferenceSession:
        """Returns the session of a step, loaded unless it is there; may be called from several threads.

        Args:
            form: one of `server.bundle.bundle.step_forms`.
            is_alone: it is for a lane that is alone at work.

        Raises:
            BundleError: the graph does not load, or its tensors are not those of the manifest.
        """
        num_threads = self._num_threads_alone if is_alone else self._num_threads
        with self._loading:
            if (form, num_threads) not in self._steps:
                session = self._load(form.file, num_threads, enable_cuda_graph="1")
                _refuse(self._path(form.file), self._step_faults(session, form))
                self._steps[form, num_threads] = session
            return self._steps[form, num_threads]

    def load_steps(self) -> None:
        """Loads every step, for who wants to know whether it can be loaded.

        Raises:
            BundleError: see `step_session`.
        """
        for form in self._step_forms:
            self.step_session(form)

    def step_logits(
        self,
        input_ids: NDArray[np.int64],
        past_lengths: NDArray[np.int32],
        source_lengths: NDArray[np.int32],
        caches: dict[str, NDArray[np.generic]],
    ) -> list[NDArray[np.generic]]:
        """Runs one step on caches of the caller's, for proofs on a CPU.

        Returns:
            Logits [B, V] over the whole vocabulary, then the written self-attention caches in the order of
            `cache_names`.
        """
        names = cache_names("new_self", self.dimensions.decoder_layers)
        controls = step_controls(input_ids, past_lengths, source_lengths)
        session = self.step_session(PLAIN_STEP)
        outputs: list[NDArray[np.generic]] = session.run(["logits", *names], {**controls, **caches})
        return outputs

    def _load(self, file: str, num_threads: int, **provider_options: str) -> onnxruntime.InferenceSession:
        path = self._path(file)
        provider = PROVIDERS[self._device]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = num_threads
        options.inter_op_num_threads = 1
        # Between two steps further threads would go on spinning, for nothing but the neighbours' harm.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        options.log_severity_level = 3
        # A processor without int8 dot products would saturate the sums of unsigned times signed bytes: there ONNX
        # Runtime stores signed weights unsigned. It changes nothing where there are such instructions.
        options.add_session_config_entry("session.x64quantprecision", "1")
        disabled: list[str] = []
        # This and the arena keep memory for shapes that come again, which hardly any does here: no faster, a quarter
        # larger on a CPU. CUDA cannot do without its arena.
        options.enable_mem_pattern = False
        if self._device == "cpu":
            provider_options = {}
            options.enable_cpu_mem_arena = False
            options.add_initializer(EMBEDDING, self._embedding_value)
            # ONNX Runtime would fuse Add and LayerNormalization into a node that is 7 times slower on the CPU.
            disabled = ["SkipLayerNormFusion"]
        providers = [(provider, provider_options)]
        try:  # ONNX Runtime's errors have no common base of their own
            session = onnxruntime.InferenceSession(path, options, providers=providers, disabled_optimizers=disabled)
        except Exception as error:
            raise BundleError([f"{path}: ONNX Runtime cannot load it: {error}"]) from error
        found = session.get_providers()[0]
        if found != provider:
            message = f"device {self._device}: ONNX Runtime fell back to {found}: its CUDA libraries did not load"
            raise SettingsError([message])
        return session

    def _copy_rows_faults(self, session: onnxruntime.InferenceSession) -> list[str]:
        tensors = range(len(self._cross_names))
        inputs = ["from", "to", "pads", *(f"{kind}.{i}" for kind in ("source", "cache") for i in tensors)]
        return _tensor_faults(session, inputs, [f"new_cache.{i}" for i in tensors])

    def _shortlist_faults(self, shortlist: Shortlist, eos: int) -> list[str]:
        least = 2 * self._limits.max_beam_size  # a step may ask for so many best tokens
        common = set(shortlist.common.tolist())
        faults = [f"it has {len(common)} common tokens, it needs {least}"] if len(common) < least else []
        return faults if eos in common else [*faults, f"the end of a sentence, {eos}, is none of the common tokens"]

    def _step_faults(self, session: onnxruntime.InferenceSession, form: StepForm) -> list[str]:
        sizes = self.dimensions
        caches = [*cache_names("self", sizes.decoder_layers), *cache_names("cross", sizes.decoder_layers)]
        slots = SLOT_NAMES if form.shares_slots else ()
        shortlist, projected = (SHORTLIST_NAMES, "products") if form.has_shortlist else ((), "logits")
        outputs = ["top_ids", "top_log_probs", projected, *(f"new_{name}" for name in caches)]
        return [
            *_tensor_faults(session, [*CONTROL_NAMES, *slots, *shortlist, *caches], outputs),
            *_shape_faults(session, caches, (sizes.num_heads, sizes.head_dim)),
        ]


def _refuse(path: Path, faults: list[str]) -> None:
    if faults:
        raise BundleError([f"{path}: {fault}" for fault in faults])


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
        onnxruntime.set_default_logger_severity(3)  # each ScatterND warns of equal indices, which there never are


def _open_embedding(bundle: Bundle, variant: str) -> NDArray[np.generic]:
    facts, sizes = bundle.manifest.variants[variant], bundle.manifest.dimensions
    path = bundle.graph_path(variant, WEIGHTS_FILE)
    shape = (sizes.vocab_size, sizes.d_model)
    try:
        return np.memmap(path, facts.dtype, mode="r", offset=facts.embedding_offset, shape=shape)
    except (OSError, OverflowError, ValueError) as error:
        raise BundleError([f"{path}: has no token embedding {shape} at {facts.embedding_offset}: {error}"]) from error
