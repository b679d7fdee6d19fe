"""One sentence while the engine has it: the source, the search, and when what has happened to it."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions
from server.decoding.recorded_search import RecordedSearch
from server.decoding.result import Result, Timings
from server.engine.flow import ANYONE, Flow
from server.engine.limits import Footprint
from server.network import StepKind


@dataclass(slots=True, eq=False)
class Sentence:
    """A sentence from `Engine.submit` to its answer. Only the thread that runs it changes it.

    Attributes:
        source_ids: with eos.
        deadline: instant of the engine's clock; infinite for never.
        submitted, admitted, encoded: instants; 0 until then.
        steps: forecast.
        forecast_seconds: from `submitted` to the answer of its request; None if the engine was idle.
        source: what the decoder has kept of it when it was finished, for `Decoder.align`.
        attention: of the finished translation, [T, S]; None unless the options ask for it.
        rows: of the batch, for each live beam, best beam first; empty while the sentence waits.
        footprint: with all of its beams.
        needs_log_probs: whether its steps need log-probabilities, and not logits alone.
    """

    source_ids: tuple[int, ...]
    options: DecodingOptions
    search: BeamSearch
    deadline: float
    submitted: float
    flow: Flow = ANYONE
    future: Future[Result] = field(default_factory=Future)
    rows: list[int] = field(default_factory=list)
    admitted: float = 0.0
    encoded: float = 0.0
    steps: float = 1.0
    forecast_seconds: float | None = None
    source: Any = None
    attention: NDArray[np.float32] | None = None
    footprint: Footprint = field(init=False)
    needs_log_probs: bool = field(init=False)

    def __post_init__(self) -> None:
        self.needs_log_probs = self.options.needs_log_probs or self.options.uses_log_probs
        self.footprint = Footprint.of(self.options.num_rows, len(self.source_ids))

    @property
    def kind(self) -> StepKind:
        """The kind of steps that it takes."""
        return StepKind.SHORTLIST if self.options.use_shortlist else StepKind.PLAIN

    @property
    def work(self) -> float:
        """Forecast of its row-steps."""
        return self.steps * self.options.num_rows

    @property
    def has_own_length(self) -> bool:
        """Whether the network has decided how long the translation is, so that it says something of other sentences.

        It has not if tokens are given or drawn, if an option asks for many, or if the search has come to an option's
        limit.
        """
        options = self.options
        if options.given_targets or options.target_prefix or options.sampling is not None:
            return False
        has_room = options.max_output_tokens is None or self.search.num_tokens < self.search.max_tokens
        return has_room and options.min_output_tokens <= len(self.source_ids)

    def is_over(self, now: float) -> bool:
        """Returns whether the caller has left or the deadline has passed."""
        return self.future.cancelled() or now >= self.deadline

    def result(self, now: float) -> Result:
        """Returns its answer; the search must be over."""
        timings = Timings(
            queue_seconds=self.admitted - self.submitted,
            encode_seconds=self.encoded - self.admitted,
            decode_seconds=now - self.encoded,
        )
        tree = self.search.tree() if isinstance(self.search, RecordedSearch) else ()
        return Result(tuple(self.search.best()), timings, self.attention, tree, self.flow.is_long)
