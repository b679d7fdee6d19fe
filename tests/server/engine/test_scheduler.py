"""The scheduler with integers only: no model, no threads."""

import random

from server.engine.cost import CostModel
from server.engine.scheduler import Scheduler
from server.engine.sentence import Sentence
from server.engine.waiting_queue import WaitingQueue
from server.network import RowMoves, StepKind
from tests.fakes import FakeClock, lane_limits
from tests.server.engine.parts import LITTLE, new_queue, new_sentence


def new_scheduler(
    queue: WaitingQueue,
    max_rows: int = 8,
    max_encode_tokens: int = 1000,
    max_cached_positions: int = 10**6,
    clock: FakeClock | None = None,
    kind: StepKind = StepKind.PLAIN,
) -> Scheduler:
    limits = lane_limits(max_rows, max_cached_positions, max_encode_tokens)
    return Scheduler(kind, queue, CostModel(max_rows), limits, clock or FakeClock())


def run_step(scheduler: Scheduler, parents: dict[Sentence, list[int]] | None = None) -> list[Sentence]:
    """One iteration as the engine makes it; returns who was admitted."""
    plan = scheduler.schedule()
    scheduler.arrange(parents or {})
    scheduler.place(plan.admitted)
    return plan.admitted


def test_sentences_are_admitted_in_order_of_arrival() -> None:
    queue = new_queue()
    sentences = [new_sentence() for _ in range(3)]
    queue.add(sentences)

    admitted = run_step(new_scheduler(queue))

    assert admitted == sentences
    assert [sentence.rows for sentence in sentences] == [[0], [1], [2]]
    assert queue.num_sentences == 0
    assert queue.num_tokens == 0


def test_admission_stops_when_the_rows_are_taken() -> None:
    queue = new_queue()
    queue.add([new_sentence(beam_size=4) for _ in range(3)])

    assert len(run_step(new_scheduler(queue, max_rows=8))) == 2
    assert queue.num_sentences == 1


def test_admission_stops_at_the_padded_token_budget() -> None:
    queue = new_queue()
    queue.add([new_sentence(tokens=10), new_sentence(tokens=20), new_sentence(tokens=1)])

    # 2 x 20 padded tokens fit into 40; a third sentence would make it 3 x 20.
    assert len(run_step(new_scheduler(queue, max_encode_tokens=40))) == 2


def test_a_batch_of_long_sentences_has_fewer_rows() -> None:
    queue = new_queue()
    short, long, wide, last = sentences = [
        new_sentence(tokens=10),
        new_sentence(tokens=20),
        new_sentence(tokens=5, beam_size=2),
        new_sentence(tokens=5),
    ]
    queue.add(sentences)
    scheduler = new_scheduler(queue, max_rows=64, max_cached_positions=75)

    assert run_step(scheduler) == [short, long, wide]  # 2 x 30 positions, and 3 x 5 of a beam of 2
    assert run_step(scheduler) == []
    scheduler.remove([short])
    assert run_step(scheduler) == [last]


def test_a_batch_with_one_long_sentence_has_fewer_rows() -> None:
    queue = new_queue()
    long, *short = sentences = [new_sentence(tokens=100), *(new_sentence(tokens=10) for _ in range(9))]
    queue.add(sentences)
    scheduler = new_scheduler(queue, max_rows=64, max_cached_positions=375)

    assert run_step(scheduler) == [long, *short[:6]]  # 7 x 2 rows of 100 positions, 320 of them counted
    scheduler.remove([long])
    assert run_step(scheduler) == short[6:]


def test_a_sentence_that_has_become_long_counts_as_it_is() -> None:
    queue = new_queue()
    queue.add([new_sentence(tokens=10)])
    scheduler = new_scheduler(queue, max_rows=64, max_cached_positions=100)
    run_step(scheduler)
    queue.add([new_sentence(tokens=10)])

    assert scheduler.schedule(longest=101).admitted == []
    assert len(scheduler.schedule(longest=100).admitted) == 1


def test_a_sentence_beyond_all_limits_runs_alone() -> None:
    queue = new_queue()
    long = new_sentence(tokens=100, beam_size=4)
    queue.add([long, new_sentence()])

    assert run_step(new_scheduler(queue, max_cached_positions=120)) == [long]


def test_sentence_longer_than_the_budget_is_encoded_alone() -> None:
    queue = new_queue()
    long = new_sentence(tokens=100)
    queue.add([long, new_sentence()])

    assert run_step(new_scheduler(queue, max_encode_tokens=40)) == [long]


