"""One thread that steps its batches in turn, and whether that thread may be trusted.

A lane has two batches for each kind of step: one for the foreground, and one for flows that are in the background
(`server.engine.admission`). After a step has failed, the lane takes nothing but a canary: a sentence for this lane
alone, whose translation is known. The supervisor (`server.models.supervisor`) sends it and decides what follows.
"""

import enum
import logging
import threading
from contextlib import ExitStack

from server.engine.background import BACKGROUND_TIME
from server.engine.batch import Batch
from server.engine.cores import Gate
from server.engine.dispatch import Dispatch
from server.engine.failing import Faults, end_over, fail
from server.engine.limits import Footprint
from server.engine.sentence import Sentence
from server.errors import NotServing, TranslationError
from server.network import Runner, StepKind
from server.telemetry.model_metrics import ModelMetrics
from server.threads import LANE_NICENESS, be_nice

logger = logging.getLogger(__name__)


class LaneState(enum.Enum):
    """What a lane takes; the values are `server.telemetry.model_metrics.LANE_STATES`."""

    SERVING = "serving"  # sentences that wait
    SUSPECT = "suspect"  # canaries alone, until it has passed one: a step has failed, or the lane replaces another
    OUT = "out"  # nothing: its thread answers its sentences and ends


class Lane:
    """Runs sentences of all kinds, in batches that share the lane's limits.

    Args:
        new_batch: what makes its batches.
        is_proven: False for a lane that must pass a canary first.

    Attributes:
        kinds: of steps that the lane has tried to take, and plain ones.
        is_out: whether it takes nothing more; see `take_out`.
        has_ended: whether its thread has ended, with all sentences answered.
        step_started: instant at which the present step began; None between two steps.
    """

    def __init__(
        self,
        runner: Runner,
        dispatch: Dispatch,
        gate: Gate,
        metrics: ModelMetrics,
        alarm: threading.Event,
        *,
        new_batch: type[Batch] = Batch,
        is_proven: bool = True,
    ) -> None:
        self._dispatch = dispatch
        self._gate = gate
        self._limits = dispatch.limits.lane
        self._metrics = metrics
        self._clock = dispatch.clock
        self._alarm = alarm
        self.faults = Faults(metrics, alarm)
        self._foreground, self._background = (
            [new_batch(kind, runner, dispatch, metrics, self.faults) for kind in StepKind] for _ in range(2)
        )
        self._batches = self._foreground + self._background
        self._owed_seconds = 0.0  # of the background's last step, that it has not earned yet
        self._has_foreground = False  # as the dispatch knows it
        self._canary: Sentence | None = None  # that no batch has yet
        self._num_forgiven = 0 if is_proven else -1  # faults; the supervisor writes this, the thread `faults`
        self.kinds: tuple[StepKind, ...] = (StepKind.PLAIN,)
        self.is_out = False
        self.has_ended = False
        self.step_started: float | None = None

    @property
    def state(self) -> LaneState:
        """What it takes."""
        if self.is_out:
            return LaneState.OUT
        return LaneState.SERVING if self.faults.count == self._num_forgiven else LaneState.SUSPECT

    @property
    def num_rows(self) -> int:
        """Rows in use."""
        return sum(batch.plan.num_rows for batch in self._batches)

    @property
    def running(self) -> list[Sentence]:
        """The sentences of its batches. To other threads, these may be those of a step ago."""
        return [sentence for batch in self._batches for sentence in batch.sentences]

    @property
    def cache_bytes(self) -> int:
        """Bytes of the caches' buffers."""
        return sum(batch.cache_bytes for batch in self._batches)

    def send_canary(self, sentence: Sentence) -> None:
        """Gives the lane a canary, which enters before all sentences that wait, as soon as it has rows for it."""
        self._canary = sentence
        self._dispatch.watch(sentence)
        self._dispatch.wake()

    def forgive(self, num_faults: int) -> None:
        """Lets the lane take sentences again, unless it has had more faults than these."""
        self._num_forgiven = num_faults
        self._dispatch.wake()

    def take_out(self) -> None:
        """Ends the lane after its present step; its sentences are answered UNAVAILABLE."""
        self.is_out = True
        self._dispatch.wake()

    def abandon(self, error: TranslationError) -> None:
        """Ends the lane and answers its sentences at once, because its thread may hang for ever."""
        self.take_out()
        for batch in self._batches:
            for sentence in batch.sentences:
                fail(sentence, error, self._metrics)

    def run(self) -> None:
        """Steps while there is work and sleeps while there is none, until the engine is stopped or the lane is out."""
        try:
            be_nice(LANE_NICENESS)
            while self._wait() and not self.is_out:
                with self._gate.work():
                    self.step()
                    while self.num_rows and self._dispatch.is_open and not self.is_out:
                        if not self._rest():
                            self.step()
        except BaseException as error:  # whatever it was, every sentence must be answered
            logger.critical("a lane has died", exc_info=error, extra={"facts": {"error": str(error)}})
            self.is_out = True
        finally:
            self._leave()

    def step(self) -> None:
        """Waits for the lane's turn, and takes a step with the foreground, and one with the background if it is due.

        Without a foreground, each step is one of the background. Beside a foreground, the background earns
        `BACKGROUND_TIME` of the foreground's time, and takes a step once it has earned what its last step took.
        """
        came = self._clock()
        with self._gate.turn(self._dispatch.asked_seconds) as is_only_engine:
            end_over(self._dispatch.drop_over(), self._clock(), self._metrics)
            has_foreground = self._step_all(self._foreground, came, is_only_engine=is_only_engine)
            self._tell_foreground(any(batch.plan.running for batch in self._foreground))
            now = self._clock()
            if has_foreground:
                self._dispatch.note_seconds(now - came, is_background=False)
                self._owed_seconds -= (now - came) * BACKGROUND_TIME
                if self._owed_seconds > 0:
                    return
            if self._step_all(self._background, now, is_only_engine=is_only_engine):
                self._owed_seconds = self._clock() - now
                self._dispatch.note_seconds(self._owed_seconds, is_background=True)
                for batch in self._background:
                    if not batch.plan.running:
                        batch.free_caches()

    def _rest(self) -> bool:
        """Waits if a lane with a foreground needs it and this one has none; returns whether it has waited.

        It waits until the background has earned a step, as in `step`, unless `Dispatch.rest` ends sooner.
        """
        if self._has_foreground or self._owed_seconds <= 0:
            return False
        rested = self._dispatch.rest(self._is_called, self._owed_seconds / BACKGROUND_TIME)
        self._owed_seconds -= rested * BACKGROUND_TIME
        return rested > 0

    def _tell_foreground(self, has_foreground: bool) -> None:
        if has_foreground is not self._has_foreground:
            self._has_foreground = has_foreground
            self._dispatch.count_foreground(+1 if has_foreground else -1)

    def _step_all(self, batches: list[Batch], came: float, *, is_only_engine: bool) -> bool:
        """Lets sentences enter these batches, and steps each batch that has any; returns whether one has."""
        try:
            entering, is_full = self._take(batches)
            for batch in batches:
                batch.enter([sentence for sentence in entering if sentence.kind is batch.kind])
            if batches is self._foreground:  # the background waits because it must
                for sentence in entering:
                    self._metrics.queue_duration_seconds.observe(sentence.admitted - sentence.submitted)
        except Exception as error:  # noqa: BLE001  # whatever it was, every sentence must be answered
            for batch in batches:
                batch.fail(error, batch.sentences)
            return False
        is_alone = is_only_engine and self._dispatch.is_all(_footprint(self._batches).rows)
        stepped = [batch for batch in batches if batch.plan.running]
        if batches is self._foreground:
            self._tell_foreground(bool(stepped))
        for batch in stepped:
            if batch.kind not in self.kinds:
                self.kinds += (batch.kind,)
            self.step_started = self._clock()
            batch.step(came, is_alone=is_alone, is_full=is_full)
            self.step_started = None
            came = self._clock()
            self._metrics.engine_last_step_timestamp_seconds.set_to_current_time()
        return bool(stepped)

    def _take(self, batches: list[Batch]) -> tuple[list[Sentence], bool]:
        """Returns the sentences that enter these batches, and whether others wait for which the lane has no room."""
        is_background = batches is self._background
        if (canary := self._canary) is not None:
            rows = _footprint(self._batches).rows
            if is_background or (rows and rows + canary.footprint.rows > self._limits.max_rows):
                return [], False
            self._canary = None
            self._dispatch.count([canary], +1)
            return [canary], False
        if self.state is not LaneState.SERVING or not self._dispatch.waiting.num_sentences:
            return [], False
        if not all(batch.is_entry_due for batch in batches):
            return [], False
        share = 1.0
        if is_background:
            share = self._dispatch.background.share(self._limits.alone_share)
        limits = self._limits.beside(_footprint(self._foreground if is_background else self._background), share)
        longest = max(max(batch.plan.longest()) for batch in batches)
        return self._dispatch.take(limits, _footprint(batches), longest, is_background=is_background)

    def _wait(self) -> bool:
        """Sleeps until the lane is wanted, and gives back its caches after a while; False if the queue is closed."""
        if self._dispatch.wait(self._is_wanted, self._limits.idle_seconds):
            return True
        for batch in self._batches:
            batch.free_caches()
        return self._dispatch.wait(self._is_wanted)

    def _is_wanted(self) -> bool:
        has_work = self.state is LaneState.SERVING and self._dispatch.waiting.num_sentences > 0
        return has_work or self._is_called()

    def _is_called(self) -> bool:
        return self.is_out or self._canary is not None

    def _leave(self) -> None:
        """Answers the sentences that are left, and frees their rows."""
        error = NotServing("the server has shut down")
        if self.is_out:
            error = NotServing("the server has lost what ran this sentence; it may be sent again")
        with ExitStack() as each:  # all of these are called, also if a batch is broken
            each.callback(self._end)
            if self._canary is not None:
                each.callback(fail, self._canary, error, self._metrics)
            for batch in self._batches:
                each.callback(batch.drop, error, batch.sentences)

    def _end(self) -> None:
        self._tell_foreground(False)
        self.step_started = None
        self.has_ended = True
        self._alarm.set()


def _footprint(batches: list[Batch]) -> Footprint:
    return sum((batch.plan.footprint for batch in batches), Footprint())
