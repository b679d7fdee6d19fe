"""A network that writes all words at once, on ONNX Runtime: one run returns the best tokens of all positions.

To an engine it is a decoder whose first step is the last. Of each row it keeps the source alone.
"""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from server.bundle.bundle import Bundle
from server.bundle.graphs import ONE_PASS_NAMES, ONE_PASS_OUTPUTS, UPSAMPLING, WEIGHTS_FILE
from server.network import Encoded, RowMoves, StepInputs, StepKind
from server.runtime.onnx_runtime_errors import telling_failures_apart
from server.runtime.providers import check_provider
from server.runtime.sessions import Graphs, Lender


class OnePassRunner:
    """See `server.network.Runner`. Its decoders do all of the work.

    Args:
        bundle: opened by `open_bundle`; kept until all is loaded.
        variant: one of the manifest's, for CPUs.
        num_threads: that ONNX Runtime may use within one call.
        num_threads_alone: the same for a lane that is alone at work.
        lend: the weights, for proofs that must not take memory; None for copies.

    Attributes:
        dimensions: of the manifest.

    Raises:
        BundleError: a file is not what the manifest says, the graph does not load, or its tensors are others.
        SettingsError: ONNX Runtime cannot use the processor.
    """

    entry_interval = 1

    def __init__(
        self, bundle: Bundle, variant: str, num_threads: int, num_threads_alone: int, lend: Lender | None = None
    ) -> None:
        check_provider("cpu")
        self.dimensions = bundle.manifest.dimensions
        self._blank = bundle.manifest.special_ids.bos
        # On a CPU sessions read the weights where they were verified, without owning them.
        self._weights = bundle.read(f"{variant}/{WEIGHTS_FILE}") if lend is None else b""
        self._lent: list[onnxruntime.OrtValue] = []
        self._graphs: Graphs | None = Graphs(bundle, variant, "cpu", self._weights, lend, self._lent, 0)
        self._num_threads = {False: num_threads, True: num_threads_alone}  # by whether a lane is alone
        self._sessions: dict[int, onnxruntime.InferenceSession] = {}  # by their threads
        self._loading = threading.Lock()
        self._session(is_alone=True)  # the first sentence comes alone

    def _session(self, *, is_alone: bool) -> onnxruntime.InferenceSession:
        num_threads = self._num_threads[is_alone]
        with self._loading:
            if num_threads not in self._sessions:
                assert self._graphs is not None, "it is there until all is loaded"
                self._sessions[num_threads] = self._graphs.load_one_pass(num_threads)
                if len(self._sessions) == len(set(self._num_threads.values())):
                    self._graphs = None
            return self._sessions[num_threads]

    def encode(self, source_ids: NDArray[np.int64], source_lengths: NDArray[np.int32]) -> Encoded:  # noqa: ARG002
        """See `Runner.encode`. It does nothing: the step does all."""
        return ()

    def open_decoder(self, kind: StepKind, max_rows: int) -> "OnePassDecoder":
        """See `Runner.open_decoder`."""
        assert kind is StepKind.PLAIN, "the manifest has no shortlist"
        return OnePassDecoder(self, max_rows)

    @telling_failures_apart
    def run(
        self,
        source_ids: NDArray[np.int64],
        source_lengths: NDArray[np.int32],
        top_k: int,
        *,
        with_log_probs: bool = True,
        is_alone: bool = False,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Runs the network.

        Args:
            source_ids: int64 [B, S], padded with any ids.
            source_lengths: int32 [B].
            top_k: how many of the best tokens to return of each position, at most the vocabulary.
            with_log_probs: False spares the softmax.
            is_alone: whether it may use all cores.

        Returns:
            What each position may be [B, 2S, 1 + k], and the log-probabilities of these, or else their logits: the
            blank, and then the best tokens, best first. Of a row of n tokens the first 2n positions count.
        """
        k = min(top_k, self.dimensions.vocab_size)
        controls = (source_ids, source_lengths, np.array([k], np.int64), np.array([with_log_probs]))
        feeds = dict(zip(ONE_PASS_NAMES, controls, strict=True))
        found: list[NDArray[Any]] = self._session(is_alone=is_alone).run(list(ONE_PASS_OUTPUTS), feeds)
        shape = len(source_ids), UPSAMPLING * source_ids.shape[1], -1
        ids, log_probs, of_blank = (tensor.reshape(shape) for tensor in found)
        blanks = np.full(of_blank.shape, self._blank)
        return np.concatenate([blanks, ids], axis=2), np.concatenate([of_blank, log_probs], axis=2)


class OnePassDecoder:
    """See `server.network.Decoder`.

    Args:
        runner: whose network it runs.
        max_rows: that may be in use at once.
    """

    cache_bytes = 0
    keeps_sources = True

    def __init__(self, runner: OnePassRunner, max_rows: int) -> None:
        self._runner = runner
        self._sources: list[tuple[int, ...]] = [()] * max_rows

    def reserve(self, num_rows: int, self_positions: int, cross_positions: int) -> None:
        """See `Decoder.reserve`. There is no cache."""

    def admit(self, first_row: int, encoded: Encoded, sources: Sequence[tuple[int, ...]]) -> None:  # noqa: ARG002
        """See `Decoder.admit`."""
        self._sources[first_row : first_row + len(sources)] = sources

    def move(self, moves: RowMoves, positions: int) -> None:  # noqa: ARG002
        """See `Decoder.move`."""
        for to, from_ in zip(moves.to, moves.from_, strict=True):
            self._sources[to] = self._sources[from_]

    def padded_rows(self, num_rows: int) -> int:
        """See `Decoder.padded_rows`."""
        return num_rows

    def step(self, inputs: StepInputs) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Returns what `OnePassRunner.run` does, of the first B rows."""
        sources = self._sources[: len(inputs.source_lengths)]
        source_ids = np.zeros((len(sources), max(map(len, sources))), np.int64)
        for row, ids in zip(source_ids, sources, strict=True):
            row[: len(ids)] = ids
        return self._runner.run(
            source_ids,
            inputs.source_lengths,
            inputs.top_k,
            with_log_probs=inputs.with_log_probs,
            is_alone=inputs.is_alone,
        )

    def logits(self) -> NDArray[np.float32]:
        """Raises TypeError: no search of such a network changes logits."""
        raise TypeError("a one-pass network returns no logits")

    def keep(self, row: int, source_length: int) -> Any:  # noqa: ARG002
        """Raises TypeError: no bundle of such a network says how translations are aligned."""
        raise TypeError("a one-pass network has no aligner")

    def align(
        self,
        sources: Sequence[Any],  # noqa: ARG002
        target_ids: NDArray[np.int64],  # noqa: ARG002
        source_lengths: NDArray[np.int32],  # noqa: ARG002
    ) -> NDArray[np.float32]:
        """Raises TypeError, as `keep`."""
        raise TypeError("a one-pass network has no aligner")
