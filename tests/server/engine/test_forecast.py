"""Forecasts, against loads made by hand."""

import pytest

from server.engine.cost import CostModel, Demand
from server.engine.forecast import Forecast, Load, forecast
from server.errors import DeadlineExceeded, Overloaded
from tests.fakes import engine_limits

MAX_ROWS = 64
DEMAND = Demand(work=100.0, steps=10.0, rows=1, num_sentences=10)


@pytest.fixture
def cost() -> CostModel:
    """Steps take 1 ms and a tenth of one for each row; all answers of late were late."""
    model = CostModel(MAX_ROWS)
    for rows in (4, 60):
        model.observe_step(rows, 0.001 + 0.0001 * rows, busy_rows=0)
    for _ in range(100):
        model.observe_answer("", is_late=True)
    return model


def expect(
    cost: CostModel,
    running_rows: int = 0,
    work_before: float = 0.0,
    deadline: float | None = None,
    share: float = 0.5,
    pace: float = 1.0,
) -> Forecast:
    prices = cost.prices("", is_modest=False)
    load = Load(running_rows, 1 if work_before else 0, share, pace, *prices, lambda due, is_large: work_before)
    return forecast(DEMAND, 0.0, deadline, load, cost, engine_limits(max_rows=MAX_ROWS))


def test_an_idle_engine_takes_the_work_and_the_longest_sentence(cost: CostModel) -> None:
    expected = expect(cost)

    work = 100 * cost.row_step_seconds
    assert expected.seconds == pytest.approx(work + 10 * 0.0011)
    assert expected.seconds == expected.alone
    assert not expected.is_crowded


def test_steps_that_give_way_take_longer(cost: CostModel) -> None:
    expected, alone = expect(cost, pace=0.25), expect(cost)

    assert expected.seconds == pytest.approx(4 * alone.seconds * 3.0), "with all caution"
    assert expected.alone == alone.alone
    assert expected.is_crowded


def test_caution_grows_with_the_rows_that_are_taken(cost: CostModel) -> None:
    stretches = [
        expect(cost, running_rows).seconds / (expect(cost).alone + 10 * 0.0001 * running_rows)
        for running_rows in (1, 22, 54, 63)
    ]

    assert stretches == pytest.approx([3 ** (11 / 64), 3 ** (32 / 64), 3, 3])
    assert [expect(cost, running_rows).is_crowded for running_rows in (22, 23)] == [False, True]


def test_what_comes_first_is_waited_for_with_all_caution(cost: CostModel) -> None:
    expected = expect(cost, work_before=1000.0)

    assert expected.seconds == pytest.approx(3 * (1000 * cost.row_step_seconds + expected.alone))
    assert expected.is_crowded


def test_who_would_be_late_is_told_when_to_come_back(cost: CostModel) -> None:
    expected = expect(cost, work_before=1000.0, deadline=0.1)
    expect(cost, work_before=1000.0, deadline=1.0).check()

    with pytest.raises(Overloaded) as refusal:
        expected.check()

    assert refusal.value.retry_after_seconds == pytest.approx(expected.seconds - 0.1)


def test_who_would_be_late_alone_is_told_so(cost: CostModel) -> None:
    expect(cost, deadline=0.02).check_alone()

    with pytest.raises(DeadlineExceeded):
        expect(cost, deadline=0.001).check_alone()


def test_a_refusal_lasts_for_a_part_of_the_wait_before_it(cost: CostModel) -> None:
    with pytest.raises(Overloaded) as refusal:
        expect(cost, work_before=5000.0, deadline=0.5).check()

    wait = 5000 * cost.row_step_seconds
    assert refusal.value.lasts_seconds == pytest.approx(min(wait / 4, refusal.value.retry_after_seconds))


def test_the_time_between_its_steps_is_a_wait_as_well(cost: CostModel) -> None:
    demand = Demand(work=10.0, steps=10.0, rows=1)
    lasts = []
    for pace in (1.0, 0.1):
        load = Load(1, 0, pace, pace, 3.0, cost.row_step_seconds, lambda due, is_large: 0.0)
        lasts.append(forecast(demand, 0.0, 0.05, load, cost, engine_limits(max_rows=MAX_ROWS)).lasts)

    assert lasts[0] == 0.0
    assert lasts[1] > 0.0


def test_a_refusal_says_nothing_of_others_for_whom_less_would_wait(cost: CostModel) -> None:
    long = Demand(work=10.0, steps=2000.0, rows=1)
    large = Demand(work=10_000.0, steps=10.0, rows=1)
    load = Load(0, 1, 0.5, 1.0, 3.0, cost.row_step_seconds, lambda due, is_large: 5000.0)

    for demand in (long, large):
        expected = forecast(demand, 0.0, 1.5, load, cost, engine_limits(max_rows=MAX_ROWS))
        assert expected.seconds > expected.remaining
        assert expected.lasts == 0.0
