"""What part of an engine each flow may have."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from server.engine.flow import Flow
from server.engine.sentence import Sentence

_ACTIVE_SECONDS = 1.0  # after its last request, that a flow keeps its share
_MEMORY_SECONDS = 2.0  # time constant of the work that a flow has had


@dataclass(slots=True)
class _Activity:
    """Of one flow: its weight, the rows that it runs in all lanes, when it last asked for any, and work until then."""

    weight: float = 1.0
    rows: int = 0
    last_asked: float = -math.inf
    work: float = 0.0  # row-steps that it has had, fading
    last_started: float = 0.0

    def faded_work(self, now: float) -> float:
        return self.work * math.exp((self.last_started - now) / _MEMORY_SECONDS)


class Shares:
    """Divides rows among the flows that are active; one that is alone has them all.

    A flow that has had less work of late than its share may take whatever rows are free. One that has had more is held
    to its share of the rows while others are active, even when these have nothing to do at the moment: so their next
    sentences find free rows, and steps that are not much longer than their own.
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
        now = self._clock()
        for sentence in sentences:
            activity = self._activities.setdefault(sentence.flow.name, _Activity())
            activity.rows += sentence.footprint.rows
            activity.work = activity.faded_work(now) + sentence.work
            activity.last_started = now

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

    def allow(self, sentence: Sentence, work_seconds: float) -> bool:
        """Whether a sentence may be taken; one of a flow that runs none may be always.

        Args:
            sentence: that is next.
            work_seconds: of the engine, for one row-step.
        """
        if len(self._activities) < 2:
            return True
        activity, share = self._activities[sentence.flow.name], self.share(sentence.flow)
        if activity.faded_work(self._clock()) * work_seconds <= share * _MEMORY_SECONDS or not activity.rows:
            return True
        return activity.rows + sentence.footprint.rows <= math.ceil(self._max_rows * share)
