"""What part of an engine each flow may have, and who gives way to whom."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from server.engine.background_time import MeasuredPart
from server.engine.cost import CostModel
from server.engine.flow import Flow
from server.engine.flow_queue import LARGE_SHARE, WaitingRequest
from server.engine.limits import EngineLimits, LaneLimits
from server.engine.sentence import Sentence

_ACTIVE_SECONDS = 1.0  # after its last request, that a flow keeps its share
_MEMORY_SECONDS = 0.5  # time constant of the work that a flow has asked for: so soon a flood is known for one
_FORGOTTEN_SECONDS = 10.0  # after its last request, that nothing is known of a flow
_MODEST = 2.0  # times the level: flows that ask for about as much as each other share their steps
_LEVEL_SECONDS = 0.02  # that the level is good for
_SMALL_SECONDS = 5.0  # after the last small request that came beside large ones, that these give way
_NEW_ROWS = 0.125  # of all, that a flow has in the foreground beside others before it is known
_REST_SHARE = 0.1  # of its own part of the time, for who gives way to flows none of which asks for more than theirs
_BACKGROUND_ROWS = 0.75  # of what a lane may hold, beyond which nobody who gives way enters
_BACKGROUND_ENCODE = 0.25  # of what a lane encodes at once: others wait for it


@dataclass(slots=True)
class _Activity:
    """Of one flow: its weight, the rows that it runs in all lanes, when it asked for any, and how much."""

    first_asked: float
    weight: float = 1.0
    rows: int = 0
    large_rows: int = 0  # of these, in the background for their requests' size
    yielded_rows: int = 0  # of these, in the background as the flow gave way when they entered
    last_large: float = -math.inf  # when one waited
    last_held: float = -math.inf  # when one waited as the flow was too new
    last_asked: float = -math.inf
    last_refused: float = -math.inf
    last_flooded: float = -math.inf  # when it had asked for more than all of the engine's time
    work: float = 0.0  # row-steps, fading

    def is_active(self, since: float) -> bool:
        """Whether it has asked since an instant, or runs what it asked for: the server's own probes ask for nothing."""
        return self.last_asked >= since or (self.rows > 0 and self.last_asked > -math.inf)

    def is_gone(self, now: float) -> bool:
        return not self.rows and self.last_asked < now - _FORGOTTEN_SECONDS

    def faded_work(self, now: float) -> float:
        return self.work * math.exp((self.last_asked - now) / _MEMORY_SECONDS)


