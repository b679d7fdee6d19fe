"""The queue of waiting sentences. Flows take turns by cost; within a flow, the request that is due first goes first.

Between flows this is start-time fair queueing (Goyal, Vin and Cheng 1996). Each flow has a tag, the virtual start of
its next sentence. The flow with the lowest tag is next; its tag grows by the sentence's work over the flow's weight.
"""

from bisect import bisect_left, insort
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from server.engine.flow import Flow, FlowId
from server.engine.sentence import Sentence


class Key(NamedTuple):
    """The order of entries within a flow.

    Attributes:
        rank: of the request; lower ranks go first.
        due: instant by which the request should start.
        number: of its arrival.
    """

    rank: int
    due: float
    number: int = 0


class Entry:
    """The waiting sentences of one request.

    Args:
        sentences: in order, at least one; they share flow and deadline.

    Attributes:
        sentences: that have not been taken.
        work: row-steps of these.
        has_begun: whether any sentence has been taken.
    """

    __slots__ = ("flow", "has_begun", "key", "sentences", "work")

    def __init__(self, sentences: Sequence[Sentence], key: Key) -> None:
        self.sentences = deque(sentences)
        self.key = key
        self.flow: Flow = sentences[0].flow
        self.work = sum(sentence.work for sentence in sentences)
        self.has_begun = False

    @property
    def head(self) -> Sentence:
        """The next sentence."""
        return self.sentences[0]


def _key(entry: Entry) -> Key:
    return entry.key


class _FlowQueue:
    """The entries of one flow, by their keys."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.num_sentences = 0
        self.num_tokens = 0
        self.num_rows = 0
        self.work = 0.0
        self.tag = 0.0


class FairQueue:
    """Orders entries; it knows no time and no limits. One thread at a time may use it.

    Attributes:
        num_sentences, num_tokens, num_rows: sentences that wait, their source tokens, and the rows that they will take.
    """

    def __init__(self) -> None:
        self._flows: defaultdict[FlowId, _FlowQueue] = defaultdict(_FlowQueue)
        self._virtual_time = 0.0  # tag of the flow whose sentence was taken last
        self.num_sentences = 0
        self.num_tokens = 0
        self.num_rows = 0

    def __iter__(self) -> Iterator[Entry]:
        for queue in self._flows.values():
            yield from queue.entries

    def add(self, entry: Entry) -> None:
        """Adds an entry to its flow."""
        queue = self._flows[entry.flow.id]
        if not queue.entries:
            queue.tag = max(queue.tag, self._virtual_time)
        insort(queue.entries, entry, key=_key)
        for sentence in entry.sentences:
            self._count(queue, sentence, +1)

    def heads(self) -> list[Entry]:
        """Returns the first entry of each flow, in the order of the flows' tags."""
        waiting = [queue for queue in self._flows.values() if queue.entries]
        return [queue.entries[0] for queue in sorted(waiting, key=lambda queue: queue.tag)]

    def pop(self, entry: Entry) -> Sentence:
        """Removes the first sentence of an entry, and counts it as a turn of the flow."""
        queue = self._flows[entry.flow.id]
        self._virtual_time = queue.tag
        sentence = entry.head
        queue.tag += sentence.work / entry.flow.weight
        entry.has_begun = True
        self.remove(entry, [sentence])
        return sentence

    def remove(self, entry: Entry, sentences: list[Sentence]) -> None:
        """Removes sentences from an entry, and the entry if none is left."""
        queue = self._flows[entry.flow.id]
        for sentence in sentences:
            entry.sentences.remove(sentence)
            entry.work -= sentence.work
            self._count(queue, sentence, -1)
        if not entry.sentences:
            del queue.entries[bisect_left(queue.entries, entry.key, key=_key)]

    def work_before(self, flow: Flow, key: Key) -> tuple[float, float]:
        """Returns the row-steps that wait in a flow before an entry with this key, and those of all other flows."""
        queue = self._flows.get(flow.id, _FlowQueue())
        before = sum(entry.work for entry in queue.entries[: bisect_left(queue.entries, key, key=_key)])
        return before, sum(other.work for other in self._flows.values() if other is not queue)

    def of_flow(self, flow: Flow) -> tuple[int, int]:
        """Returns the sentences and source tokens of a flow that wait."""
        queue = self._flows.get(flow.id, _FlowQueue())
        return queue.num_sentences, queue.num_tokens

    def rows(self) -> Counter[FlowId]:
        """Returns the rows that the waiting sentences of each flow will take."""
        return Counter({flow: queue.num_rows for flow, queue in self._flows.items()})

    def _count(self, queue: _FlowQueue, sentence: Sentence, sign: int) -> None:
        queue.work += sign * sentence.work
        for counts in (self, queue):
            counts.num_sentences += sign
            counts.num_tokens += sign * len(sentence.source_ids)
            counts.num_rows += sign * sentence.footprint.rows
