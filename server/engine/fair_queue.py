"""The queue of waiting sentences. Flows take turns by cost; within a flow, the request that is due first goes first.

Between flows this is start-time fair queueing (Goyal, Vin and Cheng 1996). Each flow has a tag, the virtual start of
its next sentence. The flow with the lowest tag is next; its tag grows by the sentence's work over the flow's weight.
"""

from bisect import bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from server.engine.flow import Flow
from server.engine.sentence import Sentence

_BY_KEY = attrgetter("key")


class Entry:
    """The waiting sentences of one request, at least one; they share flow and deadline.

    Attributes:
        key: its place in its flow. The lowest goes first; at equal keys the entry that came first.
        sentences: that have not been taken, the next one first.
        work: row-steps of these.
    """

    __slots__ = ("flow", "key", "sentences", "work")

    def __init__(self, sentences: Sequence[Sentence], due: float) -> None:
        self.flow: Flow = sentences[0].flow
        self.key = (self.flow.rank, due)
        self.sentences = deque(sentences)
        self.work = sum(sentence.work for sentence in sentences)


@dataclass(slots=True)
class Load:
    """How much waits: sentences, their source tokens, the rows that they will take, and their row-steps."""

    num_sentences: int = 0
    num_tokens: int = 0
    num_rows: int = 0
    work: float = 0.0

    def count(self, sentences: Iterable[Sentence], sign: int) -> None:
        """Adds sentences, +1, or takes them off, -1."""
        for sentence in sentences:
            self.num_sentences += sign
            self.num_tokens += sign * len(sentence.source_ids)
            self.num_rows += sign * sentence.footprint.rows
            self.work += sign * sentence.work


@dataclass(slots=True)
class _FlowQueue:
    """The entries of one flow, by their keys."""

    entries: list[Entry] = field(default_factory=list)
    load: Load = field(default_factory=Load)
    tag: float = 0.0


class FairQueue:
    """Orders entries; it knows no time and no limits. One thread at a time may use it.

    Attributes:
        load: of all flows.
    """

    def __init__(self) -> None:
        self.load = Load()
        self._flows: defaultdict[Flow, _FlowQueue] = defaultdict(_FlowQueue)
        self._virtual_time = 0.0  # tag of the flow whose sentence was taken last

    def __iter__(self) -> Iterator[Entry]:
        for queue in self._flows.values():
            yield from queue.entries

    def add(self, entry: Entry) -> None:
        """Adds an entry."""
        queue = self._flows[entry.flow]
        if not queue.entries:
            queue.tag = max(queue.tag, self._virtual_time)
        insort(queue.entries, entry, key=_BY_KEY)
        for load in (self.load, queue.load):
            load.count(entry.sentences, +1)

    def head(self, flows: Collection[Flow], *, are_in: bool) -> Entry | None:
        """Returns the entry that is next of those whose flows are in `flows`, or else of those whose are not."""
        waiting = [queue for flow, queue in self._flows.items() if queue.entries and (flow in flows) == are_in]
        return min(waiting, key=attrgetter("tag")).entries[0] if waiting else None

    def pop(self, entry: Entry) -> Sentence:
        """Removes the next sentence of an entry, which ends the turn of its flow."""
        queue = self._flows[entry.flow]
        self._virtual_time = queue.tag
        sentence = entry.sentences.popleft()
        queue.tag += sentence.work / entry.flow.weight
        self._count_off(entry, [sentence])
        return sentence

    def remove(self, entry: Entry, sentences: list[Sentence]) -> None:
        """Removes sentences of an entry, and the entry itself once it has no more."""
        gone = set(sentences)
        entry.sentences = deque(sentence for sentence in entry.sentences if sentence not in gone)
        self._count_off(entry, sentences)

    def work_before(self, flow: Flow, due: float) -> float:
        """Returns the row-steps that wait in a flow and go before a request of this flow that is due then."""
        queue = self._flows.get(flow, _FlowQueue())
        # Few entries are after it, because requests come about in the order in which they are due.
        after = bisect_right(queue.entries, (flow.rank, due), key=_BY_KEY)
        return queue.load.work - sum(entry.work for entry in queue.entries[after:])

    def load_of(self, flow: Flow) -> Load:
        """Returns what waits of a flow."""
        return self._flows.get(flow, _FlowQueue()).load

    def _count_off(self, entry: Entry, sentences: list[Sentence]) -> None:
        queue = self._flows[entry.flow]
        entry.work -= sum(sentence.work for sentence in sentences)
        for load in (self.load, queue.load):
            load.count(sentences, -1)
        if not entry.sentences:
            queue.entries.remove(entry)
