"""What part of an engine each flow may have."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from server.engine.flow import Flow
from server.engine.sentence import Sentence

_ACTIVE_SECONDS = 1.0  # after its last request, that a flow keeps its share


@dataclass(slots=True)
class _Activity:
    """Of one flow: its weight, the rows that it runs in all lanes, and when it last asked for any."""

    weight: float = 1.0
    rows: int = 0
    last_asked: float = -math.inf


class Shares:
    """Divides rows among the flows that are active; one that is alone has them all.

    A flow with much to do has no more than its share while others are active, even when these have nothing to do at
    the moment: so their next sentences find free rows, and steps that are not much longer than their own.
    """

    def __init__(self, max_rows: int, clock: Callable[[], float]) -> None:
        self._max_rows = max_rows
        self._clock = clock
        self._activities: dict[str, _Activity] = {}

    def ask(self, flow: Flow) -> None:
        """Notes that a flow has asked for something."""
        activity = self._activities.setdefault(flow.name, _Activity())
        activity.weight, activity.last_asked = flow.weight, self._clock()

    def start(self, sentences: Iterable[Sentence]) -> None:
        """Notes that sentences have been taken by a lane."""
        for sentence in sentences:
            self._activities.setdefault(sentence.flow.name, _Activity()).rows += sentence.footprint.rows

    def end(self, sentences: Iterable[Sentence]) -> None:
        """Notes that sentences that had been taken have left."""
        for sentence in sentences:
            self._activities[sentence.flow.name].rows -= sentence.footprint.rows

    def share(self, flow: Flow) -> float:
        """Returns the part of the engine that a flow would have if it asked for much, over 0 to 1."""
        if len(self._activities) == (flow.name in self._activities):
            return 1.0
        since = self._clock() - _ACTIVE_SECONDS
        others = sum(
            each.weight
            for name, each in self._activities.items()
            if name != flow.name and (each.rows or each.last_asked >= since)
        )
        return flow.weight / (flow.weight + others)

    def allow(self, sentence: Sentence) -> bool:
        """Whether a sentence may be taken; one of a flow that runs none may be always."""
        if len(self._activities) < 2:
            return True
        rows = self._activities[sentence.flow.name].rows
        most = math.ceil(self._max_rows * self.share(sentence.flow))
        return not rows or rows + sentence.footprint.rows <= most
