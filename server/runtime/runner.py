"""The network of a bundle on ONNX Runtime: `open_runner` returns what `server.network.Runner` says."""

import itertools
import threading
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from server.bundle.bundle import Bundle
from server.bundle.graphs import LOGITS, PLAIN_STEP, step_controls
from server.bundle.manifest import SHORTLIST_FILE
from server.bundle.shortlist import Shortlist
from server.bundle.variants import VARIANTS
from server.network import Encoded, RowMoves, StepKind
from server.runtime.device_decoder import DeviceDecoder, GraphIds
from server.runtime.device_turns import device_turn, taking_turns
from server.runtime.graph_faults import refuse, shortlist_faults
from server.runtime.host_decoder import HostDecoder
from server.runtime.kv_cache import KVCache
from server.runtime.one_pass import OnePassRunner
from server.runtime.onnx_runtime_errors import telling_failures_apart
from server.runtime.sessions import Lender, Sessions

# On an H200 it takes as long to encode a sentence and to fill its rows as three steps of 128 rows, and hardly longer
# for 32 sentences. Halved, steps wait for that twice as often; doubled, more rows stay empty until the next entry.
_ENTRY_INTERVAL = 8


class HostRunner:
    """A variant whose caches are in host memory.

    Args:
        bundle: opened by `open_bundle`; not kept.
        variant: one of the manifest's.
        sessions: of that variant.

    Attributes:
        sessions: of that variant.
        dimensions: of the manifest.
        entry_interval: 1.

    Raises:
        BundleError: the shortlist does not fit.
    """

    entry_interval = 1

    def __init__(self, bundle: Bundle, variant: str, sessions: Sessions) -> None:
        manifest = bundle.manifest
        self.sessions = sessions
        self.dimensions = manifest.dimensions
        self._dtype = np.dtype(manifest.variants[variant].dtype)
        # Verified here, and kept packed until a sentence is translated by it: most servers save the memory.
        self._shortlist_file = b""
        self._shortlist: Shortlist | None = None
        self._opening = threading.Lock()
        if manifest.variants[variant].has_shortlist:
            self._shortlist_file = bundle.read(SHORTLIST_FILE)
            shortlist = self._read_shortlist()
            faults = shortlist_faults(shortlist, manifest.limits.max_beam_size, manifest.special_ids.eos)
            refuse(bundle.directory / SHORTLIST_FILE, faults)

    @telling_failures_apart
    def encode(self, source_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]) -> Encoded:
        """See `Runner.encode`."""
        feeds = {"source_ids": source_ids, "source_lengths": source_lengths}
        encoded: Encoded = self.sessions.encoder.run(self.sessions.cross_names, feeds)
        return encoded

    @telling_failures_apart
    def open_decoder(self, kind: StepKind, max_rows: int) -> HostDecoder:
        """See `Runner.open_decoder`."""
        cache = KVCache(
            states=self.sessions.states,
            num_layers=self.dimensions.decoder_layers,
            num_heads=self.dimensions.num_heads,
            head_dim=self.dimensions.head_dim,
            max_rows=max_rows,
            dtype=self._dtype,
        )
        shortlist = self._open_shortlist() if kind is StepKind.SHORTLIST else None
        return HostDecoder(cache, self.sessions, shortlist, max_rows)

    def _open_shortlist(self) -> Shortlist:
        """Returns the one table that all lanes read."""
        with self._opening:
            if self._shortlist is None:
                self._shortlist = self._read_shortlist()
                self._shortlist_file = b""
            return self._shortlist

    def _read_shortlist(self) -> Shortlist:
        sizes = self.dimensions
        return Shortlist.load(self._shortlist_file, sizes.vocab_size, sizes.source_vocab_size)

    def step_logits(
        self,
        input_ids: NDArray[np.int64],
        past_lengths: NDArray[np.int32],
        source_lengths: NDArray[np.int32],
        caches: dict[str, NDArray[np.generic]],
    ) -> list[NDArray[np.generic]]:
        """Runs one step on caches of the caller's, for proofs.

        Returns:
            Logits [B, V] over the whole vocabulary, then the written states in the order of the table.
        """
        names = [f"new_{state.name}" for state in self.sessions.states]
        controls = step_controls(input_ids, past_lengths, source_lengths)
        session = self.sessions.step_session(PLAIN_STEP)
        outputs: list[NDArray[np.generic]] = session.run([LOGITS, *names], {**controls, **caches})
        return outputs


