"""Which requests are admitted, and as what, by snapshots of an engine."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from server.engine.admission import Claim, Request, Snapshot, admit, request_of
from server.engine.cost import CostModel, Demand
from server.engine.fair_queue import Load
from server.engine.flow import ANYONE, Flow
from server.engine.limits import EngineLimits
from server.errors import DeadlineExceeded, Overloaded
from tests.fakes import lane_limits

ROWS = 20
WORK_SECONDS = 0.05  # of a row-step; a step of 20 rows takes a second
LIMITS = EngineLimits(num_lanes=1, lane=lane_limits(ROWS), max_waiting_tokens=100, max_waiting_sentences=10)
LITTLE = Demand(work=1.0, steps=1.0, rows=1)
FLOOD, OTHER = Flow(name="flood"), Flow(name="other")
IDLE = Snapshot(
    now=100.0,
    work_before=0.0,
    waiting=Load(),
    waiting_of_flow=Load(),
    claims={ANYONE: Claim(weight=1.0, wanted=1.0)},
    background=frozenset(),
    background_pace=1.0,
)


def claiming(
    snapshot: Snapshot,
    *,
    weights: Mapping[Flow, float] | None = None,
    wanted: Mapping[Flow, float] | None = None,
    rows: Mapping[Flow, int] | None = None,
    **others: Any,
) -> Snapshot:
    """Returns a snapshot with other flows if there are weights, and with what they want or have."""
    claims = snapshot.claims
    if weights is not None:
        claims = {flow: claims.get(flow, Claim(0.0, 0.0))._replace(weight=each) for flow, each in weights.items()}
    if wanted is not None:
        claims = {flow: each._replace(wanted=wanted[flow]) for flow, each in claims.items()}
    if rows is not None:
        claims = {flow: each._replace(rows=rows.get(flow, 0)) for flow, each in claims.items()}
    return replace(snapshot, claims=claims, **others)


AT_WORK = claiming(IDLE, rows={ANYONE: ROWS})
SHARED = claiming(IDLE, weights={FLOOD: 1.0, OTHER: 1.0}, wanted={FLOOD: 9.0, OTHER: 1.0})


def learned(num_lanes: int = 1) -> CostModel:
    """Of an engine that takes a second for a step of all rows, and as long as that for 20 row-steps."""
    model = CostModel(ROWS, num_lanes)
    for _ in range(1000):
        model.observe_step(ROWS, 1.0, 1.0)
    assert model.row_step_seconds == pytest.approx(WORK_SECONDS)
    return model


@pytest.fixture(scope="module")
def cost() -> CostModel:
    return learned()


def seconds(
    cost: CostModel, snapshot: Snapshot, demand: Demand = LITTLE, flow: Flow = ANYONE, deadline: float = math.inf
) -> float:
    return admit(Request(demand, flow, deadline, due=0.0), snapshot, cost, LIMITS).seconds


def background(cost: CostModel, snapshot: Snapshot, flow: Flow, demand: Demand = LITTLE) -> set[str]:
    admission = admit(Request(demand, flow, math.inf, due=0.0), snapshot, cost, LIMITS)
    return {each.name for each in admission.background}


def test_a_request_waits_for_the_work_before_it(cost: CostModel) -> None:
    waits = [seconds(cost, replace(AT_WORK, work_before=work)) for work in (0.0, 100.0, 200.0)]

    assert waits[1] - waits[0] == pytest.approx(1.5 * 100 * WORK_SECONDS)
    assert waits[2] - waits[1] == pytest.approx(waits[1] - waits[0])


def test_other_flows_are_before_a_request_as_far_as_they_have_shares(cost: CostModel) -> None:
    calm = claiming(SHARED, rows={FLOOD: 10})
    alone = seconds(cost, calm, flow=OTHER)

    beside_much = seconds(cost, replace(calm, work_before=20.0, waiting=Load(work=1000.0)), flow=OTHER)
    beside_little = seconds(cost, replace(calm, work_before=20.0, waiting=Load(work=5.0)), flow=OTHER)
    behind_nothing = seconds(cost, replace(calm, waiting=Load(work=1000.0)), flow=OTHER)

    assert beside_much - alone == pytest.approx(1.5 * 40 * WORK_SECONDS)
    assert beside_little - alone == pytest.approx(1.5 * 25 * WORK_SECONDS)
    assert behind_nothing == alone


def test_steps_are_as_long_as_the_rows_that_share_them(cost: CostModel) -> None:
    one, half, full, beyond = (seconds(cost, claiming(IDLE, rows={ANYONE: rows})) for rows in (1, 9, ROWS, 400))

    assert one < half < full
    assert full == beyond


def test_rows_in_the_background_do_not_make_steps_of_the_foreground_long(cost: CostModel) -> None:
    flooded = claiming(SHARED, rows={FLOOD: 400}, background={FLOOD}, background_pace=0.5)
    calm = claiming(SHARED, rows={FLOOD: 1})

    assert seconds(cost, flooded, flow=OTHER) == seconds(cost, claiming(calm, rows={}), flow=OTHER) * 1.5
    assert seconds(cost, flooded, flow=FLOOD) > 2 * seconds(cost, calm, flow=OTHER)


def test_the_background_has_the_time_that_is_left_to_it(cost: CostModel) -> None:
    flooded = claiming(SHARED, rows={FLOOD: 400}, background={FLOOD})
    paces = [seconds(cost, replace(flooded, background_pace=pace), flow=FLOOD) for pace in (1.0, 0.25)]

    assert paces[1] == pytest.approx(4 * paces[0])


def test_a_request_that_would_be_late_is_refused_and_told_when_to_come_back(cost: CostModel) -> None:
    busy = replace(AT_WORK, work_before=100.0)
    takes = seconds(cost, busy)
    assert seconds(cost, busy, deadline=100.0 + takes + 0.1) == takes

    with pytest.raises(Overloaded, match=r"would take about \d+(\.\d+)? s, 6 s are left for it") as refusal:
        seconds(cost, busy, deadline=106.0)

    assert refusal.value.reason == "deadline"
    assert refusal.value.retry_after_seconds == pytest.approx(takes - 6.0)
    assert 0 < refusal.value.lasts_seconds <= refusal.value.retry_after_seconds


@pytest.mark.parametrize(("left", "told"), [(0.2, 5.0), (-100.0, 5.0)])
def test_what_refused_callers_are_told_is_bounded(cost: CostModel, left: float, told: float) -> None:
    with pytest.raises(Overloaded) as refusal:
        seconds(cost, replace(AT_WORK, work_before=1000.0), deadline=100.0 + max(left, 0.3))

    assert refusal.value.retry_after_seconds == told


def test_little_is_known_of_others_where_a_request_is_late_by_itself_and_nothing_where_it_is_long(
    cost: CostModel,
) -> None:
    long = ANYONE.of_long()
    with pytest.raises(Overloaded) as by_itself:
        seconds(cost, AT_WORK, Demand(work=40.0, steps=1.0, rows=1), deadline=101.0)
    with pytest.raises(Overloaded) as as_it_is_long:
        seconds(
            cost,
            claiming(AT_WORK, weights={long: 1.0}, wanted={long: 1.0}, rows={long: ROWS}, work_before=100.0),
            flow=long,
            deadline=101.0,
        )

    assert 0 < by_itself.value.lasts_seconds < by_itself.value.retry_after_seconds
    assert as_it_is_long.value.lasts_seconds == 0


def test_an_idle_engine_tries_what_may_be_late_but_nothing_hopeless(cost: CostModel) -> None:
    dear = Demand(work=200.0, steps=1.0, rows=1)
    alone = cost.alone_seconds(dear)

    assert seconds(cost, IDLE, dear, deadline=100.0 + alone / 2) > alone / 2
    with pytest.raises(DeadlineExceeded, match=r"about 1\d s of an idle server, 1 s are left"):
        seconds(cost, IDLE, dear, deadline=101.0)
    with pytest.raises(Overloaded):
        seconds(cost, AT_WORK, dear, deadline=100.0 + alone / 2)


@pytest.mark.parametrize(
    ("waiting", "reason", "message"),
    [
        (Load(10, 20), "sentences", "10 sentences wait, limit 10"),
        (Load(3, 101), "tokens", "101 source tokens wait, limit 100"),
    ],
)
def test_a_full_queue_refuses_and_names_its_limit(cost: CostModel, waiting: Load, reason: str, message: str) -> None:
    with pytest.raises(Overloaded, match=message) as refusal:
        seconds(cost, replace(AT_WORK, waiting=waiting, waiting_of_flow=waiting))

    assert refusal.value.reason == reason
    assert refusal.value.lasts_seconds > 0


def test_a_queue_that_another_flow_has_filled_takes_a_flows_share(cost: CostModel) -> None:
    filled = claiming(SHARED, rows={FLOOD: 10}, waiting=Load(14))

    seconds(cost, replace(filled, waiting_of_flow=Load(4)), flow=OTHER)
    for flow, own in ((OTHER, 5), (FLOOD, 10)):
        with pytest.raises(Overloaded, match="14 sentences wait"):
            seconds(cost, replace(filled, waiting_of_flow=Load(own)), flow=flow)


def test_a_full_queue_takes_what_a_request_that_is_half_done_still_needs(cost: CostModel) -> None:
    full = replace(AT_WORK, waiting=Load(10, 101), waiting_of_flow=Load(10, 101))

    assert seconds(cost, full, flow=ANYONE.first()) > 0
    with pytest.raises(Overloaded, match="queue is full"):
        seconds(cost, full)


def test_a_flow_with_more_rows_than_its_fair_share_is_in_the_background(cost: CostModel) -> None:
    flooded = claiming(SHARED, rows={FLOOD: 16, OTHER: 3})
    assert background(cost, flooded, OTHER) == set()

    assert background(cost, flooded, FLOOD, Demand(work=8.0, steps=1.0, rows=1, num_sentences=8)) == {"flood"}
    assert background(cost, claiming(flooded, rows={FLOOD: 17, OTHER: 3}), OTHER) == {"flood"}


def test_bulk_calls_are_in_the_background_even_alone_and_with_one_row(cost: CostModel) -> None:
    bulk = FLOOD.of_bulk()
    beside = claiming(SHARED, weights={bulk: 0.25, OTHER: 1.0}, wanted={bulk: 1.0, OTHER: 100.0}, rows={bulk: 1})
    ones = {bulk: 0.25}

    assert background(cost, claiming(IDLE, weights=ones, wanted=ones), bulk) == {"flood"}
    assert background(cost, beside, OTHER) == background(cost, beside, bulk) == {"flood"}


def test_weights_count_for_the_background(cost: CostModel) -> None:
    rows = {FLOOD: 8, OTHER: 14}

    assert background(cost, claiming(SHARED, rows=rows), OTHER) == set()
    assert background(cost, claiming(SHARED, rows=rows, weights={FLOOD: 1.0, OTHER: 4.0}), OTHER) == {"flood"}


def test_a_flow_alone_or_among_equals_is_in_the_foreground(cost: CostModel) -> None:
    assert background(cost, claiming(AT_WORK, rows={ANYONE: 1000}), ANYONE) == set()

    flows = [Flow(name=str(number)) for number in range(50)]
    ones = dict.fromkeys(flows, 1.0)
    equals = claiming(IDLE, weights=ones, wanted=ones, rows=dict.fromkeys(flows, 4), background={flows[0]})
    assert background(cost, equals, flows[1], Demand(work=1.0, steps=1.0, rows=1)) == set()


def test_a_flow_that_wants_little_is_in_the_foreground_however_many_rows_it_has(cost: CostModel) -> None:
    slow = claiming(SHARED, rows={FLOOD: 200, OTHER: 30})

    assert background(cost, slow, OTHER) == {"flood"}
    assert background(cost, claiming(slow, wanted={FLOOD: 5.0, OTHER: 9.0}), OTHER) == set(), "neither is greedy"


def test_a_flow_stays_in_the_background_while_it_wants_more_than_others(cost: CostModel) -> None:
    few = claiming(SHARED, rows={FLOOD: 1}, background={FLOOD})

    assert background(cost, few, OTHER) == background(cost, few, FLOOD) == {"flood"}
    assert background(cost, claiming(few, rows={}), FLOOD) == {"flood"}, "it goes on asking, and is refused"
    assert background(cost, claiming(few, wanted={FLOOD: 3.0, OTHER: 9.0}), FLOOD) == set()
    assert background(cost, claiming(few, weights={FLOOD: 1.0}), FLOOD) == set(), "it is alone"


def test_long_requests_are_a_flow_of_their_own(cost: CostModel) -> None:
    short, long = (Demand(work=work, steps=1.0, rows=1) for work in (0.24 / WORK_SECONDS, 0.26 / WORK_SECONDS))

    assert request_of(short, OTHER, 100.0, math.inf, cost).flow == OTHER
    assert request_of(long, OTHER, 100.0, math.inf, cost).flow == OTHER.of_long()
    assert request_of(long, OTHER, 100.0, math.inf, learned(num_lanes=2)).flow == OTHER


def test_a_request_is_due_when_it_must_start_or_has_been_patient(cost: CostModel) -> None:
    alone = cost.alone_seconds(LITTLE)

    dues = [request_of(LITTLE, ANYONE, 100.0, deadline, cost).due for deadline in (101.0, math.inf, 1e9)]

    assert dues == pytest.approx([101.0 - alone, 100.0 + 20 * alone, 100.0 + 20 * alone])


def test_requests_of_bulk_calls_are_due_as_they_come(cost: CostModel) -> None:
    assert request_of(replace(LITTLE, work=50.0, steps=50.0), ANYONE.of_bulk(), 100.0, math.inf, cost).due == 100.0
