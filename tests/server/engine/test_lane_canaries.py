"""A lane whose steps fail, and canaries, over a fake network, stepped by hand."""

from typing import Any

import pytest

from server.decoding.options import DecodingOptions
from server.engine.lane import Lane, LaneState
from server.errors import EngineFailed
from server.network import StepKind
from tests.fakes import EOS
from tests.server.engine.parts import GREEDY, NEIGHBOUR, SHORTLIST, Parts, sentence_of, tokens


def step(lane: Lane, times: int = 1) -> None:
    for _ in range(times):
        lane.step()


def test_a_lane_whose_step_has_failed_takes_canaries_alone_until_it_is_forgiven(parts: Parts, lane: Lane) -> None:
    parts.runner.step_failures = [RuntimeError("broken")]
    (failed,) = parts.submit(3)
    lane.step()
    (waits,) = parts.submit(1)
    step(lane, 3)

    assert isinstance(failed.exception(0), EngineFailed)
    assert (lane.state, lane.num_rows, parts.alarm.is_set()) == (LaneState.SUSPECT, 0, True)

    canary = sentence_of((2, 50, EOS))
    lane.send_canary(canary)
    step(lane, 3)
    assert canary.future.result(0).hypotheses[0].ids == tokens(2)
    assert not waits.done()

    lane.forgive(lane.faults.count)
    step(lane, 2)
    assert waits.result(0).hypotheses[0].ids == tokens(1)
    assert lane.state is LaneState.SERVING


def test_faults_since_then_are_not_forgiven(parts: Parts, lane: Lane) -> None:
    for _ in range(2):
        num_faults = lane.faults.count
        parts.runner.step_failures = [RuntimeError("broken")]
        lane.send_canary(sentence_of((2, 50, EOS)))
        lane.step()

    lane.forgive(num_faults)

    assert lane.state is LaneState.SUSPECT


def test_a_canary_waits_for_rows_and_nobody_else_takes_them(parts: Parts, lane: Lane) -> None:
    first = parts.submit(*[2] * 7)
    lane.step()
    parts.submit(1)
    canary = sentence_of((2, 50, EOS), DecodingOptions(beam_size=2))
    lane.send_canary(canary)

    lane.step()
    assert lane.num_rows == 7
    lane.step()
    assert all(future.done() for future in first)
    lane.step()
    assert parts.dispatch.waiting.num_sentences == 1
    step(lane, 3)

    assert canary.future.result(0).hypotheses[0].ids == tokens(2)
    assert parts.dispatch.waiting.num_sentences == 0


def test_a_canary_goes_to_the_batch_of_its_kind(parts: Parts, lane: Lane) -> None:
    for options in (SHORTLIST, GREEDY):
        lane.send_canary(sentence_of((1, 50, EOS), options))
        step(lane, 2)

    assert parts.runner.kinds == [StepKind.SHORTLIST] * 2 + [StepKind.PLAIN] * 2


def test_a_new_lane_in_the_place_of_another_is_suspect(parts: Parts) -> None:
    new = parts.open_lane(is_proven=False)

    states = [new.state]
    new.forgive(0)
    states.append(new.state)

    assert states == [LaneState.SUSPECT, LaneState.SERVING]


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


def test_a_dispatch_that_fails_fells_no_lane(parts: Parts, lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    (runs,) = parts.submit(9)
    lane.step()
    (waits,) = parts.submit(1)

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken")

    with monkeypatch.context() as patched:
        patched.setattr(parts.dispatch, "take", fail)
        lane.step()
    lane.forgive(lane.faults.count)
    step(lane, 2)

    assert isinstance(runs.exception(0), EngineFailed)
    assert waits.result(0).hypotheses[0].ids == tokens(1)


def test_requests_of_others_are_admitted_while_a_canary_runs(parts: Parts, lane: Lane) -> None:
    lane.send_canary(sentence_of((5, 50, EOS)))
    lane.step()

    (answer,) = parts.submit(1, flow=NEIGHBOUR)
    step(lane, 2)

    assert answer.result(0).hypotheses[0].ids == tokens(1)
