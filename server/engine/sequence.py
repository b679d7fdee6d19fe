"""One sentence in flight: what was asked, what came out, and where it stands."""

import enum
import math
from concurrent.futures import Future
from dataclasses import dataclass, field

from server.decoding.beam_search import BeamSearch
from server.runtime.slots import SLOT_ROWS


class FinishReason(enum.Enum):
    """Why a translation ended."""

    STOP = "stop"  # the model ended the sentence
    LENGTH = "length"  # the limit on output tokens did


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingOptions:
    """How a translation is searched for; checked by the service.

    Attributes:
        beam_size: W, 1 (greedy search) to the manifest's `max_beam_size`.
        num_hypotheses: 1 to `beam_size`.
        length_penalty: exponent of the length in a hypothesis' score, 0 to 10.
        max_output_tokens: most target tokens, eos included; None for twice the source tokens plus 16.
        with_scores: whether greedy search computes scores, which it can do without; beam search always does.
        use_shortlist: whether only the model's lexical shortlist of the sentence is searched.
    """

    beam_size: int = 4
    num_hypotheses: int = 1
    length_penalty: float = 1.0
    max_output_tokens: int | None = None
    with_scores: bool = True
    use_shortlist: bool = False

    @property
    def needs_log_probs(self) -> bool:
        """Whether logits would not do."""
        return self.with_scores or self.beam_size > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One translation: ids without bos and eos; score = log-probability / length^length_penalty, 0 without scores."""

    ids: tuple[int, ...]
    score: float
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The `num_hypotheses` best translations of a sentence, best first, and where its time went."""

    hypotheses: tuple[Hypothesis, ...]
    queue_seconds: float
    encode_seconds: float
    decode_seconds: float


@dataclass(slots=True, kw_only=True, eq=False)
class Sequence:
    """A sentence from `submit` to its answer. Only the thread that runs it changes it.

    Attributes:
        deadline: instant of the engine's clock after which the answer is worthless; None for never.
        rows: row of the batch that holds each live beam, best beam first; empty while waiting.
        instants: of submission, admission and the end of encoding.
    """

    source_ids: tuple[int, ...]
    options: DecodingOptions
    search: BeamSearch
    deadline: float | None
    submitted: float
    future: Future[Result] = field(default_factory=Future)
    rows: list[int] = field(default_factory=list)
    admitted: float = 0.0
    encoded: float = 0.0

    @property
    def num_rows(self) -> int:
        """Rows to keep free for it: its beam may grow to that many."""
        return self.options.beam_size

    @property
    def num_cache_rows(self) -> int:
        """Rows that it takes of the self-attention cache, and slots of the cross-attention cache."""
        return self.num_rows + math.ceil(self.num_rows / SLOT_ROWS)

    @property
    def num_cached_positions(self) -> int:
        """Positions of the caches that it takes, with a translation as long as its source."""
        return self.num_cache_rows * len(self.source_ids)

    def is_over(self, now: float) -> bool:
        """Says whether nobody wants the answer any more: the caller has left, or the deadline has passed."""
        return self.future.cancelled() or (self.deadline is not None and now >= self.deadline)
