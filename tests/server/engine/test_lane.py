"""A lane over a fake network, stepped by hand."""

from concurrent.futures import Future
from typing import Any

import pytest

from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.flow import Flow
from server.engine.lane import Lane, LaneState
from server.errors import EngineFailed
from server.network import StepKind
from tests.fakes import EOS
from tests.server.engine.parts import GREEDY, SHORTLIST, Parts, Stepped, decoder_of, sentence_of, tokens


def step(lane: Lane, times: int = 1) -> None:
    for _ in range(times):
        lane.step()


def test_a_lane_is_alone_while_no_other_has_anything_to_do() -> None:
    parts = Parts(num_lanes=2)
    lane, other = parts.open_lane(), parts.open_lane()
    parts.submit(5)
    lane.step()
    parts.submit(1)
    lane.step()  # the second sentence waits for the other lane
    other.step()
    lane.step()
    other.step()  # the second sentence leaves
    lane.step()

    assert parts.runner.was_alone == [True, False, False, False, False, True]


def test_sentences_of_different_kinds_run_side_by_side_and_never_share_a_step(parts: Parts, lane: Lane) -> None:
    futures = [
        future for options in (GREEDY, SHORTLIST, GREEDY, SHORTLIST) for future in parts.submit(3, options=options)
    ]
    step(lane, 4)

    assert all(future.result(0).hypotheses[0].ids == tokens(3) for future in futures)
    assert parts.runner.admitted == [(kind, row) for kind in StepKind for row in (0, 1)]  # two rows of a batch each
    assert parts.runner.kinds == [*StepKind] * 4


def test_a_lane_alone_with_both_kinds_waiting_does_not_run_empty(parts: Parts, lane: Lane) -> None:
    for i in range(100):
        parts.submit(2 + i % 5, options=SHORTLIST if i % 2 else GREEDY)

    num_steps = 0
    while parts.queue.charges.num_sentences:
        lane.step()
        num_steps += 1

    assert parts.sample("batch_rows_sum") / num_steps > 7.5  # of 8 at every turn


def test_batches_of_a_lane_share_its_rows(parts: Parts, lane: Lane) -> None:
    parts.submit(*[3] * 5)
    parts.submit(*[3] * 5, options=SHORTLIST)

    lane.step()

    assert lane.num_rows == 8
    assert parts.queue.charges.num_sentences == 2


def test_sentences_of_one_kind_share_their_steps(parts: Parts, lane: Lane) -> None:
    parts.submit(3, 3, options=SHORTLIST)
    parts.submit(3, options=SHORTLIST)
    lane.step()

    assert parts.runner.kinds == [StepKind.SHORTLIST]
    assert [row for _, row in parts.runner.admitted] == [0, 1, 2]


def test_a_batch_for_a_kind_takes_memory_once_it_is_needed(parts: Parts, lane: Lane) -> None:
    assert lane.cache_bytes == 0
    parts.submit(3)
    lane.step()
    plain_bytes = lane.cache_bytes
    assert plain_bytes > 0

    parts.submit(3, options=SHORTLIST)
    lane.step()

    assert lane.cache_bytes == 2 * plain_bytes
    assert lane.num_rows == 2


def test_a_step_with_nobody_there_runs_no_network(parts: Parts, lane: Lane) -> None:
    lane.step()

    assert parts.runner.num_steps == 0
    assert parts.sample("engine_last_step_timestamp_seconds") == 0


def test_the_time_of_the_last_step_is_told(parts: Parts, lane: Lane) -> None:
    parts.submit(3)

    lane.step()

    assert parts.sample("engine_last_step_timestamp_seconds") > 1.7e9  # the clock on the wall, not the engine's


def test_a_lane_whose_step_has_failed_takes_probes_alone_until_it_is_forgiven(parts: Parts, lane: Lane) -> None:
    parts.runner.step_failures = [RuntimeError("broken")]
    (failed,) = parts.submit(3)
    lane.step()
    (waits,) = parts.submit(1)
    step(lane, 3)

    assert isinstance(failed.exception(0), EngineFailed)
    assert (lane.state, lane.num_rows, parts.alarm.is_set()) == (LaneState.SUSPECT, 0, True)

    probe = sentence_of((2, 50, EOS))
    lane.probe(probe)
    step(lane, 3)
    assert probe.future.result(0).hypotheses[0].ids == tokens(2)
    assert not waits.done()

    lane.forgive(lane.num_faults)
    step(lane, 2)
    assert waits.result(0).hypotheses[0].ids == tokens(1)
    assert lane.state is LaneState.SERVING


def test_faults_since_then_are_not_forgiven(parts: Parts, lane: Lane) -> None:
    for _ in range(2):
        num_faults = lane.num_faults
        parts.runner.step_failures = [RuntimeError("broken")]
        lane.probe(sentence_of((2, 50, EOS)))
        lane.step()

    lane.forgive(num_faults)

    assert lane.state is LaneState.SUSPECT


