"""One thread with a batch of its own: `Lane.step` is one iteration of continuous batching."""

import logging
from collections.abc import Callable
from concurrent.futures import InvalidStateError

import numpy as np

from server.decoding.beam_search import FinishedBeam
from server.engine.rows import Rows
from server.engine.scheduler import Scheduler
from server.engine.sequence import DecodingOptions, FinishReason, Hypothesis, Result, Sequence
from server.engine.waiting_queue import WaitingQueue
from server.errors import DeadlineExceeded, EngineFailed, NotServing, TranslationError
from server.network import Decoder
from server.runtime.runner import Runner
from server.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

MAX_FAILURES = 3  # steps that fail one after another before a lane calls itself dead
MAX_STEP_SECONDS = 30.0  # a step that takes longer hangs


class Lane:
    """Runs the sentences of its batch, step by step; only its own thread changes them."""

    def __init__(
        self,
        runner: Runner,
        scheduler: Scheduler,
        decoder: Decoder,
        max_rows: int,
        queue: WaitingQueue,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._runner = runner
        self._scheduler = scheduler
        self._decoder = decoder
        self._rows = Rows(max_rows)
        self._queue = queue
        self._metrics = metrics
        self._clock = clock
        self._parents: dict[Sequence, list[int]] = {}  # of the last step: which beam each one extends
        self._longest = 0  # positions of the longest row of the last step
        self._failures = 0
        self._step_started: float | None = None

    @property
    def num_rows(self) -> int:
        """Rows in use."""
        return self._scheduler.num_rows

    @property
    def cache_bytes(self) -> int:
        """Bytes of the cache's buffers."""
        return self._decoder.cache_bytes

    def is_alive(self) -> bool:
        """Says whether the last steps succeeded and none hangs."""
        started = self._step_started
        hangs = started is not None and self._clock() - started > MAX_STEP_SECONDS
        return not hangs and self._failures < MAX_FAILURES

    def run(self) -> None:
        """Steps while there is work, sleeps while there is none, until the queue is closed."""
        while self._queue.wait():
            self.step()
            while self._scheduler.running and self._queue.is_open:
                self.step()
        self._drop(self._scheduler.running, NotServing("the server has shut down"))

    def step(self) -> None:
        """Schedule, encode who enters, decode one token for every row, answer who is done."""
        self._step_started = self._clock()
        try:
            admitted = self._schedule()
            if admitted:
                self._encode(admitted)
            if self._scheduler.running:
                self._decode()
        except Exception as error:  # noqa: BLE001  # whatever it was, every sentence must be answered
            self._note_failure(error, self._scheduler.running)
            self._parents = {}
        finally:
            self._step_started = None
            self._metrics.engine_last_step_timestamp_seconds.set_to_current_time()

    def _schedule(self) -> list[Sequence]:
        plan = self._scheduler.schedule(self._longest)
        self._metrics.sentences_total.labels(outcome="cancelled").inc(len(plan.cancelled))
        for sequence in plan.expired:
            fail(sequence, DeadlineExceeded("the deadline passed before the translation was done"), self._metrics)
        moves = self._scheduler.arrange(self._parents)
        self._rows.move(moves)
        for sequence in self._parents:
            if sequence.rows:
                self._rows.feed(sequence)
        self._parents = {}
        past, source = self._rows.longest(self._scheduler.num_rows)
        source = max([source, *(len(sequence.source_ids) for sequence in plan.admitted)])
        self._longest = max(past, source)
        if self._scheduler.running:
            self._decoder.move(moves, past)
            self._decoder.reserve(self._scheduler.num_rows, past + 1, source)
        now = self._clock()
        for sequence in plan.admitted:
            sequence.admitted = now
            self._metrics.queue_duration_seconds.observe(now - sequence.submitted)
        return plan.admitted

    def _encode(self, admitted: list[Sequence]) -> None:
        lengths = np.array([len(sequence.source_ids) for sequence in admitted], np.int32)
        source_ids = np.zeros((len(admitted), lengths.max()), np.int64)  # what pads does not matter: lengths mask it
        for row, sequence in zip(source_ids, admitted, strict=True):
            row[: len(sequence.source_ids)] = sequence.source_ids
        try:
            encoded = self._runner.encode(source_ids, lengths)
        except Exception as error:  # noqa: BLE001  # as in step; the running rows are not concerned
            self._note_failure(error, admitted)
            return
        now = self._clock()
        self._metrics.encode_duration_seconds.observe(now - admitted[0].admitted)
        self._metrics.source_tokens_total.inc(int(lengths.sum()))
        self._metrics.padded_source_tokens_total.inc(source_ids.size)
        self._scheduler.place(admitted)
        self._rows.admit(admitted)
        self._decoder.admit([sequence.rows[0] for sequence in admitted], encoded, lengths)
        for sequence in admitted:
            sequence.encoded = now
        if admitted[0].options.use_shortlist:  # as all of a batch do, or none
            self._decoder.admit_candidates(admitted[0].rows[0], [sequence.source_ids for sequence in admitted])

    def _decode(self) -> None:
        started = self._clock()
        running = self._scheduler.running
        num_rows = self._scheduler.num_rows
        use_shortlist, is_alone = running[0].options.use_shortlist, self._scheduler.is_alone
        top_ids, top_log_probs = self._decoder.step(
            self._rows.inputs(num_rows, use_shortlist=use_shortlist, is_alone=is_alone)
        )
        self._rows.advance(top_ids[:, 0])
        self._metrics.step_duration_seconds.observe(self._clock() - started)
        self._metrics.batch_rows.observe(num_rows)
        is_finite = np.isfinite(top_log_probs)
        all_finite = is_finite.all()
        best_ids, best_log_probs = top_ids[:, 0].tolist(), top_log_probs[:, 0].tolist()
        finished: list[Sequence] = []
        broken: list[Sequence] = []
        for sequence in running:
            rows = sequence.rows
            if not all_finite and not is_finite[rows].all():
                broken.append(sequence)
            elif sequence.search.is_greedy:
                if not sequence.search.advance_greedily(best_ids[rows[0]], best_log_probs[rows[0]]):
                    finished.append(sequence)
            elif parents := sequence.search.advance(top_ids[rows].tolist(), top_log_probs[rows].tolist()):
                self._parents[sequence] = parents
            else:
                finished.append(sequence)
        for sequence in finished:
            self._answer(sequence)
        self._scheduler.remove(finished)
        if broken:
            self._note_failure(FloatingPointError("log-probabilities that are not finite"), broken)
        else:
            self._failures = 0

    def _answer(self, sequence: Sequence) -> None:
        now = self._clock()
        result = Result(
            hypotheses=tuple(
                _hypothesis(beam, sequence.options) for beam in sequence.search.best(sequence.options.num_hypotheses)
            ),
            queue_seconds=sequence.admitted - sequence.submitted,
            encode_seconds=sequence.encoded - sequence.admitted,
            decode_seconds=now - sequence.encoded,
        )
        self._metrics.generated_tokens_total.inc(sequence.search.num_tokens)
        try:
            sequence.future.set_result(result)
            self._metrics.sentences_total.labels(outcome="ok").inc()
        except InvalidStateError:  # the caller left during this step
            self._metrics.sentences_total.labels(outcome="cancelled").inc()

    def _note_failure(self, error: Exception, sequences: list[Sequence]) -> None:
        """Answers sentences whose step failed; the error is about tensors, so its words are no user's."""
        self._failures += 1
        self._metrics.engine_failures_total.inc()
        facts = {"sentences": len(sequences), "error": str(error)}
        logger.error("a step failed; each sentence is answered with an error", exc_info=error, extra={"facts": facts})
        self._drop(sequences, EngineFailed("translation failed"))

    def _drop(self, sequences: list[Sequence], error: TranslationError) -> None:
        self._scheduler.remove(sequences)
        for sequence in sequences:
            fail(sequence, error, self._metrics)


def fail(sequence: Sequence, error: TranslationError, metrics: Metrics) -> None:
    """Answers a sentence with an error, unless its caller has left."""
    outcome = "deadline" if isinstance(error, DeadlineExceeded) else "error"
    try:
        sequence.future.set_exception(error)
    except InvalidStateError:  # the caller left already
        outcome = "cancelled"
    metrics.sentences_total.labels(outcome=outcome).inc()


def _hypothesis(beam: FinishedBeam, options: DecodingOptions) -> Hypothesis:
    reason = FinishReason.STOP if beam.is_complete else FinishReason.LENGTH
    return Hypothesis(ids=beam.ids, score=beam.score if options.needs_log_probs else 0.0, finish_reason=reason)
