"""Watches an engine's lanes on a thread of its own. It proves and replaces lanes, and gives the engine up as lost.

A canary proves a lane: the supervisor sends the bundle's golden sentence to that lane alone, by each kind of step that
the lane has taken, and the lane must give the golden translation (`server.models.golden_sentence`).

| a lane | what follows |
|---|---|
| was not proven for a while | a canary, beside whatever it runs |
| had a step that failed | it takes nothing more until it has passed a canary |
| fails a canary: other ids or another score, or two errors on end | it is out: its sentences are answered UNAVAILABLE |
| is out, or its thread died | a new one, with new caches, takes its place once it has passed a canary |
| is out for the second time, hangs, or has lost its device | the engine is lost |

When the engine is lost, every caller is answered UNAVAILABLE, and `server.app` ends the process, because a hung thread
cannot be ended, nor a CUDA context mended, from within.

Time is counted as this thread has lived through it: a process that was stopped, or got no processor, has not waited. So
the seconds between two looks count only up to `_MOST_ELAPSED_SECONDS`.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from server.decoding.result import Result
from server.engine.engine import Engine
from server.engine.lane import Lane, LaneState
from server.errors import NotServing
from server.models.golden_sentence import GoldenSentence
from server.network import StepKind
from server.telemetry.model_metrics import ModelMetrics

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
_MOST_ELAPSED_SECONDS = 2 * _LOOK_SECONDS
_IDLE_CANARY_SECONDS = 10.0  # between canaries of an idle engine
_CANARY_SECONDS = 30.0  # between canaries of any engine; shorter, and canaries slow the other sentences
_HANG_SECONDS = 20.0  # of a step, so that the process ends within half a minute
_MOST_ERRORS = 2  # canaries in a row; the first may have failed because of another sentence in its step


@dataclass(slots=True)
class _Watched:
    """One lane, and what was seen of it.

    Attributes:
        is_replacement: whether it took the place of a lane that was out.
        is_proven: False until a replacement has passed a canary.
        step_started: the lane's instant, which tells one step from the next.
        step_seconds: for how long this step has been seen.
        canary: the running canary; None for none.
        kinds_left: the kinds of steps that this round of canaries has yet to prove, the running canary's first.
        canary_sent: when the last round began, in the supervisor's own seconds.
        num_faults: how many faults the lane had by then.
        num_errors: canaries without a translation since the lane last passed a round.
        is_wrong: whether a canary was.
    """

    lane: Lane
    is_replacement: bool = False
    is_proven: bool = True
    step_started: float | None = None
    step_seconds: float = 0.0
    canary: Future[Result] | None = None
    kinds_left: list[StepKind] = field(default_factory=list)
    canary_sent: float = 0.0
    num_faults: int = 0
    num_errors: int = 0
    is_wrong: bool = False


class Supervisor:
    """Looks at an engine's lanes twice a second, and whenever the engine raises its alarm.

    Args:
        engine: the running engine.
        golden: the sentence of each canary.
        metrics: of the model.
        distrust: is called when a canary was wrong, because recent translations may be wrong, too, and once more when
            that lane has ended, with its last step.
        clock: seconds, monotonic.
        num_models: how many models the process has. The idle lanes of all of them together get as many canaries as
            those of one model.
    """

    def __init__(
        self,
        engine: Engine,
        golden: GoldenSentence,
        metrics: ModelMetrics,
        distrust: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        num_models: int = 1,
    ) -> None:
        self._engine = engine
        self._golden = golden
        self._metrics = metrics
        self._distrust = distrust
        self._clock = clock
        self._idle_canary_seconds = _IDLE_CANARY_SECONDS * num_models
        self._looked = clock()
        self._lived = 0.0
        self._watched = [_Watched(lane) for lane in engine.lanes]
        self._is_lost = False
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def start(self) -> None:
        """Begins to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Ends watching, before the engine stops. It may be called before `start`, and twice."""
        self._is_stopped = True
        self._engine.alarm.set()
        if self._thread.is_alive():
            self._thread.join()

    def is_ready(self) -> bool:
        """Returns whether requests are welcome: a lane serves, and none is out or being replaced."""
        states = [watched.lane.state for watched in self._watched]
        is_whole = LaneState.OUT not in states and all(watched.is_proven for watched in self._watched)
        return is_whole and LaneState.SERVING in states and not self._is_lost

    def is_alive(self) -> bool:
        """Returns whether the engine runs or may be brought back. If not, the process must end."""
        return not self._is_lost

    def look(self) -> None:
        """Looks at every lane, and acts on what it sees."""
        now = self._clock()
        elapsed = min(now - self._looked, _MOST_ELAPSED_SECONDS)
        self._looked = now
        self._lived += elapsed
        canary_seconds = self._idle_canary_seconds if self._engine.is_idle else _CANARY_SECONDS
        for index, watched in enumerate(self._watched):
            if not self._is_lost:
                self._look_at(index, watched, elapsed, canary_seconds)

    def _run(self) -> None:
        while not (self._is_stopped or self._is_lost):
            try:
                self.look()
            except Exception:
                logger.exception("lanes cannot be watched any more")
                self._lose("nobody watches the lanes")
            self._engine.alarm.wait(_LOOK_SECONDS)
            self._engine.alarm.clear()

    def _look_at(self, index: int, watched: _Watched, elapsed: float, canary_seconds: float) -> None:
        lane = watched.lane
        if watched.canary is not None and watched.canary.done():
            self._close_canary(index, watched, watched.canary)
        if lane.faults.has_lost_device:
            self._lose("a lane has lost its device", index)
        elif _hangs(watched, elapsed):
            self._lose("a lane hangs", index)
        elif lane.is_out and watched.is_replacement:
            self._lose("a lane is out again", index)
        elif lane.is_out:
            if lane.has_ended:  # before that it may hang
                if watched.is_wrong:
                    self._distrust()
                self._replace(index)
        elif watched.canary is None and (
            lane.state is LaneState.SUSPECT or self._lived - watched.canary_sent >= canary_seconds
        ):
            watched.num_faults = lane.faults.count
            watched.canary_sent = self._lived
            watched.kinds_left = list(lane.kinds)
            self._send_canary(watched)

    def _send_canary(self, watched: _Watched) -> None:
        options = self._golden.options(watched.kinds_left[0])
        watched.canary = self._engine.send_canary(watched.lane, self._golden.source_ids, options)
        watched.canary.add_done_callback(lambda _: self._engine.alarm.set())

    def _close_canary(self, index: int, watched: _Watched, canary: Future[Result]) -> None:
        """Judges a canary that has come back, unless the end of its lane has ended it."""
        watched.canary = None
        if watched.lane.is_out:
            return
        error = canary.exception()
        if error is not None:
            watched.num_errors += 1
            self._metrics.count_canary("failed")
            if watched.num_errors == _MOST_ERRORS:
                self._take_out(index, watched, [f"no translation: {error}"])
            return
        faults = self._golden.faults(watched.kinds_left.pop(0), canary.result().hypotheses[0])
        self._metrics.count_canary("wrong" if faults else "passed")
        if faults:
            watched.is_wrong = True
            self._take_out(index, watched, faults)
            self._distrust()
        elif watched.kinds_left:
            self._send_canary(watched)
        else:
            watched.is_proven, watched.num_errors = True, 0
            watched.lane.forgive(watched.num_faults)

    def _take_out(self, index: int, watched: _Watched, faults: list[str]) -> None:
        logger.error("a lane has failed its canary and is out", extra={"facts": {"lane": index, "fault": faults[0]}})
        watched.lane.take_out()

    def _replace(self, index: int) -> None:
        logger.warning("a lane is replaced by a new one", extra={"facts": {"lane": index}})
        self._metrics.lane_rebuilds_total.inc()
        lane = self._engine.replace(index)
        self._watched[index] = _Watched(lane, is_replacement=True, is_proven=False)
        self._engine.alarm.set()

    def _lose(self, reason: str, index: int | None = None) -> None:
        """Answers every caller. After that the process must end."""
        facts = {} if index is None else {"lane": index}
        logger.critical("the engine is lost: %s", reason, extra={"facts": facts})
        self._is_lost = True
        self._engine.abandon(NotServing("the engine is lost, and the server restarts; the request may be sent again"))


def _hangs(watched: _Watched, elapsed: float) -> bool:
    """Returns whether a step of the lane takes far too long, as far as it was seen."""
    started = watched.lane.step_started
    if started is None or started != watched.step_started:
        watched.step_started, watched.step_seconds = started, 0.0
        return False
    watched.step_seconds += elapsed
    return watched.step_seconds > _HANG_SECONDS
