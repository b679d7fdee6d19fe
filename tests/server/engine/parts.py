"""The parts of an engine, put together by hand: sentences, their queue, and what batches and lanes are made of."""

import threading
from concurrent.futures import Future
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.batch import Batch
from server.engine.busy import BusyEngines
from server.engine.cost import CostModel, Demand
from server.engine.flow import ANYONE, Flow
from server.engine.lane import Lane
from server.engine.limits import EngineLimits, Footprint
from server.engine.scheduler import Scheduler
from server.engine.sentence import Sentence
from server.engine.waiting_queue import WaitingQueue
from server.network import StepKind
from server.telemetry.metrics import Metrics
from tests.fakes import EOS, FIRST_TOKEN, CountingRunner, FakeClock, lane_limits

BOS = 2
Stepped = tuple[NDArray[np.int64], NDArray[np.float32]]  # what a decoder's step returns
GREEDY = DecodingOptions(beam_size=1)
NO_SCORES = DecodingOptions(beam_size=1, with_scores=False)
LITTLE = Demand(work=1.0, steps=1.0, rows=1)
SHORTLIST = DecodingOptions(beam_size=1, use_shortlist=True)


def sentence_of(
    source_ids: tuple[int, ...],
    options: DecodingOptions = GREEDY,
    deadline: float | None = None,
    flow: Flow = ANYONE,
) -> Sentence:
    """Returns a sentence that was submitted at instant 0 and may be translated to 50 tokens."""
    search = BeamSearch(options, max_tokens=50, bos_id=BOS, eos_id=EOS)
    return Sentence(source_ids=source_ids, options=options, search=search, deadline=deadline, submitted=0.0, flow=flow)


def new_sentence(
    tokens: int = 5,
    beam_size: int = 1,
    deadline: float | None = None,
    *,
    use_shortlist: bool = False,
    flow: Flow = ANYONE,
) -> Sentence:
    """Returns a sentence whose ids do not matter."""
    options = DecodingOptions(beam_size=beam_size, use_shortlist=use_shortlist)
    return sentence_of((7,) * tokens, options, deadline, flow)


def slow_cost() -> CostModel:
    """Returns the costs of 20 rows that take a second a step: a hundred sentences are more than all there is."""
    cost = CostModel(20)
    cost.observe_step(20, 1.0, busy_rows=0)
    return cost


def new_queue(
    max_sentences: int = 1000,
    max_tokens: int = 100_000,
    num_lanes: int = 1,
    *,
    max_rows: int = 64,
    cost: CostModel | None = None,
    clock: FakeClock | None = None,
) -> WaitingQueue:
    """Returns a queue whose limits only matter where a test sets them."""
    limits = EngineLimits(
        num_lanes=num_lanes,
        lane=lane_limits(max_rows),
        max_waiting_tokens=max_tokens,
        max_waiting_sentences=max_sentences,
    )
    return WaitingQueue(limits, cost or CostModel(max_rows), clock or FakeClock(), BusyEngines())


def new_scheduler(
    queue: WaitingQueue,
    max_rows: int = 8,
    max_encode_tokens: int = 1000,
    max_cached_positions: int = 10**6,
    clock: FakeClock | None = None,
    kind: StepKind = StepKind.PLAIN,
) -> Scheduler:
    """Returns a scheduler whose limits only matter where a test sets them."""
    limits = lane_limits(max_rows, max_cached_positions, max_encode_tokens)
    return Scheduler(kind, queue, CostModel(max_rows), limits, clock or FakeClock())


def run_step(scheduler: Scheduler, parents: dict[Sentence, list[int]] | None = None) -> list[Sentence]:
    """One iteration as the engine makes it; returns who was admitted."""
    plan = scheduler.schedule()
    scheduler.arrange(parents or {})
    scheduler.place(plan.admitted)
    return plan.admitted


def decoder_of(batch: Batch) -> Any:
    """Returns the decoder of a batch that has taken a step, to be tampered with."""
    assert batch._decoder is not None
    return batch._decoder


def step(batch: Batch, times: int = 1) -> None:
    """Takes steps with a batch that is its lane's only one."""
    for _ in range(times):
        batch.step(Footprint())


def tokens(count: int) -> tuple[int, ...]:
    """What `CountingRunner` translates a sentence to whose first id is `count`."""
    return tuple(range(FIRST_TOKEN, FIRST_TOKEN + count))


class Parts:
    """A queue and a fake network, for as many batches or lanes as a test opens."""

    def __init__(self, num_lanes: int = 1, max_rows: int = 8) -> None:
        self.runner, self.clock, self.registry = CountingRunner(), FakeClock(), CollectorRegistry()
        self.metrics = Metrics(self.registry).of_model("counting", "1")
        self.limits = lane_limits(max_rows)
        self.cost = CostModel(max_rows)
        self.queue = new_queue(num_lanes=num_lanes, max_rows=max_rows, cost=self.cost, clock=self.clock)
        self.alarm = threading.Event()

    def open_batch(self, kind: StepKind = StepKind.PLAIN) -> Batch:
        return Batch(kind, self.runner, self.queue, self.cost, self.limits, self.metrics, self.clock)

    def open_lane(self, *, is_proven: bool = True) -> Lane:
        return Lane(
            self.runner,
            self.queue,
            self.cost,
            self.limits,
            self.metrics,
            self.clock,
            self.alarm,
            is_proven=is_proven,
        )

    def submit(
        self, *counts: int, options: DecodingOptions = GREEDY, deadline: float | None = None
    ) -> list[Future[Result]]:
        """Queues one request, of a sentence for each count of tokens that it is to be translated to."""
        sentences = [sentence_of((count, 50, EOS), options, deadline) for count in counts]
        self.queue.add(sentences)
        return [sentence.future for sentence in sentences]

    def sample(self, name: str, **labels: str) -> float:
        """Returns a metric of the model; there must be one."""
        value = self.registry.get_sample_value(f"babelserve_{name}", {"model": "counting", "version": "1", **labels})
        assert value is not None
        return value