class Shares:
    """Divides rows and time among the flows that are active; one that is alone has them all.

    All that flows have asked for of late fills the engine's time evenly by their weights, each only as far as it asks
    (max-min fairness; Bertsekas and Gallager, Data Networks, 6.5.2), up to a level that is the same for all who have
    asked for more. Who is below the level, or not far above it and not refused, is modest: it may take whatever rows
    are free, and its steps come first. The others are in the background (`server.engine.lane`), each held to its share
    of the rows, so that a modest flow's next sentences find free ones. So is a flow of which too little is known yet,
    but for its first few rows. Who has asked for more than all of the time is one of them for a second at least.

    Whatever a large request has beyond its burst (`server.engine.flow_queue`) is in the background as well, once a
    small one has come beside it, of whatever flow, and while others follow: so that these find rows, and have short
    steps, beside a document of a thousand lines.

    Args:
        limits: of the engine.
        cost: says what work takes.
        clock: seconds.

    Attributes:
        background_part: told by lanes what time the background has.
    """

    def __init__(self, limits: EngineLimits, cost: CostModel, clock: Callable[[], float]) -> None:
        self._max_rows = limits.num_lanes * limits.lane.max_rows
        self._num_lanes = limits.num_lanes
        self._cost = cost
        self._clock = clock
        self.background_part = MeasuredPart(clock)
        self._activities: dict[str, _Activity] = {}
        self._level = math.inf  # part of the engine's time for a weight of 1
        self._levelled = -math.inf  # instant
        self._has_flood = False  # at that instant: whether a flow asks for far more than the level
        self._large_rows = 0  # that requests run beyond their bursts, in the background or not
        self._last_small = -math.inf  # when a small request came beside these

    def ask(self, flow: Flow, work: float, *, is_small: bool = False, is_refused: bool = False) -> None:
        """Notes that a flow has asked for so many row-steps, which it gets or does not; small are those of a burst."""
        now = self._clock()
        if is_small and self._large_rows:
            self._last_small = now
        for name in [name for name, each in self._activities.items() if each.is_gone(now)]:
            del self._activities[name]
        activity = self._activities.setdefault(flow.name, _Activity(now))
        activity.work = activity.faded_work(now) + work * flow.num_calls
        activity.weight, activity.last_asked = flow.weight, now
        if self._time_asked(activity, now) > 1.0:
            activity.last_flooded = now
        if is_refused:
            activity.last_refused = now

    def start(self, sentences: Iterable[Sentence], *, is_background: bool = False) -> None:
        """Notes that sentences have been taken by a lane, into its background or not."""
        for sentence in sentences:
            sentence.is_background = is_background
            activity = self._activities.setdefault(sentence.flow.name, _Activity(self._clock()))
            self._count(activity, sentence, +1)

    def end(self, sentences: Iterable[Sentence]) -> None:
        """Notes that sentences that had been taken have left."""
        for sentence in sentences:
            self._count(self._activities[sentence.flow.name], sentence, -1)

    def _count(self, activity: _Activity, sentence: Sentence, sign: int) -> None:
        rows = sign * sentence.footprint.rows
        activity.rows += rows
        if sentence.is_large:
            self._large_rows += rows
        if sentence.is_background and sentence.is_large:
            activity.large_rows += rows
        elif sentence.is_background:
            activity.yielded_rows += rows

    @property
    def is_undivided(self) -> bool:
        """Whether one flow at most has asked of late, so that no flow gives way to another."""
        return len(self._activities) < 2

    def share(self, flow: Flow) -> float:
        """Returns the part of the engine that is a flow's whatever the others ask, over 0 to 1."""
        if len(self._activities) == (flow.name in self._activities):  # it is alone: asked for every sentence
            return 1.0
        own = self._activities.get(flow.name)
        return flow.weight / (flow.weight + sum(each.weight for each in self._active() if each is not own))

    def background_share(self) -> float:
        """Returns the part of the engine, 0 to 1, of all together who are to give way, or were when they entered.

        As long as the others ask for no more than their parts, those who give way are sure of a little only: they have
        what is left. Where a flow no longer gives way, what it has in the background has all of its weight.
        """
        active, now = self._active(), self._clock()
        giving: list[_Activity] = []
        others: list[_Activity] = []
        for each in active:
            (giving if len(active) > 1 and self._is_above_level(each) else others).append(each)
        are_content = all(self._time_asked(each, now) <= self._current_level() * each.weight for each in others)
        weights = sum(each.weight for each in giving) * (_REST_SHARE if others and are_content else 1.0)
        for each in others:
            if each.yielded_rows or each.last_held >= now - _MEMORY_SECONDS:
                weights += each.weight
            elif each.large_rows or each.last_large >= now - _ACTIVE_SECONDS:
                weights += each.weight * LARGE_SHARE
        return weights / sum(each.weight for each in active) if weights else 0.0

    @property
    def background_rows(self) -> int:
        """Rows of all flows in the background."""
        return sum(each.large_rows + each.yielded_rows for each in list(self._activities.values()))

    def pace(self, flow: Flow) -> float:
        """Returns the part of the time that a flow's steps have, over 0 to 1: less than all is for who gives way.

        That is what the background is seen to have, or the level as long as nothing of it runs.
        """
        if not self.gives_way(flow):
            return 1.0
        return self.background_part.estimate(min(1.0, self._current_level() * flow.weight))

    def is_modest(self, flow: Flow) -> bool:
        """Whether a flow has asked for no more of late than about its part, beside others that are active.

        It is not to pay for what others ask by forecasts that are stretched (`CostModel.caution`).
        """
        return self.share(flow) < 1.0 and not self.gives_way(flow)

    def allow(self, request: WaitingRequest, *, is_background: bool = False) -> bool:
        """Whether the first sentence of a request may be taken; one of a flow that runs none may be always.

        Args:
            request: that waits.
            is_background: whether the sentence would give way to others.
        """
        flow, now = request.flow, self._clock()
        own = self._activities.get(flow.name)
        yields = self.gives_way(flow)
        if own is not None and own.rows and (yields or now - own.first_asked < _MEMORY_SECONDS):
            share, rows = self.share(flow), own.rows + request.head.footprint.rows
            if share < 1.0 and rows > math.ceil(self._max_rows * share):
                return False
            if not yields and share < 1.0 and rows > self._max_rows * _NEW_ROWS:
                own.last_held, yields = now, True
        is_behind = request.is_large and now - self._last_small < _SMALL_SECONDS
        if is_behind and not yields and own is not None:
            own.last_large = now
        return is_background == (yields or is_behind)

    def background_limits(self, limits: LaneLimits) -> LaneLimits:
        """Returns what a lane may hold, with all its batches, when anybody enters who gives way: others find room."""
        active, part = self._active(), limits.part(_BACKGROUND_ROWS)
        if len(active) < 2:  # large requests beside small ones of the same flow
            return part
        if all(map(self._is_above_level, active)):
            return limits
        return replace(part, max_encode_tokens=math.ceil(limits.max_encode_tokens * _BACKGROUND_ENCODE))

    def gives_way(self, flow: Flow) -> bool:
        """Whether a flow has asked for more than its part, beside others that are active."""
        own = self._activities.get(flow.name)
        return own is not None and self.share(flow) < 1.0 and self._is_above_level(own)

    def _active(self) -> list[_Activity]:
        since = self._clock() - _ACTIVE_SECONDS
        activities = list(self._activities.values())  # a copy, as the door has no lock
        return [each for each in activities if each.is_active(since)]

    def _is_above_level(self, activity: _Activity) -> bool:
        now, level = self._clock(), self._current_level()
        if now - activity.last_flooded < _ACTIVE_SECONDS:  # calls that are refused unread are counted later, together
            return True
        # Where somebody is refused there is no time for more than everybody's part, unless that is a flood's doing.
        is_refused = now - activity.last_refused < _ACTIVE_SECONDS and not self._has_flood
        return self._time_asked(activity, now) > (1.0 if is_refused else _MODEST) * level * activity.weight

    def _time_asked(self, activity: _Activity, now: float) -> float:
        """Returns the part of the engine's time that a flow has asked for of late."""
        seconds = activity.faded_work(now) * self._cost.least_row_step_seconds / self._num_lanes
        return seconds / _MEMORY_SECONDS

    def _current_level(self) -> float:
        now = self._clock()
        if now - self._levelled >= _LEVEL_SECONDS:
            asked = [(self._time_asked(each, now), each.weight) for each in list(self._activities.values())]
            self._level, self._levelled = _find_level(asked), now
            self._has_flood = any(time > _MODEST * self._level * weight for time, weight in asked)
        return self._level


def _find_level(asked: list[tuple[float, float]]) -> float:
    """Returns the level up to which the engine's time is filled; infinite if there is time left.

    Args:
        asked: of each flow, the part of the engine's time that it has asked for, and its weight.
    """
    left, weights = 1.0, sum(weight for _, weight in asked)
    for time, weight in sorted(asked, key=lambda each: each[0] / each[1]):
        if time * weights > left * weight:
            return left / weights
        left -= time
        weights -= weight
    return math.inf
