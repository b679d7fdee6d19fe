"""Which rows a plan gives to beams, with integers only: no model, no threads."""

import random

from server.engine.row_plan import RowPlan
from server.engine.sentence import Sentence
from server.network import RowMoves
from tests.server.engine.parts import new_sentence, run_step


def test_last_row_moves_into_the_gap_that_a_finished_sentence_leaves() -> None:
    plan = RowPlan(max_rows=12)
    first, second, third = (new_sentence() for _ in range(3))
    run_step(plan, [first, second, third])

    plan.remove([first])
    moves = plan.arrange()

    assert (moves.to, moves.from_, moves.common) == ([0], [2], [0])
    assert (second.rows, third.rows) == ([1], [0])


def test_beam_grows_into_free_rows() -> None:
    plan = RowPlan(max_rows=12)
    beam = new_sentence(beam_size=3)
    run_step(plan, [beam])

    plan.parents = {beam: [0, 0, 0]}
    moves = plan.arrange()

    assert beam.rows == [0, 1, 2]
    assert (moves.to, moves.from_) == ([1, 2], [0, 0])


def test_beam_reorder_moves_only_changed_rows_within_the_sentence() -> None:
    plan = RowPlan(max_rows=12)
    beam = new_sentence(beam_size=3)
    run_step(plan, [beam])
    plan.parents = {beam: beam.search.advance([[10, 11, 12]], [[-0.1, -0.2, -0.3]])}
    plan.arrange()

    parents = beam.search.advance([[13, 14, 15]] * 3, [[-5.0, -6.0, -7.0], [-9.0, -9.0, -9.0], [-0.1, -0.2, -5.0]])
    plan.parents = {beam: parents}
    moves = plan.arrange()

    assert parents == [2, 2, 0]
    assert beam.rows == [2, 1, 0]
    assert (moves.to, moves.from_, moves.common) == ([1], [2], [1])  # of bos 11 and bos 12, bos


def test_rows_are_held_for_beams_that_will_grow() -> None:
    plan = RowPlan(max_rows=12)
    run_step(plan, [new_sentence(beam_size=4), new_sentence()])

    assert (plan.num_rows, plan.footprint.rows) == (2, 5)


def check_counts(plan: RowPlan) -> None:
    assert plan.num_rows == sum(len(sentence.rows) for sentence in plan.running)
    assert plan.footprint.rows == sum(sentence.footprint.rows for sentence in plan.running)
    assert plan.footprint.positions == sum(sentence.footprint.positions for sentence in plan.running)


Row = tuple[Sentence, tuple[int, ...]] | None  # whose it is, and what it was fed


def replay(moves: RowMoves, rows: list[Row]) -> None:
    assert not set(moves.to) & set(moves.from_)
    for to, source, common in zip(moves.to, moves.from_, moves.common, strict=True):
        owner, content = rows[to], rows[source]
        assert content is not None
        if common:
            assert owner is not None
            assert (owner[0], owner[1][:common]) == (content[0], content[1][:common])
        rows[to] = content


def test_rows_stay_without_gaps_and_follow_their_beams_through_random_moves() -> None:
    """Plays a cache of row contents along: every beam must find its own history in the row it was given."""
    rng = random.Random(1)
    plan = RowPlan(max_rows=12)
    rows: list[Row] = [None] * 12
    histories: dict[Sentence, list[tuple[int, ...]]] = {}
    parents: dict[Sentence, list[int]] = {}
    waiting: list[Sentence] = []
    for _ in range(400):
        if rng.random() < 0.5:
            waiting.append(new_sentence(beam_size=rng.choice([1, 1, 2, 4])))
        for sentence, chosen in parents.items():
            histories[sentence] = [histories[sentence][beam] for beam in chosen]
        plan.remove([s for s in plan.running if not parents[s] or rng.random() < 0.1])
        for sentence in plan.running:
            if rng.random() < 0.02:
                sentence.future.cancel()
        plan.remove([sentence for sentence in plan.running if sentence.is_over(0.0)])
        has_room = waiting and plan.footprint.rows + waiting[0].footprint.rows <= 12
        entering = [waiting.pop(0)] if has_room else []
        plan.add(entering)
        plan.parents = {s: p for s, p in parents.items() if len(p) > 1 or len(s.rows) > 1}  # as `advance` does
        moves = plan.arrange()
        check_counts(plan)
        replay(moves, rows)
        plan.place(entering)
        for sentence in entering:
            histories[sentence] = [()]
            rows[sentence.rows[0]] = (sentence, ())
        used = [row for sentence in plan.running for row in sentence.rows]
        assert sorted(used) == list(range(len(used)))
        assert len(used) <= 12
        parents = {}
        for sentence in plan.running:
            for beam, (row, token) in enumerate(zip(sentence.rows, sentence.search.last_ids, strict=True)):
                assert rows[row] == (sentence, histories[sentence][beam])
                histories[sentence][beam] += (token,)
                rows[row] = (sentence, histories[sentence][beam])
            count = len(sentence.rows)
            best = [[*rng.sample(range(4, 9), 5), 10, 11, 12] for _ in range(count)]
            log_probs = [sorted((-rng.random() for _ in range(8)), reverse=True) for _ in range(count)]
            parents[sentence] = sentence.search.advance(best, log_probs)
