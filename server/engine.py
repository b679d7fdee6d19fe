"""The engine: sentences in, translations out, by continuous batching on one thread per lane.

Guarantees: a sentence's fp32 result does not depend on its neighbours; each row stops at its own limit; nobody waits
for a neighbour; a cancelled or expired sentence takes no part in the next step; a failed step answers every sentence in
it; every future ends.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from server.bundle import Manifest
from server.errors import DeadlineExceeded, EngineFailed, NotServing, Overloaded, TranslationError
from server.metrics import Metrics
from server.runner import Decoder, Runner
from server.scheduler import Scheduler, WaitingQueue
from server.search import BeamSearch, FinishedBeam, default_max_tokens
from server.sequence import DecodingOptions, FinishReason, Hypothesis, Result, Sequence

logger = logging.getLogger(__name__)

MAX_FAILURES = 3  # steps that fail one after another before a lane calls itself dead
MAX_STEP_SECONDS = 30.0  # a step that takes longer hangs


class Engine:
    """Owns the waiting queue and the lanes; all of its methods may be called from any thread."""

    def __init__(
        self,
        runner: Runner,
        manifest: Manifest,
        metrics: Metrics,
        *,
        num_lanes: int,
        max_rows: int,
        max_encode_tokens: int,
        max_waiting_tokens: int,
        max_waiting_sentences: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepares the lanes; `start` runs them.

        Args:
            runner: runs the network.
            manifest: special ids and limits.
            metrics: told of everything that happens.
            num_lanes: threads, each with a batch of its own.
            max_rows: rows of a lane's batch, at least the manifest's widest beam.
            max_encode_tokens: padded source tokens that one encoder call may have; bounds how long running rows stall.
            max_waiting_tokens: source tokens at which the queue refuses further requests.
            max_waiting_sentences: sentences at which it does.
            clock: seconds, monotonic; deadlines are its instants.
        """
        self._special_ids = manifest.special_ids
        self._limits = manifest.limits
        self._metrics = metrics
        self._clock = clock
        self._queue = WaitingQueue(
            max_sentences=max_waiting_sentences, max_tokens=max_waiting_tokens, num_lanes=num_lanes
        )
        self._lanes = [
            Lane(
                runner,
                Scheduler(self._queue, max_rows=max_rows, max_encode_tokens=max_encode_tokens, clock=clock),
                runner.open_decoder(max_rows),
                self._queue,
                metrics,
                clock,
            )
            for _ in range(num_lanes)
        ]
        self._threads = [
            threading.Thread(target=lane.run, name=f"lane-{i}", daemon=True) for i, lane in enumerate(self._lanes)
        ]
        metrics.batch_slots.set(num_lanes * max_rows)
        metrics.queue_depth.set_function(lambda: self._queue.num_sentences)
        metrics.queue_tokens.set_function(lambda: self._queue.num_tokens)
        metrics.batch_slots_used.set_function(lambda: sum(lane.num_rows for lane in self._lanes))
        metrics.kv_cache_bytes.set_function(lambda: sum(lane.cache_bytes for lane in self._lanes))

    def start(self) -> None:
        """Starts the lanes."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Fails whatever is left with `NotServing` and ends the lanes; safe to call twice."""
        for sequence in self._queue.close():
            _fail(sequence, NotServing("the server has shut down"), self._metrics)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def submit(
        self, sources: Iterable[Iterable[int]], options: DecodingOptions, deadline: float | None
    ) -> list[Future[Result]]:
        """Queues the sentences of one request, all or none.

        Args:
            sources: token ids of each sentence, eos included, at most `max_source_tokens` each.
            options: checked by the caller against the manifest's limits.
            deadline: instant of the clock; None for never.

        Returns:
            A future for each sentence, which fails only with a `TranslationError`. A caller who has lost interest
            cancels it.

        Raises:
            Overloaded: the queue is at a limit.
            NotServing: the engine has been stopped.
        """
        self.check_room()
        now = self._clock()
        sequences = [
            Sequence(
                source_ids=tuple(ids),
                options=options,
                search=self._search(options, ids),
                deadline=deadline,
                submitted=now,
            )
            for ids in map(tuple, sources)
        ]
        with self._counting_refusals():
            self._queue.add(sequences)
        return [sequence.future for sequence in sequences]

    def check_room(self) -> None:
        """Says whether `submit` would take a request now, for callers whose next step is costly.

        Raises:
            Overloaded: the queue is at a limit.
            NotServing: the engine has been stopped.
        """
        with self._counting_refusals():
            self._queue.check_room()

    def is_alive(self) -> bool:
        """Says whether every lane makes progress: for liveness, whatever the load."""
        return all(thread.is_alive() for thread in self._threads) and all(lane.is_alive() for lane in self._lanes)

    @contextmanager
    def _counting_refusals(self) -> Iterator[None]:
        try:
            yield
        except Overloaded as error:
            self._metrics.queue_rejected_total.labels(reason=error.reason).inc()
            raise

    def _search(self, options: DecodingOptions, source_ids: tuple[int, ...]) -> BeamSearch:
        limit = self._limits.max_target_tokens
        return BeamSearch(
            beam_size=options.beam_size,
            length_penalty=options.length_penalty,
            max_tokens=options.max_output_tokens or default_max_tokens(len(source_ids), limit),
            bos_id=self._special_ids.bos,
            eos_id=self._special_ids.eos,
        )


