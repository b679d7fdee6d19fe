"""Predicts what sentences cost in work, steps and seconds, from the sentences that the engine has run.

The unit of work is the row-step: one row of a batch takes one step.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from server.averages import FadingMean
from server.decoding.options import DecodingOptions

_OUTLIER = 4.0  # a longer step counts as so many times its forecast: the process may have been stopped in it
_FIRST_STEP_SECONDS = 0.003  # of one row, before any step has been seen
_FIXED_ROWS = 20  # that cost as much as an empty step; an assumption, until steps have shown what is true
_FIXED_WEIGHT = 16.0  # of that assumption, in square rows; the variance of the observed rows weighs against it
_FIRST_STEPS_PER_TOKEN = 1.2
_FIRST_TOKENS_PER_CHARACTER = 0.3
_USUAL_TOKENS, _LONG_TOKENS = 32, 64  # of each sentence of a text that has not been split, and of its longest one


@dataclass(frozen=True, slots=True)
class Demand:
    """What the sentences of a request ask of an engine.

    Attributes:
        work: row-steps of all sentences.
        steps: of the longest sentence.
        rows: of the widest sentence.
    """

    work: float
    steps: float
    rows: int
    num_sentences: int = 1

    @classmethod
    def of(cls, steps: Sequence[float], rows: int) -> Self:
        """Returns what sentences of so many steps each, which all take this number of rows, ask."""
        return cls(sum(steps) * rows, max(steps, default=0.0), rows, len(steps))


class CostModel:
    """Predicts costs. Any thread may call it: a value that is read during an update is off by one observation."""

    def __init__(self, max_rows: int, num_lanes: int = 1) -> None:
        self._max_rows, self._num_lanes = max_rows, num_lanes
        self._rows, self._seconds = FadingMean(1.0), FadingMean(_FIRST_STEP_SECONDS)
        self._square_rows, self._rows_by_seconds = FadingMean(1.0), FadingMean(_FIRST_STEP_SECONDS)
        self._row_step_seconds = FadingMean(self.step_seconds(max_rows) / max_rows)
        self._steps_per_token = FadingMean(_FIRST_STEPS_PER_TOKEN)
        self._tokens_per_character = FadingMean(_FIRST_TOKENS_PER_CHARACTER)

    def observe_step(self, rows: int, seconds: float, full_seconds: float | None = None) -> None:
        """Notes what a step took.

        Args:
            rows: at least 1, with the beams that sentences will still grow.
            full_seconds: of the whole iteration, with its wait and with encoding, if sentences waited for which the
                lane had no room; else None.
        """
        most = _OUTLIER * self.step_seconds(rows)
        seconds = min(seconds, most)
        self._rows.add(rows)
        self._seconds.add(seconds)
        self._square_rows.add(rows * rows)
        self._rows_by_seconds.add(rows * seconds)
        guess = self.step_seconds(self._max_rows) / self._max_rows
        self._row_step_seconds.add(guess if full_seconds is None else min(full_seconds, most) / rows)

    @property
    def steps_per_token(self) -> float:
        """Steps that a sentence takes for each source token, on average."""
        return self._steps_per_token.value

    def observe_sentence(self, source_tokens: int, steps: int) -> None:
        """Notes how many steps a sentence took."""
        self._steps_per_token.add(steps / source_tokens)

    def observe_text(self, characters: int, source_tokens: int) -> None:
        """Notes how many source tokens a text had."""
        if characters:
            self._tokens_per_character.add(source_tokens / characters)

    @property
    def row_step_seconds(self) -> float:
        """Seconds of a lane for one row-step while other sentences wait, so that batches are as full as they may be."""
        return self._row_step_seconds.value

    def work_seconds(self, work: float) -> float:
        """Returns the seconds that all lanes together take for so many row-steps in full batches."""
        return work * self.row_step_seconds / self._num_lanes

    def alone_seconds(self, demand: Demand) -> float:
        """Returns the seconds until the answer of a request if nothing else runs or waits."""
        return self.work_seconds(demand.work) + demand.steps * self.step_seconds(demand.rows)

    def step_seconds(self, rows: float) -> float:
        """Returns the seconds of a step with this number of rows, by ridge regression over the last steps.

        The line goes through the mean of the steps. The more their rows differ, the nearer its slope is to the observed
        one, and else to the assumed one. It is never steeper than a line through the origin.
        """
        mean_rows, mean_seconds = self._rows.value, self._seconds.value
        variance = max(0.0, self._square_rows.value - mean_rows**2)
        covariance = self._rows_by_seconds.value - mean_rows * mean_seconds
        assumed = mean_seconds / (_FIXED_ROWS + mean_rows)
        slope = (covariance + _FIXED_WEIGHT * assumed) / (variance + _FIXED_WEIGHT)
        return mean_seconds + min(max(slope, 0.0), mean_seconds / mean_rows) * (rows - mean_rows)

    def steps(self, source_tokens: int, options: DecodingOptions) -> float:
        """Returns the steps that a sentence takes; its tokens include eos. The options are its own (`of_source`)."""
        if options.given_targets:
            return len(options.forced_prefix) + max(map(len, options.given_targets))
        least = 1.0 + max(options.min_output_tokens, len(options.target_prefix))
        steps = max(least, source_tokens * self.steps_per_token)
        return steps if options.max_output_tokens is None else min(steps, options.max_output_tokens)

    def demand(self, source_tokens: Iterable[int], options: DecodingOptions) -> Demand:
        """Returns what sentences with these numbers of tokens ask."""
        steps = [self.steps(tokens, options.of_source(tokens)) for tokens in source_tokens]
        return Demand.of(steps, options.num_rows)

    def demand_of_texts(self, lengths: Sequence[int], options: DecodingOptions) -> Demand:
        """Returns what texts of so many characters ask of an engine, before they are split."""
        tokens = [length * self._tokens_per_character.value for length in lengths]
        most_tokens = math.ceil(min(max(tokens, default=0.0), _LONG_TOKENS))
        longest = self.steps(most_tokens, options.of_source(most_tokens))
        work = sum(tokens) * self.steps_per_token * options.num_rows
        return Demand(work, longest, options.num_rows, sum(math.ceil(each / _USUAL_TOKENS) for each in tokens))
