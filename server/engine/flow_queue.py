"""The requests of one flow that wait: who of them is next.

- Requests of a lower rank go first.
- Of one rank that request goes first that is due first: that must start first to meet its deadline (least laxity), or
  has waited `PATIENCE` times as long as it would take alone. Admission sees to it that deadlines can be met: without
  that, such an order would finish all requests a little late.
- What a request has beyond `BURST_SECONDS` of the engine's time takes turns with the rest of other large ones, sentence
  by sentence, and gets a share of the work (`LARGE_SHARE`) while small ones of its rank wait: source of the idea are
  the two levels of foreground-background scheduling (Kleinrock, Queueing Systems II, 1976). While small ones come, it
  runs in batches of its own (`server.engine.shares`).
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator

from server.engine.flow import Flow
from server.engine.sentence import Sentence

BURST_SECONDS = 0.25
PATIENCE = 20.0
LARGE_SHARE = 0.25


Key = tuple[int, float, float]


class WaitingRequest:
    """What still waits of a request.

    Args:
        sentences: in order, at least one; they share all but their sources.
        work: row-steps of all of them.
        burst: row-steps that it may have before it counts as large.
        key: by which requests of a flow are ordered: rank, instant at which it is due, number of arrival.

    Attributes:
        sentences, work: as given, of those that still wait.
        key: as given.
        flow: of its sentences.
        deadline: instant; infinite for never.
        num_tokens: source tokens that wait.
        has_begun: whether some of its sentences have been taken.
        is_large: whether it has had its burst.
    """

    __slots__ = ("_burst", "deadline", "flow", "has_begun", "is_large", "key", "num_tokens", "sentences", "work")

    def __init__(self, sentences: deque[Sentence], work: float, burst: float, key: Key) -> None:
        deadline = sentences[0].deadline
        self.sentences = sentences
        self.flow = sentences[0].flow
        self.work = work
        self.key = key
        self.deadline = math.inf if deadline is None else deadline
        self.num_tokens = sum(len(sentence.source_ids) for sentence in sentences)
        self.has_begun = False
        self.is_large = False
        self._burst = burst

    def __lt__(self, other: "WaitingRequest") -> bool:
        return self.key < other.key

    @property
    def head(self) -> Sentence:
        """The next sentence."""
        return self.sentences[0]

    @property
    def small_work(self) -> float:
        """Row-steps that it may have yet before it counts as large."""
        return max(0.0, min(self.work, self._burst))

    def end(self, now: float, step_seconds: float, work_seconds: float) -> float:
        """Returns the instant at which it would be done if nothing else waited; once begun, its first sentence.

        Args:
            now: instant.
            step_seconds: of a step.
            work_seconds: of a row-step.
        """
        rest = 0.0 if self.has_begun else self.work * work_seconds
        return now + rest + self.head.steps * step_seconds

    def pop(self) -> Sentence:
        """Removes the next sentence."""
        sentence = self.sentences.popleft()
        sentence.is_large = self.is_large
        self.num_tokens -= len(sentence.source_ids)
        self.work -= sentence.work
        self._burst -= sentence.work
        self.has_begun = True
        self.is_large = self._burst <= 0
        return sentence


class FlowQueue:
    """Orders the waiting requests of one flow; not to be used by two threads at once, but for `work_before`.

    Args:
        flow: whose they are.

    Attributes:
        flow: as given.
        work: row-steps of all that waits.
        tag: virtual start of the next sentence among all flows (start-time fair queueing, Goyal et al. 1996).
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._small: list[WaitingRequest] = []  # sorted
        self._large: deque[WaitingRequest] = deque()
        self._small_work = 0.0  # what these may have before they count as large
        self._owed = 0.0  # work that large requests have waited for, by their share
        self.work = 0.0
        self.tag = 0.0

    def __len__(self) -> int:
        return len(self._small) + len(self._large)

    def __iter__(self) -> Iterator[WaitingRequest]:
        yield from self._small
        yield from self._large

    @property
    def has_large(self) -> bool:
        """Whether a request waits that has had its burst."""
        return bool(self._large)

    def add(self, request: WaitingRequest) -> None:
        """Adds a request."""
        self.work += request.work
        self._small_work += request.small_work
        insort(self._small, request)

    def work_before(self, rank: int, due: float, *, is_large: bool) -> float:
        """Returns the row-steps that wait and would be served before the end of a request that came now."""
        if is_large:
            return self.work
        small = self._small.copy()  # the door asks without the queue's lock: lanes may take some meanwhile
        place = bisect_right(small, (rank, due, math.inf), key=_key)
        is_last = place == len(small)
        before = self._small_work if is_last else sum(request.small_work for request in small[:place])
        return before + min(self.work - self._small_work, before * LARGE_SHARE / (1 - LARGE_SHARE))

    def next(self) -> WaitingRequest:
        """Returns the request whose first sentence is next; there must be one."""
        if not self._large:
            return self._small[0]
        large = self._next_large()
        if not self._small or large.key[0] < self._small[0].key[0]:
            return large
        return large if self._owed > 0 and large.key[0] == self._small[0].key[0] else self._small[0]

    def candidates(self) -> Iterator[WaitingRequest]:
        """Yields the request whose first sentence is next, and the one that would be if that may not be taken."""
        if self:
            first = self.next()
            yield first
            if self._large and self._small:
                yield self._small[0] if first.is_large else self._next_large()

    def pop(self, request: WaitingRequest) -> Sentence:
        """Removes the first sentence of a request."""
        self.remove(request)
        sentence = request.pop()
        if sentence.is_large:
            self._owed -= sentence.work * (1 - LARGE_SHARE)
        elif self._large:
            self._owed += sentence.work * LARGE_SHARE
        if request.sentences:
            self.work += request.work
            if request.is_large:
                self._large.append(request)
            else:
                self._small_work += request.small_work
                insort(self._small, request)
        if not self._large:
            self._owed = 0.0
        return sentence

    def _next_large(self) -> WaitingRequest:
        return min(self._large, key=lambda request: request.key[0])

    def remove(self, request: WaitingRequest) -> None:
        """Removes a request with all that still waits of it."""
        self.work -= request.work
        if request.is_large:
            self._large.remove(request)
        else:
            self._small_work -= request.small_work
            del self._small[bisect_left(self._small, request)]


def _key(request: WaitingRequest) -> Key:
    return request.key
