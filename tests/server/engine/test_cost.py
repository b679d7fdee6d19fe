"""Predictions, against what they were told."""

from dataclasses import replace

import pytest

from server.decoding.options import DecodingOptions
from server.engine.cost import CostModel
from tests.server.engine.parts import GREEDY

SMALL, LARGE = 4, 60  # rows


@pytest.fixture
def cost() -> CostModel:
    """Has seen steps of two sizes that take 1 ms and a tenth of one for each row, and steps while sentences waited."""
    model = CostModel(64)
    for _ in range(100):
        for rows in (SMALL, LARGE):
            model.observe_step(rows, step_seconds(rows))
    return model


def step_seconds(rows: float) -> float:
    return 0.001 + 0.0001 * rows


@pytest.mark.parametrize("rows", [1, SMALL, 30, LARGE, 64])
def test_steps_lie_on_the_line_through_those_seen(cost: CostModel, rows: int) -> None:
    assert cost.step_seconds(rows) == pytest.approx(step_seconds(rows), rel=0.03)


def test_before_any_step_there_is_a_guess() -> None:
    model = CostModel(64)

    assert 0 < model.step_seconds(1) < model.step_seconds(64)


def test_steps_of_one_size_only_say_something_of_others() -> None:
    model = CostModel(64)
    for _ in range(1000):
        model.observe_step(4, 0.1)

    assert model.step_seconds(4) == pytest.approx(0.1)
    assert 0.1 < model.step_seconds(64) < 16 * 0.1


# Of the built-in model, with one lane: the golden sentence's first step, and the mean of those of its four beams; then
# what a row-step took of 128 sentences at once.
@pytest.mark.parametrize(
    ("first_ms", "beams_ms", "row_step_us"), [(3.3, 2.85, 193), (4.0, 2.5, 175), (8.2, 6.7, 537), (7.7, 5.0, 302)]
)
def test_full_batches_are_forecast_by_the_warm_up(first_ms: float, beams_ms: float, row_step_us: float) -> None:
    model = CostModel(128)
    model.observe_step(1, first_ms / 1e3)
    for _ in range(17):
        model.observe_step(4, beams_ms / 1e3)

    assert 0.5 < model.row_step_seconds / (row_step_us / 1e6) < 2


def test_a_single_sentences_steps_say_little_of_a_full_batch() -> None:
    forecasts = []
    for first_seconds in (0.0003, 0.003, 0.01):
        model = CostModel(128)
        for _ in range(17):
            model.observe_step(1, first_seconds)
            model.observe_step(4, 0.003)
        forecasts.append(model.step_seconds(128))
        assert model.step_seconds(1) <= model.step_seconds(4) <= model.step_seconds(5) <= forecasts[-1]

    assert all(0.005 < forecast < 0.03 for forecast in forecasts), "it is 0.0185 by the assumption alone"


def test_more_rows_never_seem_to_take_less() -> None:
    model = CostModel(64)
    model.observe_step(2, 0.5)  # a first step is slow
    model.observe_step(32, 0.1)

    assert model.step_seconds(64) >= model.step_seconds(32) >= model.step_seconds(2) > 0


def test_what_is_seen_is_forgotten(cost: CostModel) -> None:
    for _ in range(1000):
        cost.observe_step(LARGE, 1.0)

    assert cost.step_seconds(LARGE) == pytest.approx(1.0, rel=0.01)


def test_work_costs_what_a_full_batch_takes_until_sentences_have_waited(cost: CostModel) -> None:
    assert cost.row_step_seconds == pytest.approx(step_seconds(64) / 64, rel=0.1)

    for _ in range(1000):
        cost.observe_step(10, step_seconds(10), 0.005)

    assert cost.row_step_seconds == pytest.approx(0.0005)


def test_a_lane_that_only_begins_to_fill_says_nothing_of_what_work_costs(cost: CostModel) -> None:
    for rows in (1, 4, 16):
        cost.observe_step(rows, 0.080, 0.080)

    assert cost.row_step_seconds <= 0.080 / 16


def test_lengths_are_learned(cost: CostModel) -> None:
    for _ in range(1000):
        cost.observe_sentence(source_tokens=10, steps=30)

    assert cost.steps(20, GREEDY) == pytest.approx(60)
    assert cost.steps(20, DecodingOptions(beam_size=1, max_output_tokens=7)) == 7
    assert cost.steps(20, DecodingOptions(beam_size=1, min_output_tokens=99)) == 100
    assert cost.steps(2, DecodingOptions(beam_size=1, target_prefix=(5,) * 30)) == 31
    assert cost.demand([20], DecodingOptions(beam_size=1, min_length_ratio=10.0)).steps == 200
    demand = cost.demand([5, 20], DecodingOptions(beam_size=4))
    assert demand.work == pytest.approx(4 * 75)
    assert demand.steps == pytest.approx(60)
    assert (demand.rows, demand.num_sentences) == (4, 2)


def test_a_text_is_taken_to_be_made_of_sentences_of_usual_length(cost: CostModel) -> None:
    for _ in range(1000):
        cost.observe_sentence(source_tokens=10, steps=10)
        cost.observe_text(characters=400, source_tokens=100)
    cost.observe_text(characters=0, source_tokens=0)

    large, many = cost.demand_of_texts([400_000], GREEDY), cost.demand_of_texts([40] * 10_000, GREEDY)

    assert large.work == many.work == pytest.approx(100_000)
    assert [large.steps, many.steps] == pytest.approx([64, 10])
    assert (large.num_sentences, many.num_sentences) == (100_000 / 32, 10_000)
    assert cost.demand_of_texts([400_000], replace(GREEDY, max_length_ratio=0.5)).steps == 32


def test_a_step_that_was_stopped_does_not_make_callers_unwelcome(cost: CostModel) -> None:
    for _ in range(64):
        cost.observe_step(LARGE, step_seconds(LARGE), step_seconds(LARGE))
    before = cost.step_seconds(LARGE), cost.row_step_seconds

    cost.observe_step(LARGE, 30.0, 30.0)

    assert cost.step_seconds(LARGE) == pytest.approx(before[0], rel=0.06)
    assert cost.row_step_seconds == pytest.approx(before[1], rel=0.06)


def test_the_first_step_of_a_size_is_doubted_too(cost: CostModel) -> None:
    cost.observe_step(16, 30.0)

    assert cost.step_seconds(16) <= 8.1 * step_seconds(16)


def test_a_rate_that_nobody_waited_for_is_forgotten(cost: CostModel) -> None:
    for _ in range(1000):
        cost.observe_step(SMALL, step_seconds(SMALL), step_seconds(SMALL))
    assert cost.row_step_seconds == pytest.approx(step_seconds(SMALL) / SMALL)

    for _ in range(1000):
        cost.observe_step(SMALL, step_seconds(SMALL))

    assert cost.row_step_seconds == pytest.approx(cost.step_seconds(64) / 64)
    assert cost.row_step_seconds < step_seconds(SMALL) / SMALL / 2


def test_a_given_target_takes_as_many_steps_as_it_has_tokens(cost: CostModel) -> None:
    given = DecodingOptions(beam_size=1, given_targets=((7,) * 40,), forced_prefix=(5,))

    assert cost.steps(2, given) == 41
