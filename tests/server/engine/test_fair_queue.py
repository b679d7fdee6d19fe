"""Flows that wait together, with integers only."""

from collections import Counter

from server.engine.fair_queue import Entry, FairQueue, Load
from server.engine.flow import Flow
from server.engine.sentence import Sentence
from tests.server.engine.parts import new_sentence

A, B = Flow(name="a"), Flow(name="b")


def arrive(queue: FairQueue, flow: Flow, count: int = 1, *, beam_size: int = 1, due: float = 0.0) -> Entry:
    sentences = [new_sentence(beam_size=beam_size, flow=flow) for _ in range(count)]
    entry = Entry(sentences, due)
    queue.add(entry)
    return entry


def served(queue: FairQueue, count: int) -> list[Sentence]:
    return [queue.pop(entry) for _ in range(count) if (entry := queue.head(is_background=False))]


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
    late = arrive(queue, A, due=3.0)
    soon = arrive(queue, A, due=1.0)
    urgent = arrive(queue, Flow(name="a", rank=-1), due=9.0)
    tied = arrive(queue, A, due=1.0)
    wanted = [entry.sentences[0] for entry in (urgent, soon, tied, late)]

    assert served(queue, 4) == wanted
    assert queue.head(is_background=False) is None


def test_an_entry_goes_on_where_it_was() -> None:
    queue = FairQueue()
    entry = arrive(queue, A, 3)
    sentences = list(entry.sentences)

    assert served(queue, 2) == sentences[:2]
    assert entry.load.work == sentences[2].work
    assert [*queue] == [entry]


def test_what_waits_is_counted() -> None:
    queue = FairQueue()
    first = arrive(queue, A, 3, beam_size=4)
    arrive(queue, B, 2)
    assert queue.load == Load(5, 25, 14, 14.0)
    assert (queue.load_of(A), queue.load_of(B)) == (Load(3, 15, 12, 12.0), Load(2, 10, 2, 2.0))

    queue.remove(first, {first.sentences[1]})
    assert (queue.load.num_sentences, queue.load_of(A)) == (4, Load(2, 10, 8, 8.0))
    queue.remove(first, list(first.sentences))

    assert queue.load == Load(2, 10, 2, 2.0)
    assert [entry.flow for entry in queue] == [B]


def test_only_what_goes_first_in_its_own_flow_is_before_an_entry() -> None:
    queue = FairQueue()
    arrive(queue, A, 2, due=1.0)
    arrive(queue, A, 5, due=3.0)
    arrive(queue, B, 7, due=0.0)

    assert queue.work_before(A, 2.0) == 2.0
    assert queue.work_before(A, 4.0) == queue.work_before(A, 3.0) == 7.0
    assert queue.work_before(Flow(name="a", rank=1), 0.0) == 7.0
    assert queue.work_before(Flow(name="c"), 4.0) == 0.0
    assert queue.load_of(Flow(name="c")) == Load()
    assert set(queue._flows) == {A, B}, "a question leaves nothing behind"


def test_the_next_of_the_foreground_or_of_the_background_is_found() -> None:
    queue = FairQueue()
    first, second = arrive(queue, A), arrive(queue, B)

    found = []
    for flows in ((A,), (B,), (), (A, B)):
        queue.set_background(flows)
        found.append((queue.head(is_background=True), queue.head(is_background=False)))

    assert found == [(first, second), (second, first), (None, first), (first, None)]


C = Flow(name="c")


def take(queue: FairQueue, count: int, *, is_background: bool = False) -> Counter[str]:
    heads = (queue.head(is_background=is_background) for _ in range(count))
    return names([queue.pop(entry) for entry in heads if entry is not None])


def test_a_flow_that_begins_in_the_background_is_behind_no_foreground_that_has_had_more() -> None:
    queue = FairQueue()
    queue.set_background((B, C))
    arrive(queue, A, 100)
    arrive(queue, B, 100)
    take(queue, 50)
    take(queue, 5, is_background=True)
    take(queue, 1)

    arrive(queue, C, 100)

    assert min(take(queue, 10, is_background=True)[name] for name in "bc") >= 4


def test_a_flow_that_begins_in_the_foreground_is_not_before_others_because_the_background_has_had_less() -> None:
    queue = FairQueue()
    queue.set_background((B,))
    arrive(queue, A, 100)
    arrive(queue, B, 100)
    take(queue, 50)
    take(queue, 1, is_background=True)

    arrive(queue, C, 100)

    assert min(take(queue, 10)[name] for name in "ac") >= 4


def test_a_flow_that_enters_or_leaves_the_background_takes_turns_with_those_that_are_there() -> None:
    queue = FairQueue()
    queue.set_background((B,))
    for flow in (A, B, C):
        arrive(queue, flow, 200)
    take(queue, 100)
    take(queue, 5, is_background=True)

    queue.set_background((B, C))
    assert min(take(queue, 20, is_background=True)[name] for name in "bc") >= 9
    queue.set_background((B,))
    assert min(take(queue, 20)[name] for name in "ac") >= 9
