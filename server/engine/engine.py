"""The engine translates sentences by continuous batching, with one thread for each lane.

It guarantees:
- A sentence's result in fp32 does not depend on the sentences beside it.
- Sentences enter and leave between steps: none waits until a batch ends.
- A cancelled or expired sentence takes no part in the next step.
- If a step fails, every sentence in it is answered. Every future ends.

`server.engine.lane` says what happens in one iteration, and `server.engine.batch` in one step.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from math import inf
from weakref import WeakKeyDictionary

from server.bundle.manifest import Manifest
from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.cores import Cores, Gate
from server.engine.dispatch import Dispatch
from server.engine.failing import fail
from server.engine.families import FAMILIES
from server.engine.flow import ANYONE, Flow
from server.engine.lane import Lane, LaneState
from server.engine.limits import EngineLimits
from server.engine.sentence import Sentence
from server.errors import NotServing, TranslationError
from server.network import Runner
from server.telemetry.model_metrics import EngineLoad, ModelMetrics

# Between two looks at what runs. Half, and many streams with partial texts spend twice the time on them; twice, and the
# first partial text of a sentence comes later.
_LOOK_SECONDS = 0.02


class Engine:
    """Owns the waiting queue and the lanes. Any thread may call its methods.

    Args:
        manifest: its widest beam is at most the rows of a lane.
        clock: seconds, monotonic; deadlines are its instants.
        cores: that the engine shares with others; None for an engine that has them alone.
        placeholder_ids: ids that a beam must copy.

    Attributes:
        alarm: is set when a step has failed or a lane has ended, so that the supervisor looks; it clears it.
    """

    def __init__(
        self,
        runner: Runner,
        manifest: Manifest,
        metrics: ModelMetrics,
        limits: EngineLimits,
        clock: Callable[[], float] = time.monotonic,
        cores: Cores | None = None,
        placeholder_ids: Sequence[int] = (),
    ) -> None:
        self._manifest = manifest
        self._placeholder_ids = frozenset(placeholder_ids)
        self._metrics = metrics
        family = FAMILIES[manifest.family]
        self._new_search = family.search
        self._limits = limits = family.limits(limits, manifest)
        self._clock = clock
        self._cost = family.cost(limits.lane.max_rows, limits.num_lanes)
        self._dispatch = Dispatch(limits, self._cost, clock)
        self.alarm = threading.Event()
        gate = Gate(cores or Cores(clock=clock))
        self._new_lane = partial(Lane, runner, self._dispatch, gate, metrics, self.alarm, new_batch=family.batch)
        self.lanes = [self._new_lane() for _ in range(limits.num_lanes)]
        self._threads: dict[int, threading.Thread] = {}
        # Of what ran at the last look. The futures are not kept, because their callbacks refer to jobs, and these here.
        self._searches: WeakKeyDictionary[Future[Result], BeamSearch] = WeakKeyDictionary()
        self._next_look = -inf
        self._unwatch = metrics.watch(self._load)

    def start(self) -> None:
        """Starts the lanes."""
        for index in range(len(self.lanes)):
            self._start(index)

    def stop(self) -> None:
        """Answers the sentences that are left with `NotServing`, and ends the lanes; safe to call twice.

        Memory is freed with the last reference to the engine, because it is in no cycle: the collector may be frozen.
        """
        self._close(NotServing("the server has shut down"))
        for thread in self._threads.values():
            thread.join()
        self._unwatch()
        self._unwatch = lambda: None

    def submit(
        self, sources: Iterable[Iterable[int]], options: DecodingOptions, deadline: float = inf, flow: Flow = ANYONE
    ) -> list[Future[Result]]:
        """Adds all sentences of a request to the queue, or none.

        Args:
            sources: source ids of each sentence, with prefixes and eos, at most `max_source_tokens`.
            options: within the manifest's limits, which the caller has checked.
            deadline: instant of the clock; infinite for never.

        Returns:
            A future for each sentence, which fails only with a `TranslationError`; to cancel it drops the sentence.

        Raises:
            Overloaded: the queue is at a limit, or the answer would come too late.
            DeadlineExceeded: an idle engine's answer would come much too late.
            NotServing: the engine has been stopped.
        """
        sentences = [self._sentence(tuple(source_ids), options, deadline, flow) for source_ids in sources]
        self._dispatch.add(sentences)
        return [sentence.future for sentence in sentences]

    def check_room(
        self, lengths: Sequence[int], options: DecodingOptions, deadline: float = inf, flow: Flow = ANYONE
    ) -> float:
        """Finds out whether `submit` would take texts of so many characters now, before the caller splits them.

        Returns the seconds that the request would take if nothing else ran. Raises as `submit`.
        """
        demand = self._cost.demand_of_texts(lengths, options)
        self._dispatch.check(demand, deadline, flow)
        return self._cost.alone_seconds(demand)

    def observe_text(self, num_characters: int, source_tokens: int) -> None:
        """Notes how many source tokens a text had, for `check_room`."""
        self._cost.observe_text(num_characters, source_tokens)

    def predict_seconds(self, source_tokens: Iterable[int], options: DecodingOptions) -> float:
        """Returns the seconds of one lane that sentences with these numbers of tokens take in full batches."""
        return self._cost.demand(source_tokens, options).work * self._cost.row_step_seconds

    def most_sentences(self, options: DecodingOptions) -> int:
        """Returns how many sentences with these options all lanes together run at once, at least 1."""
        return max(1, self._limits.num_lanes * self._limits.lane.max_rows // options.num_rows)

    def ids_so_far(self, futures: Collection[Future[Result]]) -> dict[Future[Result], list[int]]:
        """Returns the target ids so far, without eos, of each future whose sentence runs, as of the last look."""
        now = self._clock()
        if now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
            running = [sentence for lane in self.lanes for sentence in lane.running]
            self._searches = WeakKeyDictionary({sentence.future: sentence.search for sentence in running})
        found = {future: self._searches.get(future) for future in futures if not future.done()}
        return {future: search.ids_so_far for future, search in found.items() if search is not None}

    @property
    def is_idle(self) -> bool:
        """Whether no sentence waits or runs."""
        return self._dispatch.is_all(0)

    def send_canary(self, lane: Lane, source_ids: Iterable[int], options: DecodingOptions) -> Future[Result]:
        """Lets this lane alone translate a sentence; its future ends as the futures of `submit`."""
        sentence = self._sentence(tuple(source_ids), options)
        lane.send_canary(sentence)
        return sentence.future

    def replace(self, index: int) -> Lane:
        """Puts a new lane, with its own caches and thread, in the place of a lane that has ended.

        The new lane takes canaries alone until it is forgiven.
        """
        self.lanes[index] = self._new_lane(is_proven=False)
        self._start(index)
        return self.lanes[index]

    def abandon(self, error: TranslationError) -> None:
        """Answers every sentence and refuses further ones. It does not wait for lanes, which may hang for ever."""
        self._close(error)
        for lane in self.lanes:
            lane.abandon(error)

    def _start(self, index: int) -> None:
        thread = threading.Thread(target=self.lanes[index].run, name=f"lane-{index}", daemon=True)
        self._threads[index] = thread
        thread.start()

    def _close(self, error: TranslationError) -> None:
        for sentence in self._dispatch.close():
            fail(sentence, error, self._metrics)

    def _sentence(
        self, source_ids: tuple[int, ...], options: DecodingOptions, deadline: float = inf, flow: Flow = ANYONE
    ) -> Sentence:
        options = options.of_source(len(source_ids))
        limit = self._manifest.limits.max_target_tokens
        most_tokens = options.most_tokens(len(source_ids), len(options.target_prefix), limit)
        has_none = self._placeholder_ids.isdisjoint(source_ids)
        search = self._new_search(
            options,
            max_tokens=min(len(options.forced_prefix) + most_tokens, limit),
            bos_id=self._manifest.special_ids.bos,
            eos_id=self._manifest.special_ids.eos,
            rules=self._manifest.search.rules,
            source_ids=source_ids,
            placeholders={} if has_none else {each: source_ids.count(each) for each in self._placeholder_ids},
        )
        steps = self._cost.steps(len(source_ids), options)
        return Sentence(source_ids, options, search, deadline, submitted=self._clock(), flow=flow, steps=steps)

    def _load(self) -> EngineLoad:
        num_lanes = Counter(lane.state for lane in self.lanes)
        return EngineLoad(
            waiting_sentences=self._dispatch.waiting.num_sentences,
            waiting_tokens=self._dispatch.waiting.num_tokens,
            max_rows=len(self.lanes) * self._limits.lane.max_rows,
            rows=sum(lane.num_rows for lane in self.lanes),
            cache_bytes=sum(lane.cache_bytes for lane in self.lanes),
            max_waiting_sentences=self._limits.max_waiting_sentences,
            max_waiting_tokens=self._limits.max_waiting_tokens,
            serving_lanes=num_lanes[LaneState.SERVING],
            suspect_lanes=num_lanes[LaneState.SUSPECT],
            out_lanes=num_lanes[LaneState.OUT],
        )
