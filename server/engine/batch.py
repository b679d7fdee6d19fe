"""The sentences of one kind that a lane steps together: `Batch.step` is one iteration of continuous batching."""

import logging
import math
from collections.abc import Callable
from concurrent.futures import InvalidStateError

import numpy as np
from numpy.typing import NDArray

from server.engine.cost import CostModel
from server.engine.failing import answer_to, fail
from server.engine.limits import Footprint, LaneLimits
from server.engine.rows import Rows
from server.engine.scheduler import Scheduler
from server.engine.sentence import Sentence
from server.engine.waiting_queue import WaitingQueue
from server.errors import DeadlineExceeded, Overloaded, TranslationError
from server.network import Decoder, DeviceLost, OutOfMemory, Runner, StepKind
from server.telemetry.log import describe
from server.telemetry.model_metrics import ModelMetrics

logger = logging.getLogger(__name__)


class Batch:
    """Runs sentences step by step; only its lane's thread changes them.

    Attributes:
        kind: of its steps.
        is_used: whether it has ever tried to take a step.
        num_faults: encoder runs and steps that have failed.
        has_lost_device: whether one failed with `DeviceLost`.
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
        *,
        is_background: bool = False,
    ) -> None:
        self.kind = kind
        self._runner = runner
        self._queue = queue
        self._cost = cost
        self._metrics = metrics
        self._clock = clock
        self._scheduler = Scheduler(kind, queue, cost, limits, clock, is_background=is_background)
        self._max_rows = limits.max_rows
        self._decoder: Decoder | None = None  # opened by the first step: whatever fails there, fails for its sentences
        self._rows = Rows(limits.max_rows)
        self._parents: dict[Sentence, list[int]] = {}  # of the last step: which beam each one extends
        self._is_short_of_room = False
        self._longest = 0  # positions of the longest row of the last step
        self.is_used = False
        self.num_faults = 0
        self.has_lost_device = False

    @property
    def sentences(self) -> list[Sentence]:
        """Those that run."""
        return self._scheduler.running

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

    def step(self, others: Footprint, probes: list[Sentence] | None = None, waited: float = 0.0) -> None:
        """Takes one step with whoever is there.

        Args:
            others: what the lane's other batches take.
            probes: sentences that enter instead of those that wait; None lets these enter.
            waited: seconds for the lane's turn, which belong to what the step costs.
        """
        started = self._clock() - waited
        self.is_used = True
        try:
            admitted = self._schedule(others, probes)
            self._decoder = self._decoder or self._runner.open_decoder(self.kind, self._max_rows)
            self._rearrange(admitted, self._decoder)
            self._encode(admitted, self._decoder)
            if self._scheduler.running:
                stepped = self._take_step(started, others, self._decoder)
                self._answer(self._choose(*stepped) if stepped else [])
        except Exception as error:  # noqa: BLE001  # whatever it was, every sentence must be answered
            self._parents = {}
            for probe in probes or ():
                if probe not in self._scheduler.running:  # `schedule` failed before it had entered
                    fail(probe, answer_to(error), self._metrics)
            self._fail(error, self._scheduler.running)

    def rest(self) -> None:
        """Gives back the caches, of a batch without sentences."""
        self._decoder = None

    def drop(self, error: TranslationError) -> None:
        """Answers all sentences with an error."""
        self._drop(self._scheduler.running, error)

    def _schedule(self, others: Footprint, probes: list[Sentence] | None) -> list[Sentence]:
        """Lets go who is over, and returns who enters."""
        plan = self._scheduler.schedule(self._longest, others, probes)
        self._is_short_of_room = self._queue.is_short_of_room((self.footprint + others).rows)
        self._metrics.count_sentences("cancelled", len(plan.cancelled))
        self._metrics.count_wasted("cancelled", sum(sentence.search.num_tokens for sentence in plan.cancelled))
        now = self._clock()
        for sentence in plan.cancelled:
            if sentence.outlook and now - sentence.submitted > sentence.outlook.seconds:  # else nothing is known
                self._observe_wait(sentence, math.inf)
        for sentence in plan.expired:
            self._observe_wait(sentence, math.inf)
            fail(sentence, DeadlineExceeded("the deadline passed before the translation was done"), self._metrics)
        for sentence in plan.late:
            self._observe_wait(sentence, math.inf)
            fail(sentence, Overloaded("the answer would have come after the deadline", "deadline"), self._metrics)
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
        """Encodes who enters, and gives each a row; a failure does not concern those who run already.

        Without memory for all of them at once, each half is encoded by itself.
        """
        if not admitted:
            return
        lengths = np.array([len(sentence.source_ids) for sentence in admitted], np.int32)
        source_ids = np.zeros((len(admitted), lengths.max()), np.int64)  # what pads does not matter: lengths mask it
        for row, sentence in zip(source_ids, admitted, strict=True):
            row[: len(sentence.source_ids)] = sentence.source_ids
        try:
            encoded = self._runner.encode(source_ids, lengths)
        except Exception as error:  # noqa: BLE001  # as in step
            half = len(admitted) // 2
            if isinstance(error, OutOfMemory) and half:
                self._note_fault(error, 0)
                self._encode(admitted[:half], decoder)
                self._encode(admitted[half:], decoder)
            else:
                self._fail(error, admitted)
            return
        now = self._clock()
        self._metrics.encode_duration_seconds.observe(now - admitted[0].admitted)
        self._metrics.source_tokens_total.inc(int(lengths.sum()))
        self._metrics.padded_source_tokens_total.inc(source_ids.size)
        decoder.admit(self._scheduler.place(admitted), encoded, [sentence.source_ids for sentence in admitted])
        self._rows.admit(admitted)
        for sentence in admitted:
            sentence.encoded = now

    def _take_step(
        self, iteration_started: float, others: Footprint, decoder: Decoder
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """Decodes one token for every row; returns what `Decoder.step` does.

        Without memory for it, the newer half of the sentences leaves; the others take the same step again in the next
        iteration, as neither they nor what is fed to them has moved on. Then it returns None.
        """
        started = self._clock()
        num_rows = self._scheduler.num_rows
        is_alone = self._queue.is_all((self.footprint + others).rows)
        try:
            top_ids, top_log_probs = decoder.step(self._rows.inputs(num_rows, is_alone=is_alone))
        except OutOfMemory as error:
            running = self._scheduler.running
            self._fail(error, running[len(running) // 2 :])
            return None
        self._rows.advance(top_ids[:, 0])
        now = self._clock()
        busy_rows = self.footprint.rows if self._is_short_of_room else 0
        self._cost.observe_step(num_rows, now - iteration_started, busy_rows=busy_rows)
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
        return finished

    def _answer(self, finished: list[Sentence]) -> None:
        now = self._clock()
        for sentence in finished:
            self._cost.observe_sentence(len(sentence.source_ids), sentence.search.num_tokens)
            self._observe_wait(sentence, now - sentence.submitted)
            try:
                sentence.future.set_result(sentence.result(now))
                self._metrics.count_sentences("ok")
                self._metrics.generated_tokens_total.inc(sentence.search.num_tokens)
            except InvalidStateError:  # the caller left during this step
                self._metrics.count_sentences("cancelled")
                self._metrics.count_wasted("cancelled", sentence.search.num_tokens)
        self._scheduler.remove(finished)

    def _observe_wait(self, sentence: Sentence, seconds: float) -> None:
        outlook = sentence.outlook
        if outlook and outlook.note_end(seconds):
            self._cost.observe_answer(sentence.flow.name, is_late=seconds > outlook.seconds)
            if math.isfinite(seconds):
                self._metrics.observe_queue_wait(outlook.seconds, seconds)

    def _fail(self, error: Exception, sentences: list[Sentence]) -> None:
        """Answers sentences whose encoder run or step failed; the error is about tensors, so its words are no user's.

        What may be tried again instead is the call of the runner or decoder itself: by then rows have moved, and
        searches have taken some of their tokens.
        """
        self._note_fault(error, len(sentences))
        self._drop(sentences, answer_to(error))

    def _note_fault(self, error: Exception, num_sentences: int) -> None:
        """Counts and logs a fault for which so many sentences are answered with an error."""
        self.num_faults += 1
        self.has_lost_device |= isinstance(error, DeviceLost)
        self._metrics.engine_failures_total.inc()
        if isinstance(error, OutOfMemory):
            self._metrics.count_refusal("memory")
        facts = {"sentences": num_sentences, "error": describe(error)}
        logger.error("an encoder run or a step failed", exc_info=error, extra={"facts": facts})

    def _drop(self, sentences: list[Sentence], error: TranslationError) -> None:
        try:
            self._scheduler.remove(sentences)
        finally:  # even if the scheduler is what is broken
            for sentence in sentences:
                fail(sentence, error, self._metrics)
