"""One sentence in flight: what was asked, what came out, and where it stands."""

from concurrent.futures import Future
from dataclasses import dataclass, field

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import Result, Timings
from server.engine.flow import ANYONE, Flow
from server.engine.limits import Footprint
from server.network import StepKind


@dataclass(slots=True, kw_only=True, eq=False)
class Sentence:
    """A sentence from `submit` to its answer. Only the thread that runs it changes it.

    Attributes:
        source_ids: eos included.
        deadline: instant of the engine's clock after which the answer is worthless; None for never.
        submitted, admitted, encoded: instants; 0 until then.
        flow: that its request belongs to.
        steps: that it is expected to take.
        forecast_seconds: from `submitted` to its request's answer, if that had to wait for others; else None.
        rows: row of the batch that holds each live beam, best beam first; empty while waiting.
        footprint: what it takes of a batch, beams that it does not have yet included.
    """

    source_ids: tuple[int, ...]
    options: DecodingOptions
    search: BeamSearch
    deadline: float | None
    submitted: float
    flow: Flow = ANYONE
    future: Future[Result] = field(default_factory=Future)
    rows: list[int] = field(default_factory=list)
    admitted: float = 0.0
    encoded: float = 0.0
    steps: float = 1.0
    forecast_seconds: float | None = None
    footprint: Footprint = field(init=False)

    def __post_init__(self) -> None:
        self.footprint = Footprint.of(self.options.beam_size, len(self.source_ids))

    @property
    def kind(self) -> StepKind:
        """Which steps it takes."""
        return StepKind.SHORTLIST if self.options.use_shortlist else StepKind.PLAIN

    @property
    def work(self) -> float:
        """Row-steps that it is expected to take."""
        return self.steps * self.options.beam_size

    def is_over(self, now: float) -> bool:
        """Says whether nobody wants the answer any more: the caller has left, or the deadline has passed."""
        return self.future.cancelled() or (self.deadline is not None and now >= self.deadline)

    def result(self, now: float) -> Result:
        """Returns its answer, once the search is over."""
        timings = Timings(
            queue_seconds=self.admitted - self.submitted,
            encode_seconds=self.encoded - self.admitted,
            decode_seconds=now - self.encoded,
        )
        return Result(tuple(self.search.best()), timings)
