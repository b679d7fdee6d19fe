"""Whether a request is admitted, and as what: decided once, from one snapshot of the engine.

**Refused** is a request whose flow has its share of a full waiting queue, or whose answer is forecast to come after its
deadline. So the queue holds only what can be in time, and a refusal costs no step. The forecast is

    (wait + own) / pace:  wait = row-steps that go before it * seconds of a row-step
                          own  = its own row-steps * seconds of a row-step
                                 + steps of its longest sentence * seconds of a step
                          pace = part of the time in which its class is stepped

Example: lanes take 1 ms for a row-step, and 2,000 row-steps wait that go before a request of 30. Its wait is 2 s. With
a deadline in 1.5 s it is refused, and told to come back in half a second.

**In the background** is a flow that holds and awaits more rows than its max-min fair share of all rows, while others
are active. It stays there until nothing of it is left, or it is alone. Each admission decides this for all flows anew.
Sentences of the background have batches of their own, which are stepped in the time that the foreground leaves
(`server.engine.lane`). So they do not make the steps of others longer. A flood is the usual case, and so is a document
beside short requests of the same tenant: long requests are a flow of their own (`server.engine.flow`).
"""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from server.engine.cost import CostModel, Demand
from server.engine.flow import Flow, FlowId
from server.engine.limits import EngineLimits
from server.errors import DeadlineExceeded, Overloaded
from server.shares import fair_level

_LONG_SECONDS = 0.25  # of the engine: half, and a page is taken for a document; twice, and short requests wait for it
_PATIENCE = 20.0  # times what a request takes alone, after which it is due: half, and long ones overtake short ones
_MARGIN = 1.5  # on forecasts while others run: less, and answers come late; more, and callers are refused for nothing
_HOPELESS = 4.0  # times the time that is left: forecasts of an idle engine are no better than that
_RETRY_SECONDS = (0.05, 5.0)  # bounds of what refused callers are told: a forecast that far says little
_LASTING = 0.25  # of a wait, for which the like of a refused request is refused as well
_FULL_SECONDS = 0.1  # the same, of a full queue


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What an engine has to do at one instant, as one request sees it.

    Attributes:
        now: instant of the engine's clock.
        work_before: row-steps that wait in the request's flow and go before it.
        other_work: row-steps that wait in all other flows.
        waiting: sentences that wait, and their source tokens.
        waiting_of_flow: the same, of the request's flow.
        weights: of the shares of all flows that are active, the request's among them.
        rows: that each flow holds and awaits; none for a flow without any.
        background: flows that are in the background.
        background_pace: part of the time in which the background is stepped, over 0 to 1.
    """

    now: float
    work_before: float
    other_work: float
    waiting: tuple[int, int]
    waiting_of_flow: tuple[int, int]
    weights: Mapping[FlowId, float]
    rows: Mapping[FlowId, int]
    background: AbstractSet[FlowId]
    background_pace: float


class Admission(NamedTuple):
    """What is to be expected of a request that is admitted.

    Attributes:
        seconds: until its answer.
        alone_seconds: the same, if nothing else ran or waited.
        background: flows that are in the background once the request is admitted.
    """

    seconds: float
    alone_seconds: float
    background: AbstractSet[FlowId]


def flow_of(demand: Demand, flow: Flow, cost: CostModel, limits: EngineLimits) -> Flow:
    """Returns the flow that a request belongs to: that of its tenant's long requests if it is long."""
    is_long = demand.work * cost.row_step_seconds > _LONG_SECONDS * limits.num_lanes
    return flow.of_long() if is_long else flow


def due_at(demand: Demand, now: float, deadline: float | None, cost: CostModel, limits: EngineLimits) -> float:
    """Returns the instant by which a request should start; its flow serves by it.

    That is when it must start to meet its deadline (least laxity first), or when it has waited `_PATIENCE` times as
    long as it takes alone. So short requests overtake long ones, and long ones are overtaken for a while only.
    """
    alone = _alone_seconds(demand, cost, limits)
    return now + min(_PATIENCE * alone, math.inf if deadline is None else deadline - now - alone)


