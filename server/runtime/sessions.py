"""The sessions of one variant on ONNX Runtime: its encoder and its decoder steps.

On a CPU they are shared by all lanes, so that the weights are in memory once, and run in the caller's thread alone: two
lanes of one thread translate a third more than one lane of two threads. Only a lane that has nobody beside it would
leave the other cores idle; its steps may use them too, in sessions of their own.

Each is loaded from the bytes that have been verified, most steps when they are first needed. On a CPU ONNX Runtime
packs the matrices into every session, in a layout of its own, so a server without beams saves the memory of their
steps. ONNX Runtime reads all other weights where they were verified. So these bytes stay, and nothing depends on the
bundle's files.
A proof, which loads every step and is in no hurry, may lend the weights instead (`Lender`), so that nothing is packed.
"""

import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from server.allocator import release_freed_memory
from server.bundle.bundle import Bundle
from server.bundle.graphs import (
    ALIGNER_FILE,
    ALIGNER_INPUTS,
    ATTENTION_OUTPUT,
    COPY_ROWS_FILE,
    COPY_STATES_FILE,
    EMBEDDING,
    ENCODER_FILE,
    ENCODER_NAMES,
    ONE_PASS_FILE,
    ONE_PASS_NAMES,
    ONE_PASS_OUTPUTS,
    PLAIN_STEP,
    WEIGHTS_FILE,
    StepForm,
    aligner_caches,
    cache_names,
    cache_outputs,
    copy_rows_names,
    has_fixed,
    step_forms,
)
from server.bundle.variants import VARIANTS
from server.errors import BundleError, SettingsError
from server.runtime.device_turns import device_turn
from server.runtime.graph_faults import content_faults, refuse, step_faults, tensor_faults
from server.runtime.onnx_runtime_errors import advice_on_device
from server.runtime.processor import has_int8_dot_product
from server.runtime.providers import ARENA, PROVIDERS, check_provider, library_fault

# From a graph's bytes to its large weights by name, in memory that stays: sessions on a CPU read them there,
# as they are, which takes no memory and more time.
Lender = Callable[[bytes], Mapping[str, NDArray[Any]]]


class Sessions:
    """Loads the encoder and the plain step, and each other step when it is first asked for.

    Args:
        bundle: opened by `open_bundle`; kept until every step is loaded.
        variant: one of the manifest's.
        device: "cpu" or "cuda".
        num_threads: that ONNX Runtime may use within one call.
        num_threads_alone: the same for the steps of a lane that is alone at work.
        lend: lends the weights to all sessions; None gives each session a copy of its own, which is faster.
        arena_bytes: of device memory that encoder and step may take, with their weights; 0 for no bound.

    Attributes:
        encoder: the encoder's session.
        copy_rows, copy_states: of the graphs that copy rows, in variants whose caches are on the device; None where
            there is nothing for them to copy.
        states: what steps keep of each row.
        cache_outputs: the caches that steps read, by name, with the outputs that share their memory; `cross_names` of
            them are the encoder's outputs.
        aligner_caches: what the aligner reads of these; empty if there is none.
        embedding: the token embedding [V, M]. On a CPU it is a part of the weights and keeps all of them in memory, as
            sessions read them there without owning them.

    Raises:
        BundleError: a file is not what the manifest says, a graph does not load, or its tensors are others.
        SettingsError: the device's execution provider is not there, or cannot use the device.
    """

    def __init__(
        self,
        bundle: Bundle,
        variant: str,
        device: str,
        num_threads: int,
        num_threads_alone: int,
        lend: Lender | None = None,
        arena_bytes: int = 0,
    ) -> None:
        check_provider(device)
        sizes = bundle.manifest.dimensions
        weights = bundle.read(f"{variant}/{WEIGHTS_FILE}") if lend is None else b""
        self.embedding = (
            _find_embedding(weights, bundle, variant, device)
            if lend is None
            else lend(bundle.read(f"{variant}/{PLAIN_STEP.file}"))[EMBEDDING]
        )
        self._lent: list[onnxruntime.OrtValue] = []  # sessions do not own what they are given
        graphs = Graphs(bundle, variant, device, weights, lend, self._lent, arena_bytes)
        self.states, self.cross_names = bundle.manifest.states, cache_names("cross", sizes.decoder_layers)
        self.cache_outputs = cache_outputs(self.states, sizes.decoder_layers)
        self.copy_rows = self.copy_states = None
        if VARIANTS[variant].is_on_device:
            self.copy_rows = graphs.load_copy(COPY_ROWS_FILE, num_threads, len(self.cross_names))
            if has_fixed(self.states):
                self.copy_states = graphs.load_copy(COPY_STATES_FILE, num_threads, len(self.states))
        self._num_threads = {False: num_threads, True: num_threads_alone}  # by whether a lane is alone
        self._forms = step_forms(variant, bundle.manifest.variants[variant].has_shortlist)
        self._graphs: Graphs | None = graphs  # until every step is loaded
        self._steps: dict[tuple[StepForm, int], onnxruntime.InferenceSession] = {}
        alignment = bundle.manifest.alignment
        self.aligner_caches = [] if alignment is None else aligner_caches(alignment.last_layer)
        self._aligner: onnxruntime.InferenceSession | None = None
        self._loading = threading.Lock()
        with ThreadPoolExecutor(1, "graph-loader") as loader:
            plain_step = loader.submit(self.step_session, PLAIN_STEP, is_alone=True)  # every search begins with it
            self.encoder = graphs.load_encoder(num_threads)
        refuse(graphs.path(ENCODER_FILE), tensor_faults(self.encoder, list(ENCODER_NAMES), self.cross_names))
        plain_step.result()

    def step_session(self, form: StepForm, is_alone: bool = False) -> onnxruntime.InferenceSession:
        """Returns the session of a step, loaded unless it is there; may be called from several threads.

        Args:
            form: one of `server.bundle.graphs.step_forms`.
            is_alone: it is for a lane that is alone at work.

        Raises:
            BundleError: the graph does not load, or its tensors are not those of the manifest.
        """
        kind = form, self._num_threads[is_alone]
        with self._loading:
            if kind not in self._steps:
                assert self._graphs is not None, "it is there until every step is loaded"
                self._steps[kind] = self._graphs.load_step(*kind)
                self._let_go()
            return self._steps[kind]

    def aligner_session(self) -> onnxruntime.InferenceSession:
        """Returns the session of the aligner, loaded unless it is there; raises as `step_session`."""
        with self._loading:
            if self._aligner is None:
                assert self._graphs is not None, "it is there until everything is loaded"
                self._aligner = self._graphs.load_aligner(self._num_threads[False], self.aligner_caches)
                self._let_go()
            return self._aligner

    def _let_go(self) -> None:
        """Lets the graphs go once all have been loaded."""
        has_steps = len(self._steps) == len(self._forms) * len(set(self._num_threads.values()))
        if has_steps and (self._aligner is not None or not self.aligner_caches):
            self._graphs = None