class Lane:
    """One thread with a batch of its own: `step` is one iteration of continuous batching."""

    def __init__(
        self,
        runner: Runner,
        scheduler: Scheduler,
        decoder: Decoder,
        queue: WaitingQueue,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._runner = runner
        self._scheduler = scheduler
        self._decoder = decoder
        self._queue = queue
        self._metrics = metrics
        self._clock = clock
        self._parents: dict[Sequence, list[int]] = {}  # of the last step: which beam each live beam extends
        self._failures = 0
        self._step_started: float | None = None

    @property
    def num_rows(self) -> int:
        """Rows in use."""
        return self._scheduler.num_rows

    @property
    def cache_bytes(self) -> int:
        """Bytes of the cache's buffers."""
        return self._decoder.cache.size_bytes

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
        plan = self._scheduler.schedule()
        self._metrics.sentences_total.labels(outcome="cancelled").inc(len(plan.cancelled))
        for sequence in plan.expired:
            _fail(sequence, DeadlineExceeded("the deadline passed before the translation was done"), self._metrics)
        moves = self._scheduler.arrange(self._parents)
        self._parents = {}
        running = self._scheduler.running
        longest_target = max((sequence.search.num_tokens for sequence in running), default=0)
        longest_source = max((len(sequence.source_ids) for sequence in running if sequence.rows), default=0)
        self._decoder.cache.move(moves, longest_target, longest_source)
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
            cross = self._runner.encode(source_ids, lengths)
        except Exception as error:  # noqa: BLE001  # as in step; the running rows are not concerned
            self._note_failure(error, admitted)
            return
        now = self._clock()
        self._metrics.encode_duration_seconds.observe(now - admitted[0].admitted)
        self._metrics.source_tokens_total.inc(int(lengths.sum()))
        self._metrics.padded_source_tokens_total.inc(source_ids.size)
        num_rows = self._scheduler.num_rows
        running = self._scheduler.running
        self._decoder.cache.reserve(
            num_rows,
            max(sequence.search.num_tokens for sequence in running) + 1,
            max(len(sequence.source_ids) for sequence in running),
        )
        self._scheduler.place(admitted)
        for index, sequence in enumerate(admitted):
            sequence.encoded = now
            self._decoder.cache.admit(sequence.rows[0], cross, index, len(sequence.source_ids))

    def _decode(self) -> None:
        started = self._clock()
        running = self._scheduler.running
        num_rows = self._scheduler.num_rows
        input_ids = np.empty(num_rows, np.int64)
        past_lengths = np.empty(num_rows, np.int32)
        source_lengths = np.empty(num_rows, np.int32)
        for sequence in running:
            input_ids[sequence.rows] = sequence.search.last_ids
            past_lengths[sequence.rows] = sequence.search.num_tokens
            source_lengths[sequence.rows] = len(sequence.source_ids)
        self._decoder.cache.reserve(num_rows, int(past_lengths.max()) + 1, int(source_lengths.max()))
        top_k = max(sequence.search.num_candidates for sequence in running)
        top_ids, top_log_probs = self._decoder.step(input_ids, past_lengths, source_lengths, top_k)
        self._metrics.step_duration_seconds.observe(self._clock() - started)
        self._metrics.batch_rows.observe(num_rows)
        is_finite: NDArray[np.bool_] = np.isfinite(np.abs(top_log_probs).max(axis=1))
        finished: list[Sequence] = []
        broken: list[Sequence] = []
        for sequence in running:
            if not is_finite[sequence.rows].all():
                broken.append(sequence)
                continue
            parents = sequence.search.advance(top_ids[sequence.rows], top_log_probs[sequence.rows])
            if parents:
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
            hypotheses=tuple(_hypothesis(beam) for beam in sequence.search.best(sequence.options.num_hypotheses)),
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
            _fail(sequence, error, self._metrics)


def _hypothesis(beam: FinishedBeam) -> Hypothesis:
    reason = FinishReason.STOP if beam.is_complete else FinishReason.LENGTH
    return Hypothesis(ids=beam.ids, score=beam.score, finish_reason=reason)


def _fail(sequence: Sequence, error: TranslationError, metrics: Metrics) -> None:
    outcome = "deadline" if isinstance(error, DeadlineExceeded) else "error"
    try:
        sequence.future.set_exception(error)
    except InvalidStateError:  # the caller left already
        outcome = "cancelled"
    metrics.sentences_total.labels(outcome=outcome).inc()
