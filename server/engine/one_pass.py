"""Batches of a network that writes all words at once: one step encodes, translates and ends a sentence.

Whatever a batch does around its steps is in `server.engine.batch`. A sentence has a row for one step alone.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from server.averages import FadingMean
from server.bundle.graphs import UPSAMPLING
from server.decoding.ctc import Positions
from server.decoding.one_pass_search import OnePassSearch
from server.decoding.options import DecodingOptions
from server.engine.batch import Batch
from server.engine.cost import CostModel
from server.engine.limits import EngineLimits
from server.engine.sentence import Sentence
from server.errors import TranslationError

# Of a run's logits. Half, and runs are so small that they take longer for each sentence. Twice, and malloc maps the
# memory anew in every run, which takes twice the time.
_LOGITS_BYTES = 32 << 20
_FIRST_TOKENS = 20.0  # of a sentence, before any has been seen


class OnePassBatch(Batch):
    """See `Batch`."""

    def _choose(self, top_ids: NDArray[np.int64], top_log_probs: NDArray[np.float32]) -> list[Sentence]:
        """Has each search read its translation, and returns the sentences that have one: all but those that fail.

        Args:
            top_ids: [B, 2S, 1 + k], what `Positions` says for each row.
            top_log_probs: the same.
        """
        finished = []
        for sentence in list(self.plan.running):
            (row,) = sentence.rows
            # A neighbour may have asked for more tokens; with them this sentence's translation would change.
            own = slice(UPSAMPLING * len(sentence.source_ids)), slice(1 + sentence.search.top_k)
            positions = Positions(top_ids[row][own], top_log_probs[row][own])
            try:
                self._read(sentence, positions)
            except TranslationError as error:  # of its request
                self.drop(error, [sentence])
            except Exception as error:  # noqa: BLE001  # as in `Batch.step`
                self.fail(error, [sentence])
            else:
                finished.append(sentence)
        return finished

    def _read(self, sentence: Sentence, positions: Positions) -> None:
        if not np.isfinite(positions.log_probs).all():
            raise FloatingPointError("log-probabilities that are not finite")
        assert isinstance(sentence.search, OnePassSearch), "the engine makes no others for such a network"
        sentence.search.read(positions, sentence.source_ids)


class OnePassCost(CostModel):
    """See `CostModel`. A sentence of as many source tokens as the average counts as one step, others in proportion."""

    def __init__(self, max_rows: int, num_lanes: int = 1) -> None:
        super().__init__(max_rows, num_lanes)
        self._source_tokens = FadingMean(_FIRST_TOKENS)

    def observe_sentence(self, source_tokens: int, steps: int) -> None:  # noqa: ARG002  # always one step
        """Notes how many tokens a sentence had."""
        self._source_tokens.add(source_tokens)

    @property
    def steps_per_token(self) -> float:
        """See `CostModel.steps_per_token`."""
        return 1 / self._source_tokens.value

    def steps(self, source_tokens: int, options: DecodingOptions) -> float:  # noqa: ARG002  # not a matter of them
        """See `CostModel.steps`."""
        return source_tokens * self.steps_per_token


def bounded(limits: EngineLimits, vocab_size: int) -> EngineLimits:
    """Returns limits by which the logits of a run have at most 32 MiB, unless they are of one sentence."""
    most = max(1, _LOGITS_BYTES // (UPSAMPLING * vocab_size * np.dtype(np.float32).itemsize))
    return replace(limits, lane=replace(limits.lane, max_encode_tokens=min(limits.lane.max_encode_tokens, most)))
