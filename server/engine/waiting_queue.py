"""Who waits, and who is next: one queue that feeds the scheduler of every lane.

Source of the idea of a padded-token budget: text-embeddings-inference.
"""

import math
import threading
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from server.engine.sequence import Sequence
from server.errors import NotServing, Overloaded

RETRY_AFTER_SECONDS = 1.0  # told to a client that was refused
_LOOKS_PER_STEP = 32  # waiting requests; 15 us of a step that takes milliseconds
_MOST_PADDED = 4  # times the cached positions that are counted, by one sentence much longer than the others
_MOST_PASSED = 16  # sentences that may be taken from one line while the other waits


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
            as its source. With all rows as long as the longest, `_MOST_PADDED` times as many.
        max_encode_tokens: sentences x source tokens of the longest one in an encoder run, which bounds how long the
            running rows stall.
    """

    max_rows: int
    max_cached_positions: int
    max_encode_tokens: int

    def allow(self, held: "Held", longest: int) -> bool:
        """Whether a batch whose longest row has so many positions may hold as much."""
        return (
            held.rows <= self.max_rows
            and held.positions <= self.max_cached_positions
            and held.cache_rows * longest <= _MOST_PADDED * self.max_cached_positions
        )


@dataclass(frozen=True, slots=True)
class Held:
    """What the sentences of a batch take, beams that they do not have yet included.

    Attributes:
        rows: of the batch.
        cache_rows: rows of the self-attention cache, and slots of the cross-attention cache.
        positions: of these, as they are counted in `BatchLimits`.
    """

    rows: int = 0
    cache_rows: int = 0
    positions: int = 0

    def plus(self, sequence: Sequence, sign: int = +1) -> "Held":
        """Returns what is held with a further sentence, or (-1) without one."""
        return Held(
            self.rows + sign * sequence.num_rows,
            self.cache_rows + sign * sequence.num_cache_rows,
            self.positions + sign * sequence.num_cached_positions,
        )


class WaitingQueue:
    """Round robin over requests, first come first served within one; shared by all lanes (hence the lock).

    So a request of many sentences does not stand in front of a small one. The queue is bounded in sentences and
    tokens: a request is admitted whole while it stands below both limits. Of a single request at most half a limit
    counts, so that one alone never shuts the others out; at most two such large ones wait at a time.

    Sentences with a shortlist and those without cannot share a step, so they wait in lines of their own. A lane stays
    with the line of its batch, but for as many sentences at most as the other line may see pass: then it lets its
    batch run empty, and changes. Of two lanes each can stay with a line for good.
    """

    def __init__(self, *, max_sentences: int, max_tokens: int, num_lanes: int) -> None:
        self._max_sentences = max_sentences
        self._max_tokens = max_tokens
        self._num_lanes = num_lanes
        # By the use of a shortlist; no request is empty, and the first one is next.
        self._lines: dict[bool, deque[_WaitingRequest]] = {False: deque(), True: deque()}
        self._passed = {False: 0, True: 0}  # sentences of the other line, while this one waits
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
        """Appends a request's sentences, which share their options, all or none; raises as `check_room`."""
        waiting = deque(sequences)
        request = _WaitingRequest(waiting, sum(len(sequence.source_ids) for sequence in waiting))
        with self._changed:
            self.check_room()
            if waiting:
                self._lines[waiting[0].options.use_shortlist].append(request)
                self._charge(request, +1)
                self._count(waiting, +1)
                self._changed.notify_all()

    def take(
        self, limits: BatchLimits, held: Held, longest: int = 0, use_shortlist: bool | None = None
    ) -> list[Sequence]:
        """Removes the next sentences that a lane may encode now.

        Args:
            limits: of the lane's batch.
            held: by those which it runs.
            longest: positions of the longest of their rows.
            use_shortlist: whether they use the shortlist; None if there are none.
        """
        with self._changed:
            fair_share = math.ceil((self._waiting_rows + self._running_rows) / self._num_lanes)
            taken: list[Sequence] = []
            longest_taken = 0
            if use_shortlist is None:  # of two lines that wait, the one that has seen more pass
                use_shortlist = max(self._lines, key=lambda line: (bool(self._lines[line]), self._passed[line]))
            line, other = self._lines[use_shortlist], self._lines[not use_shortlist]
            while line and not (other and self._passed[not use_shortlist] >= _MOST_PASSED):
                request = line[0]
                head = request.sequences[0]
                longest = max(longest, len(head.source_ids))
                longest_taken = max(longest_taken, len(head.source_ids))
                with_head = held.plus(head)
                if held.rows and (held.rows >= fair_share or not limits.allow(with_head, longest)):
                    break
                if taken and longest_taken * (len(taken) + 1) > limits.max_encode_tokens:
                    break
                taken.append(self._pop(request))
                held = with_head
                line.rotate(-1)
                if not request.sequences:
                    line.pop()
                self._passed[use_shortlist] = 0
                self._passed[not use_shortlist] += bool(other)
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
            if self._owed_looks < sum(map(len, self._lines.values())):
                return dropped
            self._owed_looks = 0
            for line in self._lines.values():
                for request in line:
                    while request.sequences and request.sequences[0].is_over(now):
                        dropped.append(self._pop(request))
            if dropped:
                for key, line in self._lines.items():
                    self._lines[key] = deque(request for request in line if request.sequences)
                self._count(dropped, -1)
            return dropped

    def release(self, num_rows: int) -> None:
        """Notes that a lane has freed rows."""
        with self._changed:
            self._running_rows -= num_rows

    def is_rest(self, num_rows: int) -> bool:
        """Says whether these rows are all that there is: nothing waits, and no other lane has any."""
        return self._running_rows == num_rows and not any(self._lines.values())

    def wait(self) -> bool:
        """Blocks an idle lane until there may be work; says whether the queue is still open."""
        with self._changed:
            self._changed.wait_for(lambda: any(self._lines.values()) or not self.is_open)
            return self.is_open

    def close(self) -> list[Sequence]:
        """Refuses all further work, wakes every lane, and returns what waits."""
        with self._changed:
            self.is_open = False
            left = [sequence for line in self._lines.values() for request in line for sequence in request.sequences]
            for line in self._lines.values():
                line.clear()
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
