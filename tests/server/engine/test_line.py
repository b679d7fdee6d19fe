"""Flows that wait in one line, with integers only."""

from collections import Counter, deque

from server.engine.flow import Flow
from server.engine.flow_queue import WaitingRequest
from server.engine.line import Line
from server.engine.sentence import Sentence
from tests.server.engine.parts import new_sentence


def arrive(line: Line, flow: Flow, count: int, beam_size: int = 1) -> list[Sentence]:
    sentences = [new_sentence(beam_size=beam_size, flow=flow) for _ in range(count)]
    work = sum(sentence.work for sentence in sentences)
    line.add(WaitingRequest(deque(sentences), work, 1000.0, (0, 0.0, line.num_requests)))
    return sentences


def pop(line: Line, barred: str = "") -> Sentence | None:
    request = line.next(lambda sentence: sentence.flow.name != barred)
    return line.pop(request) if request is not None else None


def served(line: Line, count: int) -> Counter[str]:
    taken = [pop(line) for _ in range(count)]
    return Counter(sentence.flow.name for sentence in taken if sentence)


A, B = Flow(name="a"), Flow(name="b")


def test_flows_take_turns() -> None:
    line = Line()
    arrive(line, A, 100)
    arrive(line, B, 10)

    assert served(line, 20) == {"a": 10, "b": 10}
    assert served(line, 20) == {"a": 20}


def test_a_turn_is_as_long_as_its_sentence_is_dear() -> None:
    line = Line()
    arrive(line, A, 100, beam_size=4)
    arrive(line, B, 100)

    assert served(line, 50) == {"a": 10, "b": 40}


def test_weights_count() -> None:
    line = Line()
    arrive(line, Flow(name="a", weight=3.0), 100)
    arrive(line, B, 100)

    assert served(line, 40) == {"a": 30, "b": 10}


def test_a_flow_that_had_nothing_to_do_has_no_claim_on_the_past() -> None:
    line = Line()
    arrive(line, A, 100)
    served(line, 50)
    arrive(line, B, 50)

    assert served(line, 20) == {"a": 10, "b": 10}


def test_whoever_may_not_run_keeps_its_place() -> None:
    line = Line()
    (first,), (second,) = arrive(line, A, 1), arrive(line, B, 1)

    assert pop(line, barred="a") is second
    assert pop(line, barred="a") is None
    assert pop(line) is first
    assert not line


def test_a_line_knows_what_waits() -> None:
    line = Line()
    arrive(line, A, 3)
    arrive(line, B, 2)
    assert (line.num_requests, line.work(), len(list(line)), bool(line)) == (2, 5.0, 2, True)

    line.remove(next(iter(line)))
    assert (line.num_requests, line.work()) == (1, 2.0)
    line.clear()
    assert (line.num_requests, bool(line)) == (0, False)
