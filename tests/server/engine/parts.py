"""The parts of an engine, put together by hand: sentences, what waits, and what batches and lanes are made of."""

import math
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.decoding.searches import new_search
from server.engine.batch import Batch
from server.engine.cores import Cores, Gate
from server.engine.cost import CostModel, Demand
from server.engine.dispatch import Dispatch
from server.engine.failing import Faults
from server.engine.flow import ANYONE, Flow
from server.engine.lane import Lane
from server.engine.limits import EngineLimits, Footprint, LaneLimits
from server.engine.row_plan import RowPlan
from server.engine.sentence import Sentence
from server.network import StepKind
from server.telemetry.metrics import Metrics
from tests.fakes import EOS, FIRST_TOKEN, CountingRunner, FakeClock, lane_limits

BOS = 2
Stepped = tuple[NDArray[np.int64], NDArray[np.float32]]  # what a decoder's step returns
GREEDY = DecodingOptions(beam_size=1)
NO_SCORES = DecodingOptions(beam_size=1, with_scores=False)
LITTLE = Demand(work=1.0, steps=1.0, rows=1)
SHORTLIST = DecodingOptions(beam_size=1, use_shortlist=True)

FLOOD, NEIGHBOUR = Flow(name="flood"), Flow(name="neighbour", weight=3.0)  # whose share is three quarters


def sentence_of(
    source_ids: tuple[int, ...],
    options: DecodingOptions = GREEDY,
    deadline: float = math.inf,
    flow: Flow = ANYONE,
) -> Sentence:
    """Returns a sentence that was submitted at instant 0 and may be translated to 50 tokens."""
    search = new_search(options, max_tokens=50, bos_id=BOS, eos_id=EOS, source_ids=source_ids)
    return Sentence(source_ids=source_ids, options=options, search=search, deadline=deadline, submitted=0.0, flow=flow)


