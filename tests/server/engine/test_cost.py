"""Predictions, against what they were told."""

import math

import pytest

from server.decoding.options import DecodingOptions
from server.engine.cost import CostModel, Demand
from tests.server.engine.parts import GREEDY

SMALL, LARGE = 4, 60  # rows


@pytest.fixture
def cost() -> CostModel:
    """Has seen steps of two sizes that take 1 ms and a tenth of one for each row, and steps while sentences waited."""
    model = CostModel(64)
    for rows in (SMALL, LARGE):
        for _ in range(100):
            model.observe_step(rows, step_seconds(rows), busy_rows=0)
    return model


def step_seconds(rows: float) -> float:
    return 0.001 + 0.0001 * rows


@pytest.mark.parametrize("rows", [1, SMALL, 30, LARGE, 64])
def test_steps_lie_on_the_line_through_those_seen(cost: CostModel, rows: int) -> None:
    assert cost.step_seconds(rows) == pytest.approx(step_seconds(rows))


def test_before_any_step_there_is_a_guess() -> None:
    model = CostModel(64)

    assert 0 < model.step_seconds(1) < model.step_seconds(64)


def test_steps_of_one_size_only_say_something_of_others() -> None:
    model = CostModel(64)
    model.observe_step(4, 0.1, busy_rows=0)

    assert model.step_seconds(4) == pytest.approx(0.1)
    assert 0.1 < model.step_seconds(64) < 16 * 0.1


# Of the built-in model, with one lane: the golden sentence's first step, and the mean of those of its four beams; then
# what a row-step took of 128 sentences at once.
@pytest.mark.parametrize(
    ("first_ms", "beams_ms", "row_step_us"), [(3.3, 2.85, 193), (4.0, 2.5, 175), (8.2, 6.7, 537), (7.7, 5.0, 302)]
)
def test_full_batches_are_forecast_by_the_warm_up(first_ms: float, beams_ms: float, row_step_us: float) -> None:
    model = CostModel(128)
    model.observe_step(1, first_ms / 1e3, busy_rows=0)
    for _ in range(17):
        model.observe_step(4, beams_ms / 1e3, busy_rows=0)

    assert 0.5 < model.row_step_seconds / (row_step_us / 1e6) < 2


def test_a_single_sentences_steps_say_nothing_of_a_full_batch() -> None:
    forecasts = []
    for first_seconds in (0.0003, 0.003, 0.01):
        model = CostModel(128)
        for _ in range(17):
            model.observe_step(1, first_seconds, busy_rows=0)
            model.observe_step(4, 0.003, busy_rows=0)
        forecasts.append(model.step_seconds(128))
        assert model.step_seconds(1) <= model.step_seconds(4) <= model.step_seconds(5) <= forecasts[-1]

    assert forecasts == [pytest.approx(0.003 * 148 / 24, rel=0.02)] * 3


def test_more_rows_never_seem_to_take_less() -> None:
    model = CostModel(64)
    model.observe_step(2, 0.5, busy_rows=0)  # a first step is slow
    model.observe_step(32, 0.1, busy_rows=0)

    assert model.step_seconds(64) >= model.step_seconds(32) >= 0.1


def test_what_is_seen_is_forgotten(cost: CostModel) -> None:
    for _ in range(1000):
        cost.observe_step(LARGE, 1.0, busy_rows=0)

    assert cost.step_seconds(LARGE) == pytest.approx(1.0, rel=0.01)


def test_work_costs_what_a_full_batch_takes_until_sentences_have_waited(cost: CostModel) -> None:
    assert cost.row_step_seconds == pytest.approx(step_seconds(64) / 64)

    for _ in range(8):
        cost.observe_step(10, 0.005, busy_rows=10)

    assert cost.row_step_seconds == pytest.approx(0.0005)
    assert cost.seconds(Demand(work=50.0, steps=5.0, rows=1)) == pytest.approx(0.025)


def test_a_lane_that_only_begins_to_fill_says_nothing_of_what_work_costs(cost: CostModel) -> None:
    for rows in (1, 4, 16):
        cost.observe_step(rows, 0.080, busy_rows=rows)

    assert cost.row_step_seconds <= 0.080 / 16


def test_a_step_may_take_for_ever_or_just_as_long_as_it_does(cost: CostModel) -> None:
    assert cost.is_within(64, math.inf)
    assert cost.is_within(SMALL, step_seconds(SMALL) + 1e-6)
    assert not cost.is_within(SMALL + 1, step_seconds(SMALL) + 1e-6)


