"""Who is admitted and who leaves, with integers only: no model, no threads."""

from server.engine.busy import BusyEngines
from server.network import StepKind
from tests.fakes import FakeClock
from tests.server.engine.parts import LITTLE, new_queue, new_scheduler, new_sentence, run_step


def test_sentences_are_admitted_in_order_of_arrival() -> None:
    queue = new_queue()
    sentences = [new_sentence() for _ in range(3)]
    queue.add(sentences)

    admitted = run_step(new_scheduler(queue))

    assert admitted == sentences
    assert [sentence.rows for sentence in sentences] == [[0], [1], [2]]
    assert queue.charges.num_sentences == 0
    assert queue.charges.num_tokens == 0


def test_admission_stops_when_the_rows_are_taken() -> None:
    queue = new_queue()
    queue.add([new_sentence(beam_size=4) for _ in range(3)])

    assert len(run_step(new_scheduler(queue, max_rows=8))) == 2
    assert queue.charges.num_sentences == 1


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


def test_a_batch_has_half_of_the_rows_while_engines_share_the_core() -> None:
    clock = FakeClock()
    queue = new_queue()
    queue.busy = busy = BusyEngines(clock=clock)
    for engine in (queue, new_queue()):
        with busy.lane(engine), busy.turn(engine):
            clock.now += 0.1
    queue.add([new_sentence() for _ in range(20)])
    scheduler = new_scheduler(queue, max_rows=8)

    assert len(run_step(scheduler)) == 4
    clock.now += 10.0
    assert len(run_step(scheduler)) == 4, "it is alone"


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


def test_batches_of_a_lane_share_its_limits() -> None:
    queue = new_queue()
    plain, short = (new_scheduler(queue, max_rows=8, kind=kind) for kind in StepKind)
    for i in range(20):
        queue.add([new_sentence(use_shortlist=i % 2 == 1)])

    assert len(plain.schedule().admitted) == 8
    assert short.schedule(others=plain.footprint).admitted == []
    plain.remove(plain.running[:3])
    assert len(short.schedule(others=plain.footprint).admitted) == 3


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
    assert queue.charges.num_sentences == 99
    queue.check_room(LITTLE)