def new_sentence(
    tokens: int = 5,
    beam_size: int = 1,
    deadline: float = math.inf,
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
    for _ in range(1000):  # a single slow step is taken for an accident
        cost.observe_step(20, 1.0, 1.0)
    return cost


def new_dispatch(
    max_sentences: int = 1000,
    max_tokens: int = 100_000,
    num_lanes: int = 1,
    *,
    max_rows: int = 64,
    cost: CostModel | None = None,
    clock: FakeClock | None = None,
) -> Dispatch:
    """Returns one whose limits only matter where a test sets them."""
    limits = EngineLimits(
        num_lanes=num_lanes,
        lane=lane_limits(max_rows),
        max_waiting_tokens=max_tokens,
        max_waiting_sentences=max_sentences,
    )
    return Dispatch(limits, cost or CostModel(max_rows, num_lanes), clock or FakeClock())


def run_step(plan: RowPlan, entering: Sequence[Sentence] = ()) -> None:
    """Does what a batch does with its rows between two steps."""
    plan.add(list(entering))
    plan.arrange()
    plan.place(list(entering))


def decoder_of(batch: Batch) -> Any:
    """Returns the decoder of a batch that has taken a step, to be tampered with."""
    assert batch._opened is not None
    return batch.decoder


def enter_and_step(
    batch: Batch, entering: list[Sentence], came: float = 0.0, *, is_alone: bool = False, is_full: bool = False
) -> None:
    """Takes a step with sentences that the lane has taken."""
    batch.enter(entering)
    batch.step(came, is_alone=is_alone, is_full=is_full)


def tokens(count: int) -> tuple[int, ...]:
    """What `CountingRunner` translates a sentence to whose first id is `count`."""
    return tuple(range(FIRST_TOKEN, FIRST_TOKEN + count))


class Parts:
    """A dispatch and a fake network, for as many batches or lanes as a test opens."""

    def __init__(self, num_lanes: int = 1, max_rows: int = 8, *, cost: CostModel | None = None) -> None:
        self.runner, self.clock, self.registry = CountingRunner(), FakeClock(), CollectorRegistry()
        self.metrics = Metrics(self.registry).of_model("counting", "1")
        self.limits = lane_limits(max_rows)
        self.cost = cost or CostModel(max_rows, num_lanes)
        self.dispatch = new_dispatch(num_lanes=num_lanes, max_rows=max_rows, cost=self.cost, clock=self.clock)
        self.alarm = threading.Event()
        self.faults = Faults(self.metrics, self.alarm)

    def open_batch(self, kind: StepKind = StepKind.PLAIN) -> Batch:
        return Batch(kind, self.runner, self.dispatch, self.metrics, self.faults)

    def open_lane(self, *, is_proven: bool = True, gate: Gate | None = None) -> Lane:
        return Lane(
            self.runner,
            self.dispatch,
            gate or Gate(Cores(clock=self.clock)),
            self.metrics,
            self.alarm,
            is_proven=is_proven,
        )

    def step(self, batch: Batch, times: int = 1) -> None:
        """Takes steps with a batch that is its lane's only one; whoever waits enters as far as there is room."""
        for _ in range(times):
            entering, is_full = self.dispatch.take(
                self.limits, batch.plan.footprint, max(batch.plan.longest()), is_background=False
            )
            enter_and_step(batch, entering, self.clock(), is_full=is_full)

    def submit(
        self,
        *counts: int,
        options: DecodingOptions = GREEDY,
        deadline: float = math.inf,
        flow: Flow = ANYONE,
    ) -> list[Future[Result]]:
        """Queues one request, of a sentence for each count of tokens that it is to be translated to."""
        sentences = [sentence_of((count, 50, EOS), options, deadline, flow) for count in counts]
        self.dispatch.add(sentences)
        return [sentence.future for sentence in sentences]

    def sample(self, name: str, **labels: str) -> float:
        """Returns a metric of the model; there must be one."""
        value = self.registry.get_sample_value(f"babelserve_{name}", {"model": "counting", "version": "1", **labels})
        assert value is not None
        return value


def run_on_thread(lane: Lane) -> None:
    """Runs a lane to its end; a lane that hangs fails the test."""
    thread = threading.Thread(target=lane.run, daemon=True)
    thread.start()
    thread.join(100.0)
    assert not thread.is_alive()


def take(
    dispatch: Dispatch,
    limits: LaneLimits | None = None,
    running: list[Sentence] | None = None,
    longest: int = 0,
    *,
    is_background: bool = False,
) -> list[Sentence]:
    """Returns what a lane with these sentences takes."""
    footprint = footprint_of(running or [])
    return dispatch.take(limits or lane_limits(1000), footprint, longest, is_background=is_background)[0]


def footprint_of(sentences: list[Sentence]) -> Footprint:
    return reduce(add, (sentence.footprint for sentence in sentences), Footprint())


def add_singles(dispatch: Dispatch, count: int, flow: Flow = ANYONE) -> list[Sentence]:
    """Adds requests of one sentence."""
    sentences = [new_sentence(flow=flow) for _ in range(count)]
    for sentence in sentences:
        dispatch.add([sentence])
    return sentences


def flooded(clock: FakeClock | None = None) -> tuple[Dispatch, list[Sentence], list[Sentence]]:
    """Returns a dispatch in which sentences of a flood and of its neighbour wait, and these sentences."""
    dispatch = new_dispatch(max_rows=20, cost=slow_cost(), clock=clock)
    neighbours, flood = (
        [new_sentence(flow=flow) for _ in range(count)] for flow, count in ((NEIGHBOUR, 2), (FLOOD, 100))
    )
    dispatch.add(neighbours)
    dispatch.add(flood)
    return dispatch, neighbours, flood


def batch_sizes(parts: Parts, lane: Lane, num_steps: int) -> list[int]:
    """Has the lane take so many turns, and returns the rows of each step of the network."""
    before = parts.runner.num_steps
    for _ in range(num_steps):
        lane.step()
    return [len(rows) for rows in parts.runner.fed[before:]]
