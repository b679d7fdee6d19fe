"""How full the waiting queue is, and for whom."""

from collections import defaultdict
from collections.abc import Callable, Collection

from server.engine.flow import Flow
from server.engine.limits import EngineLimits
from server.engine.sentence import Sentence
from server.errors import Overloaded

_FULL_SECONDS = 0.1  # that a full queue is taken to last; lanes take a small part of it meanwhile


class Charges:
    """What waiting requests are charged for, in sentences and source tokens; used under the queue's lock.

    The queue is bounded in both: a request is admitted whole while it stands below both limits. Of a single request at
    most half a limit counts, so that one alone never shuts the others out; at most two such large ones wait at a time.

    A full queue refuses those flows alone that have their share of it: nobody finds it full of others' sentences. So
    flows that come one after the other may fill it beyond its limits, each by its share at the time: five of the same
    weight to 2.3 times, at most.

    Args:
        limits: of the engine.

    Attributes:
        num_sentences: that wait.
        num_tokens: source tokens that they have.
        num_rows: that they will take.
    """

    def __init__(self, limits: EngineLimits) -> None:
        self._limits = (limits.max_waiting_sentences, limits.max_waiting_tokens)
        self._all = [0, 0]
        self._of_flow: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.num_sentences = 0
        self.num_tokens = 0
        self.num_rows = 0

    def count(self, sentences: Collection[Sentence], sign: int) -> None:
        """Notes that sentences wait, or do not any more (sign -1)."""
        self.num_sentences += sign * len(sentences)
        self.num_tokens += sign * sum(len(sentence.source_ids) for sentence in sentences)
        self.num_rows += sign * sum(sentence.footprint.rows for sentence in sentences)

    def add(self, flow: Flow, num_sentences: int, num_tokens: int, sign: int) -> None:
        """Charges a flow for what waits of one request, or takes such a charge (sign -1) back."""
        own = self._of_flow[flow.name]
        for index, number in enumerate((num_sentences, num_tokens)):
            charged = sign * min(number, max(1, self._limits[index] // 2))
            self._all[index] += charged
            own[index] += charged

    def check(self, flow: Flow, share: Callable[[Flow], float]) -> None:
        """Says whether a limit lets nothing more of a flow in.

        Args:
            flow: that asks.
            share: says what part of the engine is a flow's, over 0 to 1.

        Raises:
            Overloaded: naming the limit.
        """
        waiting = {"sentences": (self.num_sentences, "sentences"), "tokens": (self.num_tokens, "source tokens")}
        for index, (reason, (number, what)) in enumerate(waiting.items()):
            most = self._limits[index]
            if self._all[index] >= most and self._of_flow[flow.name][index] >= most * share(flow):
                message = f"queue is full: {number} {what} wait, limit {most}"
                raise Overloaded(message, reason, lasts_seconds=_FULL_SECONDS)

    def clear(self) -> None:
        """Notes that nothing waits any more."""
        self._all = [0, 0]
        self._of_flow.clear()
        self.num_sentences = self.num_tokens = self.num_rows = 0