def test_a_probe_waits_for_rows_and_nobody_else_takes_them(parts: Parts, lane: Lane) -> None:
    first = parts.submit(*[2] * 8)
    lane.step()
    parts.submit(1)
    probe = sentence_of((2, 50, EOS), DecodingOptions(beam_size=2))
    lane.probe(probe)

    lane.step()
    assert lane.num_rows == 8
    lane.step()
    assert all(future.done() for future in first)
    lane.step()
    assert parts.queue.charges.num_sentences == 1
    step(lane, 3)

    assert probe.future.result(0).hypotheses[0].ids == tokens(2)
    assert parts.queue.charges.num_sentences == 0


def test_a_probe_goes_to_the_batch_of_its_kind(parts: Parts, lane: Lane) -> None:
    for options in (SHORTLIST, GREEDY):
        lane.probe(sentence_of((1, 50, EOS), options))
        step(lane, 2)

    assert parts.runner.kinds == [StepKind.SHORTLIST] * 2 + [StepKind.PLAIN] * 2


def test_a_new_lane_in_the_place_of_another_is_suspect(parts: Parts) -> None:
    new = parts.open_lane(is_proven=False)

    states = [new.state]
    new.forgive(0)
    states.append(new.state)

    assert states == [LaneState.SUSPECT, LaneState.SERVING]


def test_the_step_it_takes_is_told_and_its_median(parts: Parts, lane: Lane) -> None:
    parts.submit(3)
    lane.step()
    decoder = decoder_of(lane._batches[0])
    original, told = decoder.step, []

    def take_long(*arguments: Any, **options: Any) -> Stepped:
        told.append(lane.step_started)
        parts.clock.now += 2.0
        stepped: Stepped = original(*arguments, **options)
        return stepped

    decoder.step = take_long
    step(lane, 3)

    assert told == [0.0, 2.0, 4.0]
    assert lane.step_started is None
    assert lane.median_step_seconds == 2.0


def test_a_decoder_that_cannot_be_opened_fails_its_sentences_alone(
    parts: Parts, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runs,) = parts.submit(3)
    lane.step()

    def fail(kind: StepKind, max_rows: int) -> None:
        raise MemoryError

    monkeypatch.setattr(parts.runner, "open_decoder", fail)
    (fails,) = parts.submit(3, options=SHORTLIST)
    step(lane, 4)

    with pytest.raises(EngineFailed):
        fails.result(0)
    assert runs.result(0).hypotheses[0].ids == tokens(3)


FLOOD, MODEST = Flow(name="flood"), Flow(name="modest")


def flood(parts: Parts) -> None:
    """Has one flow ask for more than there is, beside another that is active; steps take time."""

    def pass_time(*_: Any) -> None:
        parts.clock.now += 0.01

    parts.runner.spoil = pass_time
    parts.queue.shares.ask(FLOOD, 1e6)
    parts.queue.shares.ask(MODEST, 0.1)
    submit(parts, 30, FLOOD, count=20)


def submit(parts: Parts, num_tokens: int, flow: Flow, count: int = 1) -> list[Future[Result]]:
    sentences = [sentence_of((num_tokens, 50, EOS), flow=flow) for _ in range(count)]
    parts.queue.add(sentences)
    return [sentence.future for sentence in sentences]


def batch_sizes(parts: Parts, lane: Lane, num_steps: int) -> list[int]:
    """Has the lane take so many turns, and returns the rows of each step of the network."""
    before = parts.runner.num_steps
    step(lane, num_steps)
    return [len(rows) for rows in parts.runner.fed[before:]]


def test_rows_of_a_flood_do_not_share_the_steps_of_others(parts: Parts, lane: Lane) -> None:
    flood(parts)
    assert batch_sizes(parts, lane, 9) == [4] * 9, "half of the lane's eight rows"

    (answer,) = submit(parts, 5, MODEST)

    assert batch_sizes(parts, lane, 6) == [1] * 6 + [4], "it has had time ahead; after the last one nobody is before it"
    assert answer.done()
    assert batch_sizes(parts, lane, 2) == [4, 4]


def test_a_flood_has_its_share_of_the_time_beside_who_asks_for_more_than_its_own(parts: Parts, lane: Lane) -> None:
    flood(parts)
    submit(parts, 40, MODEST)
    step(lane)
    parts.queue.shares.ask(MODEST, 0.45 / parts.cost.least_row_step_seconds)  # of the half second that counts

    assert batch_sizes(parts, lane, 8) == [1, 4] * 8, "half of it, as steps of either take the same time"


def test_the_pace_of_a_flood_is_what_time_its_steps_have(parts: Parts, lane: Lane) -> None:
    shares = parts.queue.shares
    flood(parts)
    submit(parts, 200, MODEST)
    step(lane, 2)
    paces = []
    for _ in range(2):
        step(lane, 20)
        shares.ask(FLOOD, 1e6)
        paces.append(shares.pace(FLOOD))

    assert shares.pace(MODEST) == 1.0
    assert 0.0 < paces[1] < paces[0] < 0.7


def test_what_gives_way_keeps_no_memory_once_it_has_gone(parts: Parts, lane: Lane) -> None:
    flood(parts)
    lane.step()
    assert lane.cache_bytes > 0

    for sentence in parts.queue.close():
        sentence.future.cancel()
    for batch in lane._background:
        for sentence in batch.sentences:
            sentence.future.cancel()
    lane.step()

    assert (lane.num_rows, lane.cache_bytes) == (0, 0)
