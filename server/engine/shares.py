"""What part of an engine each flow may have."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from server.engine.cost import CostModel
from server.engine.flow import Flow
from server.engine.limits import EngineLimits
from server.engine.sentence import Sentence

_ACTIVE_SECONDS = 1.0  # after its last request, that a flow keeps its share
_MEMORY_SECONDS = 2.0  # time constant of the work that a flow has had
_HELD_PART = 0.5  # of its share of the rows, that a flow keeps which has had more work than its share beside others


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
    to its share of the rows while others are active, even when these have nothing to do at the moment, and to
    `_HELD_PART` of that while any of these has had less than its own: so their next sentences find free rows, and steps
    that are not much longer than without it. As rows of a batch that is not full do more work each, it still gets about
    its share of the work.

    Args:
        limits: of the engine.
        cost: says what work takes.
        clock: seconds.
    """

    def __init__(self, limits: EngineLimits, cost: CostModel, clock: Callable[[], float]) -> None:
        self._max_rows = limits.num_lanes * limits.lane.max_rows
        self._num_lanes = limits.num_lanes
        self._cost = cost
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
        return flow.weight / (flow.weight + sum(each.weight for each in self._active_beside(flow.name)))

    def is_modest(self, flow: Flow) -> bool:
        """Whether a flow has had no more work of late than its share, beside others that are active.

        It is not to pay for what others ask by forecasts that are stretched (`CostModel.caution`).
        """
        share, activity = self.share(flow), self._activities.get(flow.name)
        return share < 1.0 and (activity is None or self._has_had_little(activity, share))

    def allow(self, sentence: Sentence) -> bool:
        """Whether a sentence, which is next, may be taken; one of a flow that runs none may be always."""
        if len(self._activities) < 2:
            return True
        activity, share = self._activities[sentence.flow.name], self.share(sentence.flow)
        if not activity.rows or self._has_had_little(activity, share):
            return True
        others = self._active_beside(sentence.flow.name)
        all_weights = activity.weight + sum(each.weight for each in others)
        is_held = any(self._has_had_little(each, each.weight / all_weights) for each in others)
        part = _HELD_PART * share if is_held else share
        return activity.rows + sentence.footprint.rows <= math.ceil(self._max_rows * part)

    def _active_beside(self, name: str) -> list[_Activity]:
        since = self._clock() - _ACTIVE_SECONDS
        others = (each for other, each in self._activities.items() if other != name)
        return [each for each in others if each.rows or each.last_asked >= since]

    def _has_had_little(self, activity: _Activity, share: float) -> bool:
        work_seconds = self._cost.row_step_seconds / self._num_lanes
        return activity.faded_work(self._clock()) * work_seconds <= share * _MEMORY_SECONDS
