"""Who waits, and who is next: one queue that feeds the scheduler of every lane.

Source of the idea of a padded-token budget: text-embeddings-inference.
"""

import math
import threading
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from server.errors import NotServing, Overloaded
from server.sequence import Sequence

RETRY_AFTER_SECONDS = 1.0  # told to a client that was refused
_LOOKS_PER_STEP = 32  # waiting requests; 15 us of a step that takes milliseconds


@dataclass(slots=True)
class _WaitingRequest:
    """What still waits of a request: its sentences in order, and their source tokens."""

    sequences: deque[Sequence]
    num_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """What one lane runs at once; a single sentence passes whatever it takes.

    Attributes:
        max_rows: beams of all its sentences.
        max_cached_positions: of the self- and cross-attention caches of all rows; a translation is taken to be as long
            as its source.
        max_encode_tokens: sentences x source tokens of the longest one in an encoder run, which bounds how long the
            running rows stall.
    """

    max_rows: int
    max_cached_positions: int
    max_encode_tokens: int


class WaitingQueue:
    """Round robin over requests, first come first served within one; shared by all lanes (hence the lock).

    So a request of many sentences does not stand in front of a small one. The queue is bounded in sentences and
    tokens: a request is admitted whole while it stands below both limits. Of a single request at most half a limit
    counts, so that one alone never shuts the others out; at most two such large ones wait at a time.
    """

    def __init__(self, *, max_sentences: int, max_tokens: int, num_lanes: int) -> None:
        self._max_sentences = max_sentences
        self._max_tokens = max_tokens
        self._num_lanes = num_lanes
        self._requests: deque[_WaitingRequest] = deque()  # none of them empty; the first one is next
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
            raise Overloaded(
                f"queue is full: {self.num_sentences} sentences wait, limit {self._max_sentences}",
                reason="sentences",
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        if self._charged_tokens >= self._max_tokens:
            raise Overloaded(
                f"queue is full: {self.num_tokens} source tokens wait, limit {self._max_tokens}",
                reason="tokens",
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )

    def add(self, sequences: Iterable[Sequence]) -> None:
        """Appends a request's sentences, all or none; raises as `check_room`."""
        waiting = deque(sequences)
        request = _WaitingRequest(waiting, sum(len(sequence.source_ids) for sequence in waiting))
        with self._changed:
            self.check_room()
            if waiting:
                self._requests.append(request)
                self._charge(request, +1)
                self._count(waiting, +1)
                self._changed.notify_all()

    def take(
        self, limits: BatchLimits, held_rows: int = 0, held_positions: int = 0, use_shortlist: bool | None = None
    ) -> list[Sequence]:
        """Removes the next sentences that a lane may encode now.

        Args:
            limits: of the lane's batch.
            held_rows: that those which it runs take.
            held_positions: of the caches, that they take.
            use_shortlist: whether they use the shortlist; None if there are none.
        """
        with self._changed:
            fair_share = math.ceil((self._waiting_rows + self._running_rows) / self._num_lanes)
            taken: list[Sequence] = []
            longest = 0
            while self._requests:
                request = self._requests[0]
                head = request.sequences[0]
                if use_shortlist is None:
                    use_shortlist = head.options.use_shortlist
                elif use_shortlist != head.options.use_shortlist:
                    break
                longest = max(longest, len(head.source_ids))
                rows = held_rows + head.num_rows
                positions = held_positions + head.num_cached_positions
                if held_rows and (
                    held_rows >= fair_share or rows > limits.max_rows or positions > limits.max_cached_positions
                ):
                    break
                if taken and longest * (len(taken) + 1) > limits.max_encode_tokens:
                    break
                taken.append(self._pop(request))
                held_rows, held_positions = rows, positions
                self._requests.rotate(-1)
                if not request.sequences:
                    self._requests.pop()
            self._count(taken, -1)
            self._running_rows += sum(sequence.num_rows for sequence in taken)
            return taken

    def drop_over(self, now: float) -> list[Sequence]:
        """Removes the sentences, of any request's first ones, whose caller has left or whose deadline has passed.

        A request's sentences share their caller and their deadline, so its first one speaks for the rest.

        To look at every request in every step would make 10,000 waiting ones as dear as the step itself. So only
        every so many calls do look, at all of them, as if each call looked at `_LOOKS_PER_STEP` of them: with no more
        than these waiting, every call does. `take` may return a sentence that nobody has looked at.
        """
        with self._changed:
            dropped: list[Sequence] = []
            self._owed_looks += _LOOKS_PER_STEP
            if self._owed_looks < len(self._requests):
                return dropped
            self._owed_looks = 0
            for request in self._requests:
                while request.sequences and request.sequences[0].is_over(now):
                    dropped.append(self._pop(request))
            if dropped:
                self._requests = deque(request for request in self._requests if request.sequences)
                self._count(dropped, -1)
            return dropped

    def release(self, num_rows: int) -> None:
        """Notes that a lane has freed rows."""
        with self._changed:
            self._running_rows -= num_rows

    def is_rest(self, num_rows: int) -> bool:
        """Says whether these rows are all that there is: nothing waits, and no other lane has any."""
        return self._running_rows == num_rows and not self._requests

    def wait(self) -> bool:
        """Blocks an idle lane until there may be work; says whether the queue is still open."""
        with self._changed:
            self._changed.wait_for(lambda: self._requests or not self.is_open)
            return self.is_open

    def close(self) -> list[Sequence]:
        """Refuses all further work, wakes every lane, and returns what waits."""
        with self._changed:
            self.is_open = False
            left = [sequence for request in self._requests for sequence in request.sequences]
            self._requests.clear()
            self._charged_sentences = self._charged_tokens = 0
            self._count(left, -1)
            self._changed.notify_all()
            return left

    def _pop(self, request: _WaitingRequest) -> Sequence:
        self._charge(request, -1)
        first = request.sequences.popleft()
        request.num_tokens -= len(first.source_ids)
        self._charge(request, +1)
        return first

    def _charge(self, request: _WaitingRequest, sign: int) -> None:
        self._charged_sentences += sign * min(len(request.sequences), self._most_sentences)
        self._charged_tokens += sign * min(request.num_tokens, self._most_tokens)

    def _count(self, sequences: Collection[Sequence], sign: int) -> None:
        self.num_sentences += sign * len(sequences)
        self.num_tokens += sign * sum(len(sequence.source_ids) for sequence in sequences)
        self._waiting_rows += sign * sum(sequence.num_rows for sequence in sequences)
