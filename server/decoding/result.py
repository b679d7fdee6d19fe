"""What comes out of a search."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


class FinishReason(enum.Enum):
    """Why a translation ended."""

    STOP = "stop"  # the model ended the sentence
    LENGTH = "length"  # the limit on output tokens did
    REPETITION = "repetition"  # it repeated itself, and the repeats are cut off
    COPIED = "copied"  # there was nothing to translate: no search was made

    @classmethod
    def of_all(cls, reasons: Iterable["FinishReason"]) -> "FinishReason":
        """Returns the worst of several; COPIED if there are some and all are."""
        reasons = set(reasons)
        for worst in (cls.LENGTH, cls.REPETITION):
            if worst in reasons:
                return worst
        return cls.COPIED if reasons == {cls.COPIED} else cls.STOP


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One translation.

    Attributes:
        ids: without bos and eos.
        score: log-probability / length^length_penalty; 0 without scores.
        log_probs: of each id, and last of eos if the translation ended with it; empty unless asked for.
    """

    ids: tuple[int, ...]
    score: float
    finish_reason: FinishReason
    log_probs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchNode:
    """A token of a beam that a search has kept.

    Attributes:
        parent: number of the node of the token before; None for a first one.
        token: its id; eos where a hypothesis ends with it.
        log_prob: of the beam up to it, in nats.
        score: of the hypothesis that ends with it; None if none does.
        finish_reason: of that hypothesis.
        is_chosen: whether the best hypothesis has it.
    """

    parent: int | None
    token: int
    log_prob: float
    score: float | None = None
    finish_reason: FinishReason | None = None
    is_chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Where the time of a sentence went, in seconds."""

    queue_seconds: float = 0.0
    encode_seconds: float = 0.0
    decode_seconds: float = 0.0

    @classmethod
    def longest(cls, timings: Iterable["Timings"]) -> "Timings":
        """Returns the largest of each."""
        each = list(timings)
        return cls(
            queue_seconds=max((t.queue_seconds for t in each), default=0.0),
            encode_seconds=max((t.encode_seconds for t in each), default=0.0),
            decode_seconds=max((t.decode_seconds for t in each), default=0.0),
        )

    def followed_by(self, later: Iterable["Timings"]) -> "Timings":
        """Returns the sums with the longest times of what came afterwards, all of it at the same time."""
        longest = Timings.longest(later)
        return Timings(
            queue_seconds=self.queue_seconds + longest.queue_seconds,
            encode_seconds=self.encode_seconds + longest.encode_seconds,
            decode_seconds=self.decode_seconds + longest.decode_seconds,
        )


@dataclass(frozen=True, slots=True)
class Result:
    """What an engine answers.

    Attributes:
        hypotheses: the `num_hypotheses` best translations of the sentence, best first.
        timings: where its time went.
        attention: [T, S], of each id of the best hypothesis a distribution over the source ids; None unless asked for.
            The last id has none if it is at the limit on output tokens.
        tree: what the search has kept, each node behind its parent; empty unless asked for.
        is_long: whether it was of its tenant's flow of long requests, or of bulk calls.
    """

    hypotheses: tuple[Hypothesis, ...]
    timings: Timings = field(default_factory=Timings)
    attention: NDArray[np.float32] | None = field(default=None, compare=False)
    tree: tuple[SearchNode, ...] = ()
    is_long: bool = field(default=False, compare=False)
