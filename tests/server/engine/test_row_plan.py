"""Who runs in a batch and who leaves it, with integers only: no model, no threads."""

from server.engine.limits import Footprint
from server.engine.row_plan import RowPlan
from tests.server.engine.parts import new_sentence, run_step


def test_sentences_get_a_row_each_in_their_order() -> None:
    plan = RowPlan(max_rows=8)
    sentences = [new_sentence() for _ in range(3)]

    run_step(plan, sentences)

    assert plan.running == sentences
    assert [sentence.rows for sentence in sentences] == [[0], [1], [2]]


def test_newcomer_joins_while_others_run() -> None:
    plan = RowPlan(max_rows=8)
    first, second = new_sentence(), new_sentence()
    run_step(plan, [first])

    run_step(plan, [second])

    assert plan.running == [first, second]
    assert (first.rows, second.rows) == ([0], [1])


def test_who_has_entered_takes_room_before_there_is_a_row() -> None:
    plan = RowPlan(max_rows=8)

    plan.add([new_sentence(beam_size=4)])

    assert (plan.num_rows, plan.footprint) == (0, Footprint.of(4, 5))


def test_who_has_no_row_yet_can_leave() -> None:
    plan = RowPlan(max_rows=8)
    failed = new_sentence(beam_size=4)
    plan.add([failed])

    plan.remove([failed])

    assert (plan.running, plan.num_rows, plan.footprint) == ([], 0, Footprint())


def test_a_sentence_that_leaves_frees_its_row_before_the_next_step() -> None:
    plan = RowPlan(max_rows=8)
    first, second = new_sentence(), new_sentence()
    run_step(plan, [first])

    plan.remove([first])
    run_step(plan, [second])

    assert (first.rows, second.rows, plan.num_rows) == ([], [0], 1)
