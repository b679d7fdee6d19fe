"""The sessions of one variant on ONNX Runtime: its encoder and its decoder steps.

On a CPU they are shared by all lanes, so that the weights are in memory once, and run in the caller's thread alone: two
lanes of one thread translate a third more than one lane of two threads. Only a lane that has nobody beside it would
leave the other cores idle; its steps may use them too, in sessions of their own.

Each session of a step keeps the weights in a layout of its own, so it is loaded when it is first needed: who searches
greedily only does not pay for the steps of beams, in memory, nor for a branch between the two, in time.
"""

import threading
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from server.bundle.bundle import Bundle
from server.bundle.graphs import EMBEDDING, ENCODER_FILE, ENCODER_NAMES, WEIGHTS_FILE, StepForm, cache_names, step_forms
from server.errors import BundleError, SettingsError
from server.runtime.faults import refuse, step_faults, tensor_faults

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class Sessions:
    """Loads the encoder, and each step when it is first asked for.

    Args:
        bundle: checked by `open_bundle`.
        variant: one of the manifest's.
        device: "cpu" or "cuda".
        num_threads: that ONNX Runtime may use within one call.
        num_threads_alone: the same for the steps of a lane that is alone at work.

    Attributes:
        encoder: the encoder's session.
        cross_names: the encoder's outputs.
        embedding: the token embedding [V, M]: one mapping for all sessions, which do not own it.

    Raises:
        BundleError: a graph does not load, or its tensors are not those of the manifest.
        SettingsError: the device's execution provider is not there.
    """

    def __init__(self, bundle: Bundle, variant: str, device: str, num_threads: int, num_threads_alone: int) -> None:
        self._bundle = bundle
        self._variant = variant
        self._device = device
        self._num_threads = num_threads
        self._num_threads_alone = num_threads_alone
        self._dimensions = bundle.manifest.dimensions
        _check_provider(device)
        self.embedding = _open_embedding(bundle, variant)
        self._embedding_value = onnxruntime.OrtValue.ortvalue_from_numpy(self.embedding)
        self.cross_names = cache_names("cross", self._dimensions.decoder_layers)
        # Of CUDA's attention kernels the plain ones (16): they alone mind the lengths of a batch on every GPU, and need
        # no plan for each shape.
        self.encoder = self._load(ENCODER_FILE, num_threads, sdpa_kernel="16")
        refuse(self.path(ENCODER_FILE), tensor_faults(self.encoder, list(ENCODER_NAMES), self.cross_names))
        self._steps: dict[tuple[StepForm, int], onnxruntime.InferenceSession] = {}
        self._loading = threading.Lock()

    def path(self, file: str) -> Path:
        """Path of one of the variant's files."""
        return self._bundle.graph_path(self._variant, file)

    def load(self, file: str) -> onnxruntime.InferenceSession:
        """Returns a session of a graph that is neither the encoder nor a step. Raises BundleError."""
        return self._load(file, self._num_threads)

    def step_session(self, form: StepForm, is_alone: bool = False) -> onnxruntime.InferenceSession:
        """Returns the session of a step, loaded unless it is there; may be called from several threads.

        Args:
            form: one of `server.bundle.graphs.step_forms`.
            is_alone: it is for a lane that is alone at work.

        Raises:
            BundleError: the graph does not load, or its tensors are not those of the manifest.
        """
        num_threads = self._num_threads_alone if is_alone else self._num_threads
        with self._loading:
            if (form, num_threads) not in self._steps:
                session = self._load(form.file, num_threads, enable_cuda_graph="1")
                refuse(self.path(form.file), step_faults(session, form, self._dimensions))
                self._steps[form, num_threads] = session
            return self._steps[form, num_threads]

    def load_steps(self) -> None:
        """Loads every step, for who wants to know whether it can be loaded.

        Raises:
            BundleError: see `step_session`.
        """
        for form in step_forms(self._variant, self._bundle.manifest.variants[self._variant].has_shortlist):
            self.step_session(form)

    def _load(self, file: str, num_threads: int, **provider_options: str) -> onnxruntime.InferenceSession:
        path = self.path(file)
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