def test_wide_beam_at_the_head_is_not_overtaken() -> None:
    queue = new_queue()
    scheduler = new_scheduler(queue, max_rows=4)
    queue.add([new_sentence(beam_size=2), new_sentence(beam_size=4), new_sentence(beam_size=1)])

    assert len(run_step(scheduler)) == 1
    assert run_step(scheduler) == []


def test_newcomer_joins_while_others_run() -> None:
    queue = new_queue()
    scheduler = new_scheduler(queue)
    first, second = new_sentence(), new_sentence()
    queue.add([first])
    run_step(scheduler)
    queue.add([second])

    assert run_step(scheduler, {first: [0]}) == [second]
    assert scheduler.running == [first, second]
    assert second.rows == [1]


def test_last_row_moves_into_the_gap_that_a_finished_sentence_leaves() -> None:
    queue = new_queue()
    scheduler = new_scheduler(queue)
    first, second, third = (new_sentence() for _ in range(3))
    queue.add([first, second, third])
    run_step(scheduler)

    scheduler.remove([first])
    moves = scheduler.arrange({second: [0], third: [0]})

    assert (moves.to, moves.from_, moves.common) == ([0], [2], [0])
    assert (second.rows, third.rows) == ([1], [0])


def test_beam_grows_into_free_rows() -> None:
    queue = new_queue()
    scheduler = new_scheduler(queue)
    beam = new_sentence(beam_size=3)
    queue.add([beam])
    run_step(scheduler)

    moves = scheduler.arrange({beam: [0, 0, 0]})

    assert beam.rows == [0, 1, 2]
    assert (moves.to, moves.from_) == ([1, 2], [0, 0])


def test_beam_reorder_moves_only_changed_rows_within_the_sentence() -> None:
    queue = new_queue()
    scheduler = new_scheduler(queue)
    beam = new_sentence(beam_size=3)
    queue.add([beam])
    run_step(scheduler)
    scheduler.arrange({beam: beam.search.advance([[10, 11, 12]], [[-0.1, -0.2, -0.3]])})

    parents = beam.search.advance([[13, 14, 15]] * 3, [[-5.0, -6.0, -7.0], [-9.0, -9.0, -9.0], [-0.1, -0.2, -5.0]])
    moves = scheduler.arrange({beam: parents})

    assert parents == [2, 2, 0]
    assert beam.rows == [2, 1, 0]
    assert (moves.to, moves.from_, moves.common) == ([1], [2], [1])  # of bos 11 and bos 12, bos


def test_cancelled_sentence_frees_its_row_before_the_next_step() -> None:
    queue = new_queue()
    scheduler = new_scheduler(queue, max_rows=1)
    first, second = new_sentence(), new_sentence()
    queue.add([first, second])
    run_step(scheduler)

    first.future.cancel()
    plan = scheduler.schedule()

    assert plan.cancelled == [first]
    assert plan.admitted == [second]


def test_expired_sentence_is_dropped_whether_it_runs_or_waits() -> None:
    clock = FakeClock()
    queue = new_queue()
    scheduler = new_scheduler(queue, max_rows=1, clock=clock)
    runs, waits, later = new_sentence(deadline=1.0), new_sentence(deadline=1.0), new_sentence(deadline=9.0)
    queue.add([runs, waits])
    run_step(scheduler)
    queue.add([later])

    clock.now = 1.0
    plan = scheduler.schedule()

    assert plan.expired == [runs, waits]
    assert plan.admitted == [later]


def test_running_sentences_are_over_one_after_the_other() -> None:
    queue, clock = new_queue(), FakeClock()
    scheduler = new_scheduler(queue, clock=clock)
    left, early, late, patient = new_sentence(), new_sentence(deadline=1.0), new_sentence(deadline=2.0), new_sentence()
    queue.add([left, late, early, patient])
    run_step(scheduler)
    left.future.cancel()

    plans = []
    for clock.now in (0.5, 0.9, 1.0, 1.5, 2.0, 9.0):
        plans.append(scheduler.schedule())

    assert [plan.cancelled for plan in plans] == [[left], [], [], [], [], []]
    assert [plan.expired for plan in plans] == [[], [], [early], [], [late], []]
    patient.future.cancel()
    assert scheduler.schedule().cancelled == [patient]
    assert not scheduler.running


def test_rows_are_held_for_beams_that_will_grow() -> None:
    queue = new_queue()
    scheduler = new_scheduler(queue)
    queue.add([new_sentence(beam_size=4), new_sentence()])

    run_step(scheduler)

    assert (scheduler.num_rows, scheduler.footprint.rows) == (2, 5)


