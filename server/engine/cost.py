"""What sentences cost, learned from those that the engine has run: predicted work, steps and seconds.

Work is counted in row-steps: one row of a batch that takes one step. A lane's rate in row-steps is measured while
sentences wait, so that it holds whatever else takes the lane's time. Before there are a few such measurements, the rate
is that of a full batch by the curve of step times.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from server.decoding.options import DecodingOptions

_MEMORY = 64  # observations that a mean looks back on
_OUTLIER = 4.0
_NEW_OUTLIER = 8.0  # of the first step of a size, against what the others say: real ones were up to 4 times as much
_STALE_STEPS = 200  # without anybody waiting, after which the rate that was measured while somebody did is forgotten
_LEAST_BUSY_STEPS = 8  # measured while sentences wait, before that rate is taken: a lane's first ones are not full yet
_FIRST_STEP_SECONDS = 0.003  # of one row, before any has been seen
_LEAST_SECONDS = 1e-7  # of a row-step
_FEW_ROWS = 8  # steps of fewer, as of the first sentence, say nothing of how time grows with rows
_FIRST_ROWS = 20  # that are taken to cost as much as what a step costs without any, before wider ones have been seen
_FIRST_STEPS_PER_TOKEN = 1.2
_FIRST_TOKENS_PER_CHARACTER = 0.3
_USUAL_TOKENS = 32  # of a sentence that has not been split off yet
_MOST_TEXT_BITS = 24  # binary length of the most characters that are told apart
_CAUTION = (1.0, 3.0)
_LATE_SHARE = 0.01  # of answers, that may come later than forecast
_CAUTION_STEP = 0.15


class _Mean:
    """An exponentially forgetting mean: of the first observations a plain one.

    An outlier, such as a step during which the process was stopped, counts as `_OUTLIER` times the mean: it moves that
    by a twentieth. What lasts is learned all the same, tenfold in 50 observations.
    """

    def __init__(self, value: float) -> None:
        self.value = value
        self.count = 0

    def add(self, value: float) -> None:
        if self.count and self.value:
            value = min(value, _OUTLIER * self.value)
        self.count = min(self.count + 1, _MEMORY)
        self.value += (value - self.value) / self.count


@dataclass(frozen=True, slots=True)
class Demand:
    """What sentences ask of an engine.

    Attributes:
        work: row-steps of all of them.
        steps: of the longest one.
        rows: of the widest one.
        num_sentences: how many they are.
    """

    work: float
    steps: float
    rows: int
    num_sentences: int = 1


class CostModel:
    """Predicts costs. May be told and asked by any thread: a torn reading is off by one observation.

    Args:
        max_rows: of a lane's batch.
    """

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        sizes = max_rows.bit_length() + 1
        self._rows = [_Mean(0.0) for _ in range(sizes)]  # mean rows and seconds of steps, by the rows' binary length
        self._seconds = [_Mean(0.0) for _ in range(sizes)]
        self._curve: list[tuple[float, float]] = []  # the same means; empty when they have changed
        self._busy_seconds, self._busy_rows = _Mean(0.0), _Mean(0.0)  # of a lane's iterations
        self._calm_steps = 0
        self._steps_per_token = _Mean(_FIRST_STEPS_PER_TOKEN)
        self._tokens_per_character = _Mean(_FIRST_TOKENS_PER_CHARACTER)
        self._longest = [_Mean(0.0) for _ in range(_MOST_TEXT_BITS + 1)]  # tokens, by the binary length of characters
        self._cautions: dict[str, float] = {}  # by flows, of which there are few

    def observe_step(self, rows: int, seconds: float, *, busy_rows: int) -> None:
        """Notes a step.

        Args:
            rows: that it had, at least 1.
            seconds: that it took with all that belongs to it, such as encoding who entered.
            busy_rows: of all that the lane runs, beams that they do not have yet included, if sentences waited that had
                no room; else 0.
        """
        size = min(rows.bit_length(), len(self._rows) - 1)
        if not self._seconds[size].count and any(mean.count for mean in self._seconds):
            seconds = min(seconds, _NEW_OUTLIER * self.step_seconds(rows))
        self._rows[size].add(rows)
        self._seconds[size].add(seconds)
        self._curve = []
        self._calm_steps = 0 if busy_rows else self._calm_steps + 1
        if busy_rows:
            self._busy_seconds.add(min(seconds, _OUTLIER * self.step_seconds(rows)))
            self._busy_rows.add(busy_rows)
        elif self._calm_steps == _STALE_STEPS:
            self._busy_seconds, self._busy_rows = _Mean(0.0), _Mean(0.0)

    def observe_sentence(self, source_tokens: int, steps: int) -> None:
        """Notes how many steps a sentence took."""
        self._steps_per_token.add(steps / source_tokens)

    def observe_text(self, characters: int, sentence_tokens: Sequence[int]) -> None:
        """Notes how many source tokens the sentences of a text had."""
        if characters:
            self._tokens_per_character.add(sum(sentence_tokens) / characters)
            self._longest_of(characters).add(max(sentence_tokens, default=0))

    def observe_answer(self, flow: str, *, is_late: bool) -> None:
        """Notes whether a flow's request that others left little room took longer than was forecast with caution.

        The caution follows the quantile of the ratio of both that `_LATE_SHARE` of answers exceed (Robbins and Monro,
        1951). As it divides the work that may wait, it is a limit on concurrency that adapts to latency: the gradient
        of Netflix's concurrency-limits, with that quantile in place of the least latency seen.
        """
        step = _CAUTION_STEP * (1 - _LATE_SHARE if is_late else -_LATE_SHARE)
        self._cautions[flow] = min(max(self.caution(flow) * math.exp(step), _CAUTION[0]), _CAUTION[1])

    def caution(self, flow: str) -> float:
        """Returns by how much forecasts of a flow's waits are stretched, 1 to 3; that of a flood is no other's."""
        return self._cautions.get(flow, _CAUTION[0])

    def prices(self, flow: str, *, is_modest: bool) -> tuple[float, float]:
        """Returns the caution of a flow's forecasts, and the seconds of a lane for one row-step.

        A modest one does not pay for what others ask: neither for what they have been told, nor for those who wait
        while there is room, as they are held to their shares.
        """
        return (1.0, self.least_row_step_seconds) if is_modest else (self.caution(flow), self.row_step_seconds)

    @property
    def row_step_seconds(self) -> float:
        """Seconds of a lane for one row-step when sentences wait."""
        seconds, rows = self._busy_seconds, self._busy_rows
        if rows.count >= _LEAST_BUSY_STEPS:
            return max(seconds.value / rows.value, _LEAST_SECONDS)
        return self.least_row_step_seconds

    @property
    def least_row_step_seconds(self) -> float:
        """Seconds of a lane for one row-step of a full batch, by the curve of step times."""
        return max(self.step_seconds(self._max_rows) / self._max_rows, _LEAST_SECONDS)

    def step_seconds(self, rows: float) -> float:
        """Seconds of a step with so many rows: on the line through the means of the two nearest sizes seen.

        The line through steps of few rows leads anywhere, as the first of them pay for all that is done once. Beyond
        these it is the line through the widest of them on which `_FIRST_ROWS` cost as much as none.
        """
        curve = self._curve or self._draw_curve()
        widest, seconds = curve[-1]
        guess = seconds * (_FIRST_ROWS + rows) / (_FIRST_ROWS + widest)
        if len(curve) == 1:
            return guess
        on_line = min(rows, widest) if widest < _FEW_ROWS else rows
        upper = 1
        while upper < len(curve) - 1 and curve[upper][0] < on_line:
            upper += 1
        (low, low_seconds), (high, high_seconds) = curve[upper - 1], curve[upper]
        slope = max(0.0, (high_seconds - low_seconds) / (high - low))
        line = max(low_seconds + slope * (on_line - low), curve[0][1] / 2)
        return line if on_line == rows else max(line, guess)

    def _draw_curve(self) -> list[tuple[float, float]]:
        seen = [(r.value, s.value) for r, s in zip(self._rows, self._seconds, strict=True) if r.count]
        self._curve = seen or [(1.0, _FIRST_STEP_SECONDS)]
        return self._curve

    def is_within(self, rows: int, seconds: float) -> bool:
        """Whether a step with so many rows takes no longer than so many seconds; infinite ones are for ever."""
        return seconds == math.inf or self.step_seconds(rows) <= seconds

    def steps(self, source_tokens: int, options: DecodingOptions) -> float:
        """Steps that a sentence takes, eos included in its tokens."""
        steps = max(1.0, source_tokens * self._steps_per_token.value)
        return steps if options.max_output_tokens is None else min(steps, options.max_output_tokens)

    def demand(self, source_tokens: Iterable[int], options: DecodingOptions) -> Demand:
        """Returns what sentences of so many tokens ask."""
        steps = [self.steps(tokens, options) for tokens in source_tokens]
        return Demand(sum(steps) * options.beam_size, max(steps, default=0.0), options.beam_size, len(steps))

    def demand_of_text(self, characters: int, options: DecodingOptions) -> Demand:
        """Returns what a text asks that has not been split into sentences yet."""
        tokens = characters * self._tokens_per_character.value
        seen = self._longest_of(characters)
        longest = self.steps(math.ceil(seen.value if seen.count else min(tokens, _USUAL_TOKENS)), options)
        work = tokens * self._steps_per_token.value * options.beam_size
        return Demand(work, longest, options.beam_size, math.ceil(tokens / _USUAL_TOKENS))

    def _longest_of(self, characters: int) -> _Mean:
        return self._longest[min(characters.bit_length(), _MOST_TEXT_BITS)]

    def seconds(self, demand: Demand) -> float:
        """Seconds of one lane that a demand takes, shared with others."""
        return demand.work * self.row_step_seconds
