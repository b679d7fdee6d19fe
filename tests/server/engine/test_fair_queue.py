"""Flows that wait together, with integers only."""

from collections import Counter

from server.engine.fair_queue import Entry, FairQueue, Key
from server.engine.flow import Flow
from server.engine.sentence import Sentence
from tests.server.engine.parts import new_sentence

A, B = Flow(name="a"), Flow(name="b")


def arrive(
    queue: FairQueue, flow: Flow, count: int = 1, *, beam_size: int = 1, due: float = 0.0, number: int = 0
) -> Entry:
    sentences = [new_sentence(beam_size=beam_size, flow=flow) for _ in range(count)]
    entry = Entry(sentences, Key(flow.rank, due, number))
    queue.add(entry)
    return entry


def served(queue: FairQueue, count: int) -> list[Sentence]:
    return [queue.pop(queue.heads()[0]) for _ in range(count)]


def names(sentences: list[Sentence]) -> Counter[str]:
    return Counter(sentence.flow.name for sentence in sentences)


def test_flows_take_turns() -> None:
    queue = FairQueue()
    arrive(queue, A, 100)
    arrive(queue, B, 10)

    assert names(served(queue, 20)) == {"a": 10, "b": 10}
    assert names(served(queue, 20)) == {"a": 20}


def test_a_turn_is_as_long_as_its_sentence_is_dear() -> None:
    queue = FairQueue()
    arrive(queue, A, 100, beam_size=4)
    arrive(queue, B, 100)

    assert names(served(queue, 50)) == {"a": 10, "b": 40}


def test_weights_count() -> None:
    queue = FairQueue()
    arrive(queue, Flow(name="a", weight=3.0), 100)
    arrive(queue, B, 100)

    assert names(served(queue, 40)) == {"a": 30, "b": 10}


def test_a_flow_that_had_nothing_to_do_has_no_claim_on_the_past() -> None:
    queue = FairQueue()
    arrive(queue, A, 100)
    served(queue, 50)
    arrive(queue, B, 50)

    assert names(served(queue, 20)) == {"a": 10, "b": 10}


def test_long_requests_of_a_tenant_take_turns_with_its_short_ones() -> None:
    queue = FairQueue()
    document = arrive(queue, A.of_long(), 100)
    arrive(queue, A, 100)

    taken = served(queue, 50)

    assert len(document.sentences) == 90
    assert sum(not sentence.flow.is_long for sentence in taken) == 40


def test_within_a_flow_what_is_due_first_goes_first_and_rank_before_that() -> None:
    queue = FairQueue()
    late = arrive(queue, A, due=3.0, number=1)
    soon = arrive(queue, A, due=1.0, number=2)
    urgent = arrive(queue, Flow(name="a", rank=-1), due=9.0, number=3)
    tied = arrive(queue, A, due=1.0, number=4)
    wanted = [entry.head for entry in (urgent, soon, tied, late)]

    assert served(queue, 4) == wanted
    assert queue.heads() == []


def test_an_entry_goes_on_where_it_was() -> None:
    queue = FairQueue()
    entry = arrive(queue, A, 3)
    sentences = list(entry.sentences)
    assert not entry.has_begun

    assert served(queue, 2) == sentences[:2]
    assert entry.has_begun
    assert entry.work == sentences[2].work
    assert [*queue] == [entry]


def test_what_waits_is_counted() -> None:
    queue = FairQueue()
    first = arrive(queue, A, 3, beam_size=4)
    arrive(queue, B, 2, number=1)
    assert (queue.num_sentences, queue.num_tokens, queue.num_rows) == (5, 25, 14)
    assert (queue.of_flow(A), queue.of_flow(B), queue.of_flow(Flow(name="c"))) == ((3, 15), (2, 10), (0, 0))
    assert +queue.rows() == {A.id: 12, B.id: 2}

    queue.remove(first, [first.sentences[1]])
    assert (queue.num_sentences, queue.of_flow(A)) == (4, (2, 10))
    queue.remove(first, list(first.sentences))

    assert (queue.num_sentences, queue.num_tokens, queue.num_rows) == (2, 10, 2)
    assert [entry.flow for entry in queue] == [B]


def test_only_what_goes_first_in_its_own_flow_is_before_an_entry() -> None:
    queue = FairQueue()
    arrive(queue, A, 2, due=1.0, number=1)
    arrive(queue, A, 5, due=3.0, number=2)
    arrive(queue, B, 7, due=0.0, number=3)

    assert queue.work_before(A, Key(0, 2.0, 4)) == (2.0, 7.0)
    assert queue.work_before(A, Key(0, 4.0, 4)) == (7.0, 7.0)
    assert queue.work_before(Flow(name="c"), Key(0, 4.0, 4)) == (0.0, 14.0)
    assert {flow.name for flow in queue.rows()} == {"a", "b"}, "a question leaves nothing behind"