@dataclass(frozen=True, slots=True)
class Graphs:
    """Graphs of a variant, to be loaded with its weights; `lent` keeps what sessions do not own."""

    bundle: Bundle
    variant: str
    device: str
    weights: bytes
    lend: Lender | None
    lent: list[onnxruntime.OrtValue]
    arena_bytes: int

    def path(self, file: str) -> Path:
        """Returns where a graph is."""
        return self.bundle.directory / self.variant / file

    def load_encoder(self, num_threads: int) -> onnxruntime.InferenceSession:
        """Loads the encoder."""
        # Of CUDA's attention kernels the plain ones (16): they alone mind the lengths of a batch on every GPU, and
        # need no plan for each shape.
        return self.load(ENCODER_FILE, num_threads, **self._arena_limit(2 / 3), sdpa_kernel="16")

    def load_step(self, form: StepForm, num_threads: int) -> onnxruntime.InferenceSession:
        """Loads a decoder step."""
        # Flash attention, or on a Turing the memory-efficient one (1 + 2). Unasked, ONNX Runtime takes cuDNN's from
        # compute capability 9.0 on, which plans for each shape: what runs on one GPU is to run on all.
        limit = self._arena_limit(1 / 3)
        session = self.load(form.file, num_threads, **limit, enable_cuda_graph="1", sdpa_kernel="3")
        refuse(
            self.path(form.file),
            step_faults(session, form, self.bundle.manifest.dimensions, self.bundle.manifest.states),
        )
        return session

    def load_aligner(self, num_threads: int, caches: list[str]) -> onnxruntime.InferenceSession:
        """Loads the aligner, which reads these caches."""
        session = self.load(ALIGNER_FILE, num_threads)
        refuse(self.path(ALIGNER_FILE), tensor_faults(session, [*ALIGNER_INPUTS, *caches], [ATTENTION_OUTPUT]))
        return session

    def load_one_pass(self, num_threads: int) -> onnxruntime.InferenceSession:
        """Loads the graph of a one-pass network."""
        session = self.load(ONE_PASS_FILE, num_threads)
        refuse(self.path(ONE_PASS_FILE), tensor_faults(session, list(ONE_PASS_NAMES), list(ONE_PASS_OUTPUTS)))
        return session

    def load_copy(self, file: str, num_threads: int, num_tensors: int) -> onnxruntime.InferenceSession:
        """Loads a graph that copies rows of so many tensors."""
        session = self.load(file, num_threads)
        refuse(self.path(file), tensor_faults(session, *copy_rows_names(num_tensors)))
        return session

    def _arena_limit(self, share: float) -> dict[str, str]:
        return {"gpu_mem_limit": str(int(share * self.arena_bytes))} if self.arena_bytes else {}

    def load(self, file: str, num_threads: int, **provider_options: str) -> onnxruntime.InferenceSession:
        """Loads a graph. Raises BundleError if it is at fault, and SettingsError if the device is."""
        graph = self.bundle.read(f"{self.variant}/{file}")
        dtype, size = self.bundle.manifest.variants[self.variant].dtype, len(self.weights)
        refuse(self.path(file), content_faults(graph, dtype, size if self.lend is None else None))
        provider = PROVIDERS[self.device]
        options = onnxruntime.SessionOptions()
        # What was looked at is what is loaded: ONNX Runtime would guess another format from a file's first bytes.
        options.add_session_config_entry("session.load_model_format", "ONNX")
        options.intra_op_num_threads = num_threads
        options.inter_op_num_threads = 1
        # Between two steps further threads would go on spinning, for nothing but the neighbours' harm.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        # It raises its errors, and would also write them to stderr, with the names in a stranger's graph as they are.
        options.log_severity_level = 4
        if self.lend is None:
            options.add_external_initializers_from_files_in_memory([WEIGHTS_FILE], [self.weights], [len(self.weights)])
        else:
            self._add_lent(options, self.lend(graph))
        # A processor without int8 dot products would saturate the sums of unsigned times signed bytes, and has to take
        # the weights as unsigned. Others must not: their products of unsigned bytes take twice as long.
        if not has_int8_dot_product():
            options.add_session_config_entry("session.x64quantprecision", "1")
        disabled: list[str] = []
        # This and the arena keep memory for shapes that come again, which hardly any does here: no faster, a quarter
        # larger on a CPU. CUDA cannot do without its arena.
        options.enable_mem_pattern = False
        if self.device == "cpu":
            provider_options = {}
            options.enable_cpu_mem_arena = False
            # Else it copies the weights before it packs them, which takes time and leaves the heap in pieces.
            options.add_session_config_entry("session.use_external_initializer_file_buffers_directly", "1")
            # ONNX Runtime would fuse Add and LayerNormalization into a node that is 7 times slower on the CPU.
            disabled = ["SkipLayerNormFusion"]
        else:
            provider_options |= ARENA
        providers = [(provider, provider_options)]
        try:  # ONNX Runtime's errors have no common base of their own
            with nullcontext() if self.device == "cpu" else device_turn:
                session = onnxruntime.InferenceSession(
                    graph, options, providers=providers, disabled_optimizers=disabled, enable_fallback=0
                )
        except Exception as error:
            if self.device != "cpu" and (advice := advice_on_device(str(error))):
                raise SettingsError([f"device {self.device}: {advice}"]) from error
            raise BundleError([f"{self.path(file)}: ONNX Runtime cannot load it: {error}"]) from error
        found = session.get_providers()[0]
        if found != provider:
            raise SettingsError([f"device {self.device}: ONNX Runtime fell back to {found}: {library_fault()}"])
        release_freed_memory()  # such as the embedding's transpose, which is packed for the projection
        return session

    def _add_lent(self, options: onnxruntime.SessionOptions, weights: Mapping[str, NDArray[Any]]) -> None:
        # ONNX Runtime wants the file to be there, though it reads nothing of it.
        folder = str(self.bundle.directory / self.variant)
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        options.add_session_config_entry("session.disable_prepacking", "1")
        for name, weight in weights.items():
            value = onnxruntime.OrtValue.ortvalue_from_numpy(weight)
            options.add_initializer(name, value)
            self.lent.append(value)


def _find_embedding(weights: bytes, bundle: Bundle, variant: str, device: str) -> NDArray[np.generic]:
    facts, sizes = bundle.manifest.variants[variant], bundle.manifest.dimensions
    shape, offset = (sizes.vocab_size, sizes.d_model), facts.embedding_offset
    try:
        embedding = np.frombuffer(weights, facts.dtype, math.prod(shape), offset).reshape(shape)
    except (OverflowError, ValueError) as error:
        path = bundle.directory / variant / WEIGHTS_FILE
        end = offset + math.prod(shape) * np.dtype(facts.dtype).itemsize
        message = f"has no token embedding {shape} at {offset}: it has {len(weights)} bytes, that would end at {end}"
        raise BundleError([f"{path}: {message}"]) from error
    return embedding if device == "cpu" else embedding.copy()  # a GPU has copies of the weights