def test_batches_of_a_lane_share_its_limits() -> None:
    queue = new_queue()
    plain, short = (new_scheduler(queue, max_rows=8, kind=kind) for kind in StepKind)
    for i in range(20):
        queue.add([new_sentence(use_shortlist=i % 2 == 1)])

    assert len(plain.schedule().admitted) == 8
    assert short.schedule(others=plain.footprint).admitted == []
    plain.remove(plain.running[:3])
    assert len(short.schedule(others=plain.footprint).admitted) == 3


def check_counts(scheduler: Scheduler) -> None:
    assert scheduler.num_rows == sum(len(sentence.rows) for sentence in scheduler.running)
    assert scheduler.footprint.rows == sum(sentence.footprint.rows for sentence in scheduler.running)
    assert scheduler.footprint.positions == sum(sentence.footprint.positions for sentence in scheduler.running)


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


def test_rows_stay_without_gaps_and_follow_their_beams_through_random_traffic() -> None:
    """Plays a cache of row contents along: every beam must find its own history in the row it was given."""
    rng = random.Random(1)
    queue = new_queue()
    scheduler = new_scheduler(queue, max_rows=12)
    rows: list[Row] = [None] * 12
    histories: dict[Sentence, list[tuple[int, ...]]] = {}
    parents: dict[Sentence, list[int]] = {}
    for _ in range(400):
        if rng.random() < 0.5:
            queue.add([new_sentence(beam_size=rng.choice([1, 1, 2, 4]))])
        for sentence, chosen in parents.items():
            histories[sentence] = [histories[sentence][beam] for beam in chosen]
        scheduler.remove([s for s in scheduler.running if not parents[s] or rng.random() < 0.1])
        for sentence in scheduler.running:
            if rng.random() < 0.02:
                sentence.future.cancel()
        plan = scheduler.schedule()
        moves = scheduler.arrange({s: p for s, p in parents.items() if len(p) > 1 or len(s.rows) > 1})  # as a lane does
        check_counts(scheduler)
        replay(moves, rows)
        scheduler.place(plan.admitted)
        for sentence in plan.admitted:
            histories[sentence] = [()]
            rows[sentence.rows[0]] = (sentence, ())
        used = [row for sentence in scheduler.running for row in sentence.rows]
        assert sorted(used) == list(range(len(used)))
        assert len(used) <= 12
        parents = {}
        for sentence in scheduler.running:
            for beam, (row, token) in enumerate(zip(sentence.rows, sentence.search.last_ids, strict=True)):
                assert rows[row] == (sentence, histories[sentence][beam])
                histories[sentence][beam] += (token,)
                rows[row] = (sentence, histories[sentence][beam])
            count = len(sentence.rows)
            best = [[*rng.sample(range(4, 9), 5), 10, 11, 12] for _ in range(count)]
            log_probs = [sorted((-rng.random() for _ in range(8)), reverse=True) for _ in range(count)]
            parents[sentence] = sentence.search.advance(best, log_probs)


def test_sentence_that_is_over_never_runs_however_many_wait() -> None:
    clock = FakeClock()
    queue = new_queue(num_lanes=1)
    scheduler = new_scheduler(queue, max_rows=2, clock=clock)
    cancelled, expired, wanted = new_sentence(), new_sentence(deadline=1.0), new_sentence()
    for sentence in [cancelled, expired, wanted, *(new_sentence() for _ in range(500))]:
        queue.add([sentence])

    cancelled.future.cancel()
    clock.now = 1.0
    plan = scheduler.schedule()

    assert (plan.cancelled, plan.expired, plan.admitted) == ([cancelled], [expired], [])
    assert scheduler.footprint.rows == 0
    assert run_step(scheduler)[0] is wanted


def test_sentences_that_are_over_make_room_within_a_few_steps_wherever_they_wait() -> None:
    queue = new_queue(max_sentences=500)
    sentences = [new_sentence() for _ in range(500)]
    for sentence in sentences:
        queue.add([sentence])
    scheduler = new_scheduler(queue, max_rows=1)
    run_step(scheduler)

    for sentence in sentences[100:]:
        sentence.future.cancel()
    plans = [scheduler.schedule() for _ in range(16)]

    assert [sentence for plan in plans for sentence in plan.cancelled] == sentences[100:]
    assert queue.num_sentences == 99
    queue.check_room(LITTLE)
