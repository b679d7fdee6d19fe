"""Who runs in a batch and who leaves it, with integers only: no model, no threads."""

from server.engine.limits import Footprint
from server.engine.row_plan import RowPlan
from tests.server.engine.parts import new_sentence, run_step


def test_sentences_get_a_row_each_in_their_order() -> None:
    plan = RowPlan()
    sentences = [new_sentence() for _ in range(3)]

    run_step(plan, sentences)

    assert plan.running == sentences
    assert [sentence.rows for sentence in sentences] == [[0], [1], [2]]


def test_newcomer_joins_while_others_run() -> None:
    plan = RowPlan()
    first, second = new_sentence(), new_sentence()
    run_step(plan, [first])

    run_step(plan, [second], {first: [0]})

    assert plan.running == [first, second]
    assert (first.rows, second.rows) == ([0], [1])


def test_who_has_entered_takes_room_before_there_is_a_row() -> None:
    plan = RowPlan()

    plan.add([new_sentence(beam_size=4)])

    assert (plan.num_rows, plan.footprint) == (0, Footprint.of(4, 5))


def test_who_has_no_row_yet_can_leave() -> None:
    plan = RowPlan()
    failed = new_sentence(beam_size=4)
    plan.add([failed])

    plan.remove([failed])

    assert (plan.running, plan.num_rows, plan.footprint) == ([], 0, Footprint())


def test_cancelled_sentence_frees_its_row_before_the_next_step() -> None:
    plan = RowPlan()
    first, second = new_sentence(), new_sentence()
    run_step(plan, [first])

    first.future.cancel()
    over = plan.over(0.0)
    plan.remove(over)
    run_step(plan, [second])

    assert over == [first]
    assert (first.rows, second.rows, plan.num_rows) == ([], [0], 1)


def test_a_sentence_whose_caller_left_before_it_entered_is_over() -> None:
    plan = RowPlan()
    left, stays = new_sentence(), new_sentence()
    left.future.cancel()

    run_step(plan, [left, stays])

    assert plan.over(0.0) == [left]


def test_running_sentences_are_over_one_after_the_other() -> None:
    plan = RowPlan()
    left, early, late, patient = new_sentence(), new_sentence(deadline=1.0), new_sentence(deadline=2.0), new_sentence()
    run_step(plan, [left, late, early, patient])
    left.future.cancel()

    found = []
    for now in (0.5, 0.9, 1.0, 1.5, 2.0, 9.0):
        found.append(plan.over(now))
        plan.remove(found[-1])

    assert found == [[left], [], [early], [], [late], []]
    patient.future.cancel()
    assert plan.over(9.0) == [patient]


def test_sentences_are_not_looked_at_while_none_can_be_over() -> None:
    plan = RowPlan()
    looks = []

    class Running(list[object]):
        def __iter__(self) -> object:  # type: ignore[override]
            looks.append(1)
            return super().__iter__()

    run_step(plan, [new_sentence(deadline=2.0), new_sentence()])
    plan.running = Running(plan.running)  # type: ignore[assignment]

    assert plan.over(1.0) == []
    assert not looks
    assert len(plan.over(2.0)) == 1
    assert looks