def test_lengths_are_learned(cost: CostModel) -> None:
    for _ in range(1000):
        cost.observe_sentence(source_tokens=10, steps=30)

    assert cost.steps(20, GREEDY) == pytest.approx(60)
    assert cost.steps(20, DecodingOptions(beam_size=1, max_output_tokens=7)) == 7
    demand = cost.demand([5, 20], DecodingOptions(beam_size=4))
    assert demand.work == pytest.approx(4 * 75)
    assert demand.steps == pytest.approx(60)
    assert (demand.rows, demand.num_sentences) == (4, 2)


def test_a_text_is_taken_to_be_made_of_sentences_of_usual_length(cost: CostModel) -> None:
    for _ in range(1000):
        cost.observe_sentence(source_tokens=10, steps=10)
        cost.observe_text(characters=400, sentence_tokens=[40, 60])
    cost.observe_text(characters=0, sentence_tokens=[])

    large = cost.demand_of_text(400_000, GREEDY)

    assert large.work == pytest.approx(100_000)
    assert large.steps == pytest.approx(32)
    assert cost.demand_of_text(40, GREEDY).steps == pytest.approx(10)


def test_the_longest_sentence_of_a_text_is_that_of_texts_of_its_size(cost: CostModel) -> None:
    cost.observe_sentence(source_tokens=10, steps=10)
    for longest in (50, 70):
        cost.observe_text(characters=400, sentence_tokens=[20, longest])

    assert cost.demand_of_text(300, GREEDY).steps == pytest.approx(60)
    assert cost.demand_of_text(400_000, GREEDY).steps == pytest.approx(32), "none has been seen"


def test_caution_grows_until_few_answers_are_late(cost: CostModel) -> None:
    assert cost.caution("") == 1.0
    for _ in range(4):
        cost.observe_answer("", is_late=True)
    grown = cost.caution("")
    for _ in range(100):
        cost.observe_answer("", is_late=False)

    assert 1.5 < grown < 2
    assert 1 < cost.caution("") < grown


def test_caution_rests_where_one_answer_in_a_hundred_is_late(cost: CostModel) -> None:
    for _ in range(20):
        cost.observe_answer("", is_late=True)
        for _ in range(99):
            cost.observe_answer("", is_late=False)

    assert cost.caution("") == pytest.approx(1.0, abs=0.01)


def test_caution_has_an_end(cost: CostModel) -> None:
    for _ in range(1000):
        cost.observe_answer("", is_late=True)

    assert cost.caution("") == 3.0
    assert cost.caution("other") == 1.0


def test_a_step_that_was_stopped_does_not_make_callers_unwelcome(cost: CostModel) -> None:
    for _ in range(64):
        cost.observe_step(LARGE, step_seconds(LARGE), busy_rows=LARGE)
    before = cost.step_seconds(LARGE), cost.row_step_seconds

    cost.observe_step(LARGE, 30.0, busy_rows=LARGE)

    assert cost.step_seconds(LARGE) == pytest.approx(before[0], rel=0.06)
    assert cost.row_step_seconds == pytest.approx(before[1], rel=0.06)


def test_the_first_step_of_a_size_is_doubted_too(cost: CostModel) -> None:
    cost.observe_step(16, 30.0, busy_rows=0)

    assert cost.step_seconds(16) <= 8.1 * step_seconds(16)


def test_a_rate_that_nobody_waited_for_is_forgotten(cost: CostModel) -> None:
    for _ in range(8):
        cost.observe_step(SMALL, step_seconds(SMALL), busy_rows=SMALL)
    assert cost.row_step_seconds == pytest.approx(step_seconds(SMALL) / SMALL)

    for _ in range(200):
        cost.observe_step(SMALL, step_seconds(SMALL), busy_rows=0)

    assert cost.row_step_seconds == pytest.approx(step_seconds(64) / 64)


def test_a_modest_flow_does_not_pay_for_what_others_ask() -> None:
    cost = CostModel(64)
    cost.observe_step(64, 0.064, busy_rows=0)
    for _ in range(20):
        cost.observe_step(4, 0.004 * 4, busy_rows=4)  # somebody waits who is held to a share
        cost.observe_answer("", is_late=True)

    caution, seconds = cost.prices("", is_modest=False)
    assert caution > 1.0
    assert seconds > 2 * cost.least_row_step_seconds
    assert cost.prices("", is_modest=True) == (1.0, cost.least_row_step_seconds)
