"""The engine: sentences in, translations out, by continuous batching on one thread per lane.

Guarantees: a sentence's fp32 result does not depend on its neighbours; each row stops at its own limit; nobody waits
for a neighbour to finish, unless one of the two uses a shortlist and the other does not; a cancelled or expired
sentence takes no part in the next step; a failed step answers every sentence in it; every future ends. What one
iteration does is in `server.engine.lane`.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from server.bundle.bundle import Manifest
from server.decoding.beam_search import BeamSearch, default_max_tokens
from server.engine.lane import Lane, fail
from server.engine.scheduler import Scheduler
from server.engine.sequence import DecodingOptions, Result, Sequence
from server.engine.waiting_queue import BatchLimits, WaitingQueue
from server.errors import NotServing, Overloaded
from server.runtime.runner import Runner
from server.telemetry.metrics import Metrics


class Engine:
    """Owns the waiting queue and the lanes; all of its methods may be called from any thread."""

    def __init__(
        self,
        runner: Runner,
        manifest: Manifest,
        metrics: Metrics,
        *,
        num_lanes: int,
        batch: BatchLimits,
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
            batch: of each lane; its rows are at least the manifest's widest beam.
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
                Scheduler(self._queue, batch, clock),
                runner.open_decoder(batch.max_rows),
                batch.max_rows,
                self._queue,
                metrics,
                clock,
            )
            for _ in range(num_lanes)
        ]
        self._threads = [
            threading.Thread(target=lane.run, name=f"lane-{i}", daemon=True) for i, lane in enumerate(self._lanes)
        ]
        metrics.batch_slots.set(num_lanes * batch.max_rows)
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
            fail(sequence, NotServing("the server has shut down"), self._metrics)
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