class DeviceRunner:
    """A variant whose caches are in device memory. It runs on a CPU too, if slowly, for proofs.

    Args:
        bundle: opened by `open_bundle`; not kept.
        device: whose memory, as ONNX Runtime calls it: "cpu" or "cuda".
        sessions: of the variant.
        max_encode_tokens: that one encoder run may have.

    Attributes:
        sessions: of the variant.
        dimensions: of the manifest.
        entry_interval: see `Runner`.
    """

    entry_interval = _ENTRY_INTERVAL

    def __init__(self, bundle: Bundle, device: str, sessions: Sessions, max_encode_tokens: int) -> None:
        self.sessions = sessions
        self.dimensions = bundle.manifest.dimensions
        self._max_encode_tokens = max_encode_tokens
        self._limits = bundle.manifest.limits
        self._device = device
        self._graph_ids: GraphIds = itertools.count(1)  # 0 is the one of runs that name none

    @taking_turns
    @telling_failures_apart
    def encode(self, source_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]) -> list[onnxruntime.OrtValue]:
        """See `Runner.encode`."""
        binding: Any = self.sessions.encoder.io_binding()
        for name, array in {"source_ids": source_ids, "source_lengths": source_lengths}.items():
            binding.bind_cpu_input(name, array)
        for name in self.sessions.cross_names:
            binding.bind_output(name, self._device)
        self.sessions.encoder.run_with_iobinding(binding)
        on_device: list[onnxruntime.OrtValue] = binding.get_outputs()
        return on_device

    @telling_failures_apart
    def open_decoder(self, kind: StepKind, max_rows: int) -> DeviceDecoder:
        """See `Runner.open_decoder`."""
        assert kind is StepKind.PLAIN, "on a GPU to project to the whole vocabulary is cheap"
        with device_turn:
            decoder = DeviceDecoder(
                self.sessions, self._device, self.dimensions, self._limits, self._graph_ids, max_rows
            )
        if self._device != "cpu":
            self.take_memory(decoder, max_rows)
        return decoder

    def take_memory(self, decoder: DeviceDecoder, max_rows: int) -> None:
        """Makes the largest runs, so that what does not fit shows at the start, and no later run takes any more.

        Called by the lane's own thread, as captured graphs and CUDA's handles belong to it. What it leaves in the
        caches is overwritten, or lies behind a row's length.
        """
        tokens, longest = max(1, self._max_encode_tokens), self._limits.max_source_tokens
        many = min(max_rows, tokens)
        long_ones, short_ones = (min(many, max(1, tokens // longest)), longest), (many, min(longest, tokens // many))
        for num_rows, length in (long_ones, short_ones):
            ids, lengths = np.zeros((num_rows, length), np.int64), np.full(num_rows, length, np.int32)
            decoder.admit(0, self.encode(ids, lengths), [()] * num_rows)
        half = max_rows // 2
        decoder.move(RowMoves([*range(half)], [*range(half, 2 * half)], [0] * half), self._limits.max_target_tokens)
        decoder.prepare()


NetworkRunner = HostRunner | DeviceRunner | OnePassRunner


def open_runner(
    bundle: Bundle,
    variant: str,
    device: str,
    num_threads: int = 1,
    num_threads_alone: int | None = None,
    lend: Lender | None = None,
    max_encode_tokens: int = 0,
    arena_bytes: int = 0,
) -> NetworkRunner:
    """Loads the graphs of a variant, its steps when they are first needed.

    Args:
        bundle: opened by `open_bundle`; kept until every step is loaded.
        variant: one of the manifest's.
        device: "cpu" or "cuda".
        num_threads: that ONNX Runtime may use within one call.
        num_threads_alone: the same for the steps of a lane that is alone at work; None for as many.
        lend: the weights, for proofs on a CPU that must not take memory; None for copies, which are faster.
        max_encode_tokens: that one encoder run may have: on a GPU its memory is taken at the start.
        arena_bytes: of device memory that encoder and step may take, with their weights; 0 for no bound.

    Raises:
        BundleError: a file is not what the manifest says, a graph does not load, or its tensors are others.
        SettingsError: the device's execution provider is not there.
    """
    alone = num_threads if num_threads_alone is None else num_threads_alone
    if bundle.manifest.is_one_pass:
        return OnePassRunner(bundle, variant, num_threads, alone, lend)
    sessions = Sessions(bundle, variant, device, num_threads, alone, lend, arena_bytes)
    if VARIANTS[variant].is_on_device:
        return DeviceRunner(bundle, device, sessions, max_encode_tokens)
    return HostRunner(bundle, variant, sessions)
