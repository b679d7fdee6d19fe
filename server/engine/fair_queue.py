"""The queue of waiting sentences. Flows take turns by cost; within a flow, the request that is due first goes first.

Between flows this is start-time fair queueing (Goyal, Vin and Cheng 1996). Each flow has a tag, the virtual start of
its next sentence. The flow with the lowest tag is next; its tag grows by the sentence's work over the flow's weight.
Foreground and background each have a virtual time of their own, because the lanes serve them at different rates.
"""

from bisect import bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Self

from server.engine.flow import Flow
from server.engine.sentence import Sentence

_BY_KEY = attrgetter("key")


class Entry:
    """The waiting sentences of one request, at least one; they share flow and deadline.

    Attributes:
        key: its place in its flow. The lowest goes first; at equal keys the entry that came first.
        sentences: that have not been taken, the next one first.
        load: of these.
        forecast_seconds: see `Sentence`.
    """

    __slots__ = ("flow", "forecast_seconds", "key", "load", "sentences")

    def __init__(self, sentences: Sequence[Sentence], due: float) -> None:
        self.flow: Flow = sentences[0].flow
        self.key = (self.flow.rank, due)
        self.sentences = deque(sentences)
        self.load = Load.of(sentences)
        self.forecast_seconds: float | None = None


@dataclass(slots=True)
class Load:
    """How much waits: sentences, their source tokens, the rows that they will take, and their row-steps."""

    num_sentences: int = 0
    num_tokens: int = 0
    num_rows: int = 0
    work: float = 0.0

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> Self:
        """Returns the load of sentences."""
        load = cls()
        for sentence in sentences:
            load.num_sentences += 1
            load.num_tokens += len(sentence.source_ids)
            load.num_rows += sentence.footprint.rows
            load.work += sentence.work
        return load

    def count(self, other: Self, sign: int) -> None:
        """Adds another load, +1, or takes it off, -1."""
        self.num_sentences += sign * other.num_sentences
        self.num_tokens += sign * other.num_tokens
        self.num_rows += sign * other.num_rows
        self.work += sign * other.work


@dataclass(slots=True)
class _FlowQueue:
    """The entries of one flow, by their keys."""

    entries: list[Entry] = field(default_factory=list)
    load: Load = field(default_factory=Load)
    tag: float = 0.0


_NOTHING = _FlowQueue()  # of a flow that has never had anything here


class FairQueue:
    """Orders entries; it knows no time and no limits. One thread at a time may use it.

    Attributes:
        load: of all flows.
        background: flows that are in the background.
    """

    def __init__(self) -> None:
        self.load = Load()
        self.background: Collection[Flow] = ()
        self._flows: defaultdict[Flow, _FlowQueue] = defaultdict(_FlowQueue)
        # Of foreground and background, the tag of the flow whose sentence was taken last.
        self._virtual_times = [0.0, 0.0]

    def __iter__(self) -> Iterator[Entry]:
        for queue in self._flows.values():
            yield from queue.entries

    def add(self, entry: Entry) -> None:
        """Adds an entry."""
        queue = self._flows[entry.flow]
        if not queue.entries:
            queue.tag = max(queue.tag, self._virtual_times[entry.flow in self.background])
        insort(queue.entries, entry, key=_BY_KEY)
        for load in (self.load, queue.load):
            load.count(entry.load, +1)

    def set_background(self, flows: Collection[Flow]) -> None:
        """Puts these flows into the background, and all others into the foreground.

        A flow that changes is as far before or behind the virtual time as it was.
        """
        for flow in {*flows} ^ {*self.background}:
            there, other = self._virtual_times[flow in flows], self._virtual_times[flow not in flows]
            self._flows[flow].tag += there - other
        self.background = flows

    def head(self, *, is_background: bool) -> Entry | None:
        """Returns the entry that is next in the background, or in the foreground; None if none waits there."""
        flows = self.background
        waiting = [queue for flow, queue in self._flows.items() if queue.entries and (flow in flows) == is_background]
        return min(waiting, key=attrgetter("tag")).entries[0] if waiting else None

    def pop(self, entry: Entry) -> Sentence:
        """Removes the next sentence of an entry, which ends the turn of its flow."""
        queue = self._flows[entry.flow]
        self._virtual_times[entry.flow in self.background] = queue.tag
        sentence = entry.sentences.popleft()
        queue.tag += sentence.work / entry.flow.weight
        self._count_off(entry, [sentence])
        return sentence

    def remove(self, entry: Entry, sentences: Collection[Sentence]) -> list[Sentence]:
        """Removes and returns those of the sentences that an entry has, and the entry itself once it has no more."""
        gone = [sentence for sentence in entry.sentences if sentence in sentences]
        if gone:
            entry.sentences = deque(sentence for sentence in entry.sentences if sentence not in sentences)
            self._count_off(entry, gone)
        return gone

    def work_before(self, flow: Flow, due: float) -> float:
        """Returns the row-steps that wait in a flow and go before a request of this flow that is due then."""
        queue = self._flows.get(flow, _NOTHING)
        # Few entries are after it, because requests come about in the order in which they are due.
        after = bisect_right(queue.entries, (flow.rank, due), key=_BY_KEY)
        return queue.load.work - sum(entry.load.work for entry in queue.entries[after:])

    def load_of(self, flow: Flow) -> Load:
        """Returns what waits of a flow."""
        return self._flows.get(flow, _NOTHING).load

    def _count_off(self, entry: Entry, sentences: list[Sentence]) -> None:
        queue = self._flows[entry.flow]
        gone = Load.of(sentences) if entry.sentences else entry.load  # all that was left
        for load in (self.load, queue.load, entry.load):
            load.count(gone, -1)
        if not entry.sentences:
            queue.entries.remove(entry)
