"""What a plan feeds the next step, row by row."""

from server.decoding.options import DecodingOptions
from server.engine.row_plan import RowPlan
from server.engine.sentence import Sentence
from tests.server.engine.parts import BOS, run_step, sentence_of


def new(source_tokens: int, beam_size: int = 1, *, with_scores: bool = False) -> Sentence:
    return sentence_of((7,) * source_tokens, DecodingOptions(beam_size=beam_size, with_scores=with_scores))


def fed(plan: RowPlan) -> tuple[list[int], list[int], list[int]]:
    inputs = plan.inputs(is_alone=False)
    assert [array.dtype.name for array in (inputs.input_ids, inputs.past_lengths, inputs.source_lengths)] == [
        "int64",
        "int32",
        "int32",
    ]
    return inputs.input_ids.tolist(), inputs.past_lengths.tolist(), inputs.source_lengths.tolist()


def advance(plan: RowPlan, *top_ids: list[int]) -> None:
    """Takes a step that returns these tokens for each row, the likeliest first."""
    log_probs = [[-0.1 * (rank + 1) for rank in range(len(ids))] for ids in top_ids]
    plan.advance([*top_ids], log_probs, {})


def test_rows_start_with_bos_and_go_on_with_the_best_tokens() -> None:
    plan = RowPlan(max_rows=4)
    run_step(plan, [new(5), new(8)])
    assert fed(plan) == ([BOS, BOS], [0, 0], [5, 8])

    advance(plan, [11], [12])
    run_step(plan, [new(3)])

    assert fed(plan) == ([11, 12, BOS], [1, 1, 0], [5, 8, 3])


def test_a_moved_row_takes_all_of_it_along() -> None:
    plan = RowPlan(max_rows=4)
    sentences = [new(5), new(8), new(6)]
    run_step(plan, sentences)
    advance(plan, [11], [12], [13])

    plan.remove(sentences[:1])
    plan.arrange()

    assert fed(plan) == ([13, 12], [1, 1], [6, 8])


def test_beams_go_on_with_the_tokens_that_their_search_chose() -> None:
    plan = RowPlan(max_rows=4)
    sentence = new(5, beam_size=2)
    run_step(plan, [sentence])

    advance(plan, [3, 21, 22, 23])
    plan.arrange()

    assert fed(plan) == ([21, 22], [1, 1], [5, 5])


def test_a_step_asks_for_no_more_than_its_rows_need() -> None:
    plan = RowPlan(max_rows=8)
    found = []
    for sentence in (new(5), new(5, with_scores=True), new(5, 4)):
        run_step(plan, [sentence])
        found.append(plan.inputs(is_alone=False))

    assert [(inputs.top_k, inputs.with_log_probs) for inputs in found] == [(1, False), (1, True), (5, True)]


def test_what_was_fed_is_not_changed_by_the_next_step() -> None:
    plan = RowPlan(max_rows=2)
    run_step(plan, [new(5)])
    inputs = plan.inputs(is_alone=True)

    advance(plan, [9])

    assert (inputs.input_ids.tolist(), inputs.past_lengths.tolist()) == ([BOS], [0])
    assert inputs.is_alone
