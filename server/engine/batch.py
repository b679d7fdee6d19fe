"""The sentences of one kind that a lane steps together: `Batch.step` is one iteration of continuous batching."""

import logging
import math
from collections.abc import Callable
from concurrent.futures import InvalidStateError

import numpy as np
from numpy.typing import NDArray

from server.engine.cost import CostModel
from server.engine.limits import Footprint, LaneLimits
from server.engine.rows import Rows
from server.engine.scheduler import Scheduler
from server.engine.sentence import Sentence
from server.engine.waiting_queue import WaitingQueue
from server.errors import DeadlineExceeded, EngineFailed, Overloaded, TranslationError
from server.network import Decoder, Runner, StepKind
from server.telemetry.model_metrics import ModelMetrics

logger = logging.getLogger(__name__)

_OUTCOMES: dict[type[TranslationError], str] = {DeadlineExceeded: "deadline", Overloaded: "late"}  # of the metric


class Batch:
    """Runs sentences step by step; only its lane's thread changes them.

    Attributes:
        num_failures: encoder runs and steps that have failed one after another.
    """

    def __init__(
        self,
        kind: StepKind,
        runner: Runner,
        queue: WaitingQueue,
        cost: CostModel,
        limits: LaneLimits,
        metrics: ModelMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._runner = runner
        self._queue = queue
        self._cost = cost
        self._metrics = metrics
        self._clock = clock
        self._scheduler = Scheduler(kind, queue, cost, limits, clock)
        self._max_rows = limits.max_rows
        self._decoder: Decoder | None = None  # opened by the first step: whatever fails there, fails for its sentences
        self._rows = Rows(limits.max_rows)
        self._parents: dict[Sentence, list[int]] = {}  # of the last step: which beam each one extends
        self._longest = 0  # positions of the longest row of the last step
        self.num_failures = 0

    @property
    def is_busy(self) -> bool:
        """Whether there is anything for `step` to do."""
        return bool(self._scheduler.running) or self._queue.has_waiting(self._scheduler.kind)

    @property
    def footprint(self) -> Footprint:
        """What its sentences take."""
        return self._scheduler.footprint

    @property
    def num_rows(self) -> int:
        """Rows in use."""
        return self._scheduler.num_rows

    @property
    def cache_bytes(self) -> int:
        """Bytes of the cache's buffers."""
        return self._decoder.cache_bytes if self._decoder is not None else 0

    def step(self, others: Footprint) -> None:
        """Takes one step with whoever is there; `others` is what the lane's other batches take."""
        started = self._clock()
        try:
            admitted = self._schedule(others)
            self._decoder = self._decoder or self._runner.open_decoder(self._scheduler.kind, self._max_rows)
            self._rearrange(admitted, self._decoder)
            self._encode(admitted, self._decoder)
            if self._scheduler.running:
                self._answer(self._choose(*self._take_step(started, others, self._decoder)))
        except Exception as error:  # noqa: BLE001  # whatever it was, every sentence must be answered
            self._fail(error, self._scheduler.running)
            self._parents = {}

    def drop(self, error: TranslationError) -> None:
        """Answers all sentences with an error."""
        self._drop(self._scheduler.running, error)

    def _schedule(self, others: Footprint) -> list[Sentence]:
        """Lets go who is over, and returns who enters."""
        plan = self._scheduler.schedule(self._longest, others)
        self._metrics.count_sentences("cancelled", len(plan.cancelled))
        for sentence in plan.expired:
            self._observe_wait(sentence, math.inf)
            fail(sentence, DeadlineExceeded("the deadline passed before the translation was done"), self._metrics)
        for sentence in plan.late:
            self._observe_wait(sentence, math.inf)
            fail(sentence, Overloaded("the answer would have come after the deadline", "deadline"), self._metrics)
        now = self._clock()
        for sentence in plan.admitted:
            sentence.admitted = now
            self._metrics.queue_duration_seconds.observe(now - sentence.submitted)
        return plan.admitted

    def _rearrange(self, admitted: list[Sentence], decoder: Decoder) -> None:
        """Closes the gaps of those who left, lets beams grow, and makes room for who enters."""
        moves = self._scheduler.arrange(self._parents)
        self._rows.move(moves)
        for sentence in self._parents:
            if sentence.rows:
                self._rows.feed(sentence)
        self._parents = {}
        past, source = self._rows.longest(self._scheduler.num_rows)
        source = max([source, *(len(sentence.source_ids) for sentence in admitted)])
        self._longest = max(past, source)
        if self._scheduler.running:
            decoder.move(moves, past)
            decoder.reserve(self._scheduler.num_rows, past + 1, source)

    def _encode(self, admitted: list[Sentence], decoder: Decoder) -> None:
        """Encodes who enters, and gives each a row; a failure does not concern those who run already."""
        if not admitted:
            return
        lengths = np.array([len(sentence.source_ids) for sentence in admitted], np.int32)
        source_ids = np.zeros((len(admitted), lengths.max()), np.int64)  # what pads does not matter: lengths mask it
        for row, sentence in zip(source_ids, admitted, strict=True):
            row[: len(sentence.source_ids)] = sentence.source_ids
        try:
            encoded = self._runner.encode(source_ids, lengths)
        except Exception as error:  # noqa: BLE001  # as in step
            self._fail(error, admitted)
            return
        now = self._clock()
        self._metrics.encode_duration_seconds.observe(now - admitted[0].admitted)
        self._metrics.source_tokens_total.inc(int(lengths.sum()))
        self._metrics.padded_source_tokens_total.inc(source_ids.size)
        first_row = self._scheduler.place(admitted)
        self._rows.admit(admitted)
        decoder.admit(first_row, encoded, [sentence.source_ids for sentence in admitted])
        for sentence in admitted:
            sentence.encoded = now

    def _take_step(
        self, iteration_started: float, others: Footprint, decoder: Decoder
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Decodes one token for every row; returns what `Decoder.step` does."""
        started = self._clock()
        num_rows = self._scheduler.num_rows
        is_alone = self._queue.is_all((self.footprint + others).rows)
        top_ids, top_log_probs = decoder.step(self._rows.inputs(num_rows, is_alone=is_alone))
        self._rows.advance(top_ids[:, 0])
        now = self._clock()
        is_busy = self._queue.has_waiting(self._scheduler.kind)
        self._cost.observe_step(num_rows, now - started, now - iteration_started, is_busy=is_busy)
        self._metrics.step_duration_seconds.observe(now - started)
        self._metrics.batch_rows.observe(num_rows)
        return top_ids, top_log_probs

    def _choose(self, top_ids: NDArray[np.int64], top_log_probs: NDArray[np.float32]) -> list[Sentence]:
        """Lets each search take its tokens; returns the sentences that are done."""
        is_finite = np.isfinite(top_log_probs)
        all_finite = is_finite.all()
        best_ids, best_log_probs = top_ids[:, 0].tolist(), top_log_probs[:, 0].tolist()
        finished: list[Sentence] = []
        broken: list[Sentence] = []
        for sentence in self._scheduler.running:
            rows = sentence.rows
            if not all_finite and not is_finite[rows].all():
                broken.append(sentence)
            elif sentence.search.is_greedy:
                if not sentence.search.advance_greedily(best_ids[rows[0]], best_log_probs[rows[0]]):
                    finished.append(sentence)
            elif parents := sentence.search.advance(top_ids[rows].tolist(), top_log_probs[rows].tolist()):
                self._parents[sentence] = parents
            else:
                finished.append(sentence)
        if broken:
            self._fail(FloatingPointError("log-probabilities that are not finite"), broken)
        else:
            self.num_failures = 0
        return finished

    def _answer(self, finished: list[Sentence]) -> None:
        now = self._clock()
        for sentence in finished:
            self._cost.observe_sentence(len(sentence.source_ids), sentence.search.num_tokens)
            self._observe_wait(sentence, now - sentence.submitted)
            self._metrics.generated_tokens_total.inc(sentence.search.num_tokens)
            try:
                sentence.future.set_result(sentence.result(now))
                self._metrics.count_sentences("ok")
            except InvalidStateError:  # the caller left during this step
                self._metrics.count_sentences("cancelled")
        self._scheduler.remove(finished)

    def _observe_wait(self, sentence: Sentence, seconds: float) -> None:
        if sentence.forecast:
            self._cost.observe_answer(is_late=seconds > sentence.forecast)

    def _fail(self, error: Exception, sentences: list[Sentence]) -> None:
        """Answers sentences whose encoder run or step failed; the error is about tensors, so its words are no user's.

        What may be tried again instead is the call of the runner or decoder itself: by then rows have moved, and
        searches have taken some of their tokens.
        """
        self.num_failures += 1
        self._metrics.engine_failures_total.inc()
        facts = {"sentences": len(sentences), "error": str(error)}
        logger.error(
            "an encoder run or a step failed; each sentence is answered with an error",
            exc_info=error,
            extra={"facts": facts},
        )
        self._drop(sentences, EngineFailed("translation failed"))

    def _drop(self, sentences: list[Sentence], error: TranslationError) -> None:
        self._scheduler.remove(sentences)
        for sentence in sentences:
            fail(sentence, error, self._metrics)


def fail(sentence: Sentence, error: TranslationError, metrics: ModelMetrics) -> None:
    """Answers a sentence with an error, unless its caller has left."""
    outcome = _OUTCOMES.get(type(error), "error")
    try:
        sentence.future.set_exception(error)
    except InvalidStateError:  # the caller left already
        outcome = "cancelled"
    metrics.count_sentences(outcome)
