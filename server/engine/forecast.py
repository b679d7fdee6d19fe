"""When a request that comes now will be answered: what the door refuses by."""

import math
from collections.abc import Callable
from typing import NamedTuple

from server.engine.cost import CostModel, Demand
from server.engine.flow_queue import BURST_SECONDS, PATIENCE
from server.engine.limits import EngineLimits
from server.errors import DeadlineExceeded, Overloaded

_HOPELESS = 4.0  # times the time that is left
_RETRY_SECONDS = (0.05, 5.0)  # bounds of what refused callers are told: a forecast that far says little
_NO_WAIT_SECONDS = 0.02  # waits of less say nothing
_CROWDED = 0.5  # of the rows
_KNOWN_PART = 0.25  # of a wait: so much of it is over before anybody who is refused for it would have run


class Forecast(NamedTuple):
    """What is to be expected of a request that comes now.

    Attributes:
        seconds: until its answer.
        alone: the same, if nothing else ran or waited.
        remaining: seconds until its deadline; infinite for none.
        is_crowded: whether the seconds depend on others, whose work comes first or fills most of the rows.
        due: instant by which it should start.
        burst: row-steps that it may have before it counts as large.
        lasts: seconds for which the like will have to wait as well; 0 if that is not known.
    """

    seconds: float
    alone: float
    remaining: float
    is_crowded: bool
    due: float
    burst: float
    lasts: float = 0.0

    def check_alone(self) -> None:
        """Raises DeadlineExceeded if an idle engine would be much too late: neither a try nor a retry is worth it."""
        if self.alone > self.remaining * _HOPELESS:
            raise DeadlineExceeded(self._late(f"{_rounded(self.alone)} s of an idle server"))

    def check(self) -> None:
        """Raises Overloaded if the answer would be late, with the seconds after which it might not be."""
        if self.seconds > self.remaining:
            least, most = _RETRY_SECONDS
            retry = min(max(self.seconds - self.remaining, least), most)
            message = self._late(f"{_rounded(self.seconds)} s")
            raise Overloaded(message, "deadline", retry, min(retry, self.lasts))

    def _late(self, takes: str) -> str:
        return f"the answer would take about {takes}, {_rounded(self.remaining)} s are left for it"


class Load(NamedTuple):
    """What an engine has to do, as one flow sees it.

    Attributes:
        running_rows: of all lanes, that are stepped with the flow's or before them.
        waiting_rows: of all that waits.
        share: of the engine, that the flow has.
        pace: of its steps: the part of the time that they have, over 0 to 1.
        caution: by which its forecasts are stretched.
        row_step_seconds: of a lane.
        work_before: returns the row-steps that would be done before the end of a request that is due at an instant and
            is large, or not.
    """

    running_rows: int
    waiting_rows: int
    share: float
    pace: float
    caution: float
    row_step_seconds: float
    work_before: Callable[[float, bool], float]


def forecast(
    demand: Demand, now: float, deadline: float | None, load: Load, cost: CostModel, limits: EngineLimits
) -> Forecast:
    """Returns what is to be expected of a request.

    The seconds are stretched by the flow's caution as far as rows are taken: where there is room, a late answer
    takes nothing from anybody, so a caller who may be late is let try.

    Args:
        demand: of all its sentences.
        now: instant.
        deadline: instant; None for never.
        load: of the engine.
        cost: predicts seconds.
        limits: of the engine.
    """
    max_rows, num_lanes = limits.lane.max_rows, limits.num_lanes
    work_seconds = load.row_step_seconds / num_lanes
    burst = BURST_SECONDS / work_seconds
    joining = load.waiting_rows if load.share == 1.0 else 0  # others' do not, beyond their shares
    rows = (load.running_rows + joining) / num_lanes + demand.rows
    own = demand.work * work_seconds + demand.steps * cost.step_seconds(min(rows, max_rows))
    alone = demand.work * work_seconds + demand.steps * cost.step_seconds(demand.rows)
    remaining = math.inf if deadline is None else deadline - now
    due, wait = now + min(PATIENCE * alone, remaining - alone), 0.0
    is_large = demand.work > burst
    if load.waiting_rows:
        wait = load.work_before(due, is_large) * work_seconds
    crowding = 0.0
    if wait > _NO_WAIT_SECONDS or load.pace < 1.0:
        crowding = 1.0
    elif load.running_rows:
        crowding = min(1.0, (load.running_rows + demand.rows * demand.num_sentences) / (max_rows * num_lanes))
    delay = wait + own / load.pace - own  # in line, and between its steps
    return Forecast(
        seconds=(delay + own) * load.caution**crowding,
        alone=alone,
        remaining=remaining,
        is_crowded=crowding > _CROWDED,
        due=due,
        burst=burst,
        # What waits for large requests says nothing of small ones, and one that takes long by itself nothing of others.
        lasts=delay * _KNOWN_PART if delay > own and not is_large else 0.0,
    )


def _rounded(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"
