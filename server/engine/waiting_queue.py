"""Who waits, and who is next: one queue that feeds every lane.

Source of the idea of a padded-token budget: text-embeddings-inference.
"""

import math
import threading
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from server.engine.limits import Footprint, LaneLimits
from server.engine.sentence import Sentence
from server.errors import NotServing, Overloaded
from server.network import StepKind

_LOOKS_PER_STEP = 32  # waiting requests; 15 us of a step that takes milliseconds
_MOST_PASSED = 16  # sentences that may be taken from other lines while one waits


@dataclass(slots=True)
class _WaitingRequest:
    """What still waits of a request: its sentences in order, and their source tokens."""

    sentences: deque[Sentence]
    num_tokens: int


@dataclass(slots=True)
class _Line:
    """The requests whose sentences take the same kind of step: none is empty, and the first one is next.

    `num_passed` sentences of other lines have been taken since the first of this one began to wait.
    """

    requests: deque[_WaitingRequest] = field(default_factory=deque)
    num_passed: int = 0


class WaitingQueue:
    """Round robin over requests, first come first served within one; shared by all lanes (hence the lock).

    So a request of many sentences does not stand in front of a small one. The queue is bounded in sentences and
    tokens: a request is admitted whole while it stands below both limits. Of a single request at most half a limit
    counts, so that one alone never shuts the others out; at most two such large ones wait at a time.

    Sentences of different kinds cannot share a step, so they wait in lines of their own. A line that has seen
    `_MOST_PASSED` sentences of the others pass comes next: they get nothing until it had its turn.
    """

    def __init__(self, *, max_sentences: int, max_tokens: int, num_lanes: int) -> None:
        self._max_sentences = max_sentences
        self._max_tokens = max_tokens
        self._num_lanes = num_lanes
        self._lines = {kind: _Line() for kind in StepKind}
        self._changed = threading.Condition()
        self._most_sentences = max(1, max_sentences // 2)  # that one request is charged for
        self._most_tokens = max(1, max_tokens // 2)
        self._charged_sentences = 0
        self._charged_tokens = 0
        self._waiting_rows = 0
        self._running_rows = 0  # of all lanes
        self._owed_looks = 0
        self.is_open = True
        self.num_sentences = 0
        self.num_tokens = 0

    def check_room(self) -> None:
        """Says whether a request would be admitted now.

        Raises:
            Overloaded: the queue is at a limit.
            NotServing: the queue is closed.
        """
        if not self.is_open:
            raise NotServing("the server is shutting down")
        if self._charged_sentences >= self._max_sentences:
            message = f"queue is full: {self.num_sentences} sentences wait, limit {self._max_sentences}"
            raise Overloaded(message, "sentences")
        if self._charged_tokens >= self._max_tokens:
            message = f"queue is full: {self.num_tokens} source tokens wait, limit {self._max_tokens}"
            raise Overloaded(message, "tokens")

    def add(self, sentences: Iterable[Sentence]) -> None:
        """Appends a request's sentences, which share their options, all or none; raises as `check_room`."""
        waiting = deque(sentences)
        request = _WaitingRequest(waiting, sum(len(sentence.source_ids) for sentence in waiting))
        with self._changed:
            self.check_room()
            if waiting:
                self._lines[waiting[0].kind].requests.append(request)
                self._charge(request, +1)
                self._count(waiting, +1)
                self._changed.notify_all()

    def has_waiting(self, kind: StepKind) -> bool:
        """Whether sentences of a kind wait."""
        return bool(self._lines[kind].requests)

    def take(
        self, kind: StepKind, limits: LaneLimits, footprint: Footprint | None = None, longest: int = 0
    ) -> list[Sentence]:
        """Removes the next sentences of a kind that a lane may encode now.

        Args:
            kind: of the lane's batch that they are for.
            limits: of the lane.
            footprint: of all sentences that the lane runs; None for none.
            longest: positions of the longest of their rows.
        """
        footprint = footprint or Footprint()
        with self._changed:
            fair_share = math.ceil((self._waiting_rows + self._running_rows) / self._num_lanes)
            line = self._lines[kind]
            others = [other for other in self._lines.values() if other is not line and other.requests]
            taken: list[Sentence] = []
            longest_taken = 0
            while line.requests and all(other.num_passed < _MOST_PASSED for other in others):
                request = line.requests[0]
                head = request.sentences[0]
                longest = max(longest, len(head.source_ids))
                longest_taken = max(longest_taken, len(head.source_ids))
                with_head = footprint + head.footprint
                if footprint.rows and (footprint.rows >= fair_share or not limits.allow(with_head, longest)):
                    break
                if taken and longest_taken * (len(taken) + 1) > limits.max_encode_tokens:
                    break
                taken.append(self._pop(request))
                footprint = with_head
                line.requests.rotate(-1)
                if not request.sentences:
                    line.requests.pop()
                line.num_passed = 0
                for other in others:
                    other.num_passed += 1
            self._count(taken, -1)
            self._running_rows += sum(sentence.footprint.rows for sentence in taken)
            return taken

    def drop_over(self, now: float) -> list[Sentence]:
        """Removes the sentences, of any request's first ones, whose caller has left or whose deadline has passed.

        A request's sentences share their caller and their deadline, so its first one speaks for the rest.

        To look at every request in every step would make 10,000 waiting ones as dear as the step itself. So only
        every so many calls do look, at all of them, as if each call looked at `_LOOKS_PER_STEP` of them: with no more
        than these waiting, every call does. `take` may return a sentence that nobody has looked at.
        """
        with self._changed:
            dropped: list[Sentence] = []
            self._owed_looks += _LOOKS_PER_STEP
            if self._owed_looks < sum(len(line.requests) for line in self._lines.values()):
                return dropped
            self._owed_looks = 0
            for line in self._lines.values():
                for request in line.requests:
                    while request.sentences and request.sentences[0].is_over(now):
                        dropped.append(self._pop(request))
            if dropped:
                for line in self._lines.values():
                    line.requests = deque(request for request in line.requests if request.sentences)
                self._count(dropped, -1)
            return dropped

    def release(self, num_rows: int) -> None:
        """Notes that a lane has freed rows."""
        with self._changed:
            self._running_rows -= num_rows

    def is_all(self, num_rows: int) -> bool:
        """Says whether these rows are all that there is: nothing waits, and no other lane has any."""
        return self._running_rows == num_rows and not self._has_any()

    def wait(self) -> bool:
        """Blocks an idle lane until there may be work; says whether the queue is still open."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_any() or not self.is_open)
            return self.is_open

    def close(self) -> list[Sentence]:
        """Refuses all further work, wakes every lane, and returns what waits."""
        with self._changed:
            self.is_open = False
            left = [s for line in self._lines.values() for request in line.requests for s in request.sentences]
            for line in self._lines.values():
                line.requests.clear()
            self._charged_sentences = self._charged_tokens = 0
            self._count(left, -1)
            self._changed.notify_all()
            return left

    def _has_any(self) -> bool:
        return any(line.requests for line in self._lines.values())

    def _pop(self, request: _WaitingRequest) -> Sentence:
        self._charge(request, -1)
        first = request.sentences.popleft()
        request.num_tokens -= len(first.source_ids)
        self._charge(request, +1)
        return first

    def _charge(self, request: _WaitingRequest, sign: int) -> None:
        self._charged_sentences += sign * min(len(request.sentences), self._most_sentences)
        self._charged_tokens += sign * min(request.num_tokens, self._most_tokens)

    def _count(self, sentences: Collection[Sentence], sign: int) -> None:
        self.num_sentences += sign * len(sentences)
        self.num_tokens += sign * sum(len(sentence.source_ids) for sentence in sentences)
        self._waiting_rows += sign * sum(sentence.footprint.rows for sentence in sentences)