def admit(
    demand: Demand, flow: Flow, deadline: float | None, snapshot: Snapshot, cost: CostModel, limits: EngineLimits
) -> Admission:
    """Returns what is to be expected of a request, or refuses it.

    Args:
        demand: of all its sentences.
        flow: as of `flow_of`.
        deadline: instant; None for never.
        snapshot: of the engine.
        cost: predicts seconds.
        limits: of the engine.

    Raises:
        Overloaded: its flow has its share of a full queue, or the answer would come too late.
        DeadlineExceeded: an idle engine's answer would come much too late: no retry is worth it.
    """
    share = flow.weight / sum(snapshot.weights.values())
    _check_queue(snapshot, share, limits)
    rows = {each: snapshot.rows.get(each, 0) for each in snapshot.weights}
    is_idle = not any(rows.values())
    rows[flow.id] += demand.rows * demand.num_sentences
    background = _find_background(rows, snapshot, limits)
    is_background = flow.id in background
    pace = snapshot.background_pace if is_background else 1.0
    shared_rows = sum(rows[each] for each in rows if is_background or each not in background) / limits.num_lanes
    step_rows = min(shared_rows, limits.lane.max_rows)
    step_seconds = max(cost.step_seconds(step_rows), cost.row_step_seconds * step_rows)
    work_seconds = cost.row_step_seconds / limits.num_lanes
    own = demand.work * work_seconds + demand.steps * step_seconds
    wait = min(snapshot.work_before / share, snapshot.work_before + snapshot.other_work) * work_seconds
    seconds = (wait + own) / pace * (1.0 if is_idle else _MARGIN)
    alone = _alone_seconds(demand, cost, limits)
    left = math.inf if deadline is None else deadline - snapshot.now
    if alone > left * _HOPELESS:
        raise DeadlineExceeded(_late(f"{_rounded(alone)} s of an idle server", left))
    if seconds > left and not is_idle:
        least, most = _RETRY_SECONDS
        retry = min(max(seconds - left, least), most)
        # A long request waits for what a short one would overtake, and one that takes long by itself for no other.
        lasts = min(retry, wait * _LASTING) if wait > own and not flow.is_long else 0.0
        raise Overloaded(_late(f"{_rounded(seconds)} s", left), "deadline", retry, lasts)
    return Admission(seconds, alone, background)


def _alone_seconds(demand: Demand, cost: CostModel, limits: EngineLimits) -> float:
    return demand.work * cost.row_step_seconds / limits.num_lanes + demand.steps * cost.step_seconds(demand.rows)


def _check_queue(snapshot: Snapshot, share: float, limits: EngineLimits) -> None:
    """Raises Overloaded if the queue is full and the flow has its share of it."""
    most = limits.max_waiting_sentences, limits.max_waiting_tokens
    names = ("sentences", "sentences"), ("tokens", "source tokens")
    for limit, number, own, (reason, what) in zip(most, snapshot.waiting, snapshot.waiting_of_flow, names, strict=True):
        if number >= limit and own >= limit * share:
            message = f"queue is full: {number} {what} wait, limit {limit}"
            raise Overloaded(message, reason, lasts_seconds=_FULL_SECONDS)


def _find_background(rows: Mapping[FlowId, int], snapshot: Snapshot, limits: EngineLimits) -> AbstractSet[FlowId]:
    """Returns the flows in the background when each has so many rows; none if that were all active flows."""
    stay = {each for each in snapshot.background if snapshot.rows.get(each)}
    demands = [(rows[each], weight) for each, weight in snapshot.weights.items()]
    level = fair_level(limits.num_lanes * limits.lane.max_rows, demands)
    background = stay | {each for each, weight in snapshot.weights.items() if rows[each] > level * weight}
    return background if len(background) < len(rows) else frozenset()


def _late(takes: str, left: float) -> str:
    return f"the answer would take about {takes}, {_rounded(left)} s are left for it"


def _rounded(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"
