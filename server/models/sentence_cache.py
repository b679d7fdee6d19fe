"""Translates equal sentences once: it keeps past translations, and lets requests share a translation that is running.

Sentences are equal if their token ids, decoding options and model are equal. A cache belongs to one loaded model. The
model's name, version and variant are in its keys all the same, so that no other model's translation can be an answer.

- A flight is a sentence in the engine. Each caller has its own future, and cancelling that ends only this future. A
  flight ends when its last caller has left.
- A flight's error goes to all of its callers and is never kept. This includes a refusal by the engine while the flight
  is submitted, if another caller has joined by then.
- A caller joins a flight only if it loses little by that. The flight must be of the caller's flow, because another flow
  may be in the background, and of no worse a rank. The flight's place in its request must be no later than the
  sentence's place in the caller's request: requests take turns in the queue, so the end of a long one is far away. The
  engine answers all callers at the flight's deadline, so this must be no later than the caller's, and leave nine tenths
  of the caller's time. Otherwise the sentence is submitted anew, and later callers join that flight. Weighed: flights
  without a deadline. gRPC ends a call at its client's deadline, but only the engine knows the server's own maximum, so
  callers would need timers.
"""

import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from server.decoding.options import DecodingOptions
from server.decoding.result import Result, Timings
from server.engine.flow import ANYONE, Flow
from server.models.model import SentenceEngine
from server.telemetry.model_metrics import ModelMetrics

_LEAST_SHARE = 0.9  # of a caller's time, which a flight must leave to be joined
# Of memory for each sentence that may be kept. Half, and a cache of sentences of 25 tokens is never full. Twice, and
# alignments and searches take twice as much.
_SENTENCE_BYTES = 4 << 10
# What a kept sentence takes without its tokens, a token of it, and a node of its search, by tracemalloc.
_OWN_BYTES, _TOKEN_BYTES, _NODE_BYTES = 1 << 10, 40, 200

_Key = tuple[tuple[str, str, str], DecodingOptions, tuple[int, ...]]  # model, options, source ids


@dataclass(slots=True, eq=False)
class _Flight:
    """A sentence in the engine, and the callers that wait for it."""

    key: _Key
    place: int  # among the sentences of its request that went to the engine
    flow: Flow
    deadline: float
    callers: set[Future[Result]] = field(default_factory=set)
    translation: Future[Result] = field(default_factory=Future)  # the engine's future, once the sentence is submitted

    def suits(self, place: int, rank: int, deadline: float, now: float) -> bool:
        is_as_soon = self.place <= place and self.flow.rank <= rank
        return is_as_soon and _LEAST_SHARE * (deadline - now) <= self.deadline - now <= deadline - now


class _Caller(Future[Result]):
    """The future of one caller, which knows the flight that it waits for."""

    flight: _Flight | None = None


class SentenceCache:
    """A `SentenceEngine` in front of another one. Its methods may be called from any thread.

    The lock guards the tables and the callers of the flights. It is held for one sentence at a time, because lanes wait
    for it. It is not held while foreign code may run: in the engine, and when a future is answered that others know.

    Args:
        engine: translates the sentences that are not kept.
        model: what the engine runs: name, version, and sha256 of the variant.
        metrics: are told how many sentences were kept.
        max_sentences: translations to keep, 0 for none, in `_SENTENCE_BYTES` for each. The least recently used leave.
        is_single_flight: whether a caller may join a translation that is running.
        clock: the engine's.
    """

    def __init__(
        self,
        engine: SentenceEngine,
        model: tuple[str, str, str],
        metrics: ModelMetrics,
        *,
        max_sentences: int,
        is_single_flight: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._model = model
        self._metrics = metrics
        self._max_sentences = max_sentences
        self._is_single_flight = is_single_flight
        self._clock = clock
        self._lock = threading.Lock()
        self._results: OrderedDict[_Key, Result] = OrderedDict()  # least recently used first
        self._num_bytes = 0  # about what they take
        self._flights: dict[tuple[_Key, Flow], _Flight] = {}  # flights that callers may join

    def submit(
        self,
        sources: Sequence[Sequence[int]],
        options: DecodingOptions,
        deadline: float = math.inf,
        flow: Flow = ANYONE,
    ) -> list[Future[Result]]:
        """See `Engine.submit`. A kept translation has timings of 0 seconds, a shared one the timings of its flight."""
        now = self._clock()
        callers: list[Future[Result]] = []
        flights: list[_Flight] = []  # the new ones
        counts: Counter[str] = Counter()
        try:
            for ids in sources:
                callers.append(own := _Caller())
                key = (self._model, options, tuple(ids))
                counts[self._look_up(key, own, flights, flow, deadline, now)] += 1
            unknown = [flight.key[2] for flight in flights]
            translations = self._engine.submit(unknown, options, deadline, flow) if unknown else []
        except BaseException as error:
            for flight in flights:
                flight.translation.set_exception(error)
                self._land(flight, flight.translation)
            for caller in callers:
                caller.cancel()  # takes it off the flights that it joined
            raise
        for flight, translation in zip(flights, translations, strict=True):
            flight.translation = translation
            translation.add_done_callback(partial(self._land, flight))
        for result, count in counts.items():
            self._metrics.count_cached(result, count)
        return callers

    def check_room(
        self, lengths: Sequence[int], options: DecodingOptions, deadline: float = math.inf, flow: Flow = ANYONE
    ) -> float:
        """See `Engine.check_room`. It is not asked if translations are kept, as all may be known."""
        return 0.0 if self._results else self._engine.check_room(lengths, options, deadline, flow)

    def observe_text(self, num_characters: int, source_tokens: int) -> None:
        """See `Engine.observe_text`."""
        self._engine.observe_text(num_characters, source_tokens)

    def predict_seconds(self, source_tokens: Iterable[int], options: DecodingOptions) -> float:
        """See `Engine.predict_seconds`. Kept sentences count as if they were not kept."""
        return self._engine.predict_seconds(source_tokens, options)

    def most_sentences(self, options: DecodingOptions) -> int:
        """See `Engine.most_sentences`."""
        return self._engine.most_sentences(options)

    def ids_so_far(self, futures: Collection[Future[Result]]) -> dict[Future[Result], list[int]]:
        """See `Engine.ids_so_far`."""
        flights = {future: future.flight for future in futures if isinstance(future, _Caller) and future.flight}
        found = self._engine.ids_so_far({flight.translation for flight in flights.values()})
        return {caller: found[each.translation] for caller, each in flights.items() if each.translation in found}

    def clear(self) -> None:
        """Forgets all kept translations, as they may be wrong. Running ones are kept when they end."""
        with self._lock:
            self._results.clear()
            self._num_bytes = 0

    def stop(self) -> None:
        """See `Engine.stop`."""
        self._engine.stop()

    def _look_up(
        self, key: _Key, caller: _Caller, flights: list[_Flight], flow: Flow, deadline: float, now: float
    ) -> str:
        """Answers the caller, or adds it to a flight. A new flight is added to `flights`.

        Returns:
            The label of the metric: hit, joined or miss.
        """
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                caller.set_result(self._results[key])  # no other code knows this future yet
                return "hit"
            flight, result = self._flights.get((key, flow)), "joined"
            if flight is None or not flight.suits(len(flights), flow.rank, deadline, now):
                flight, result = _Flight(key, len(flights), flow, deadline), "miss"
                flights.append(flight)
                if self._is_single_flight:
                    self._flights[key, flow] = flight
            flight.callers.add(caller)
        caller.flight = flight
        caller.add_done_callback(partial(self._leave, flight))
        return result

    def _leave(self, flight: _Flight, caller: Future[Result]) -> None:
        """Takes a cancelled caller off its flight, and ends the flight if no caller is left."""
        if caller.cancelled():
            with self._lock:
                flight.callers.discard(caller)
                is_empty = not flight.callers
                if is_empty:
                    self._forget(flight)
            if is_empty:
                flight.translation.cancel()

    def _land(self, flight: _Flight, translation: Future[Result]) -> None:
        """Answers a flight's callers, on the lane's thread."""
        if translation.cancelled():  # `_leave` did this: no caller is left
            return
        error = translation.exception()
        with self._lock:
            self._forget(flight)
            if error is None and flight.key[1].sampling is None:  # samples hardly come again: their seeds are random
                self._keep(flight.key, replace(translation.result(), timings=Timings(), is_long=False))
            callers, flight.callers = flight.callers, set()
        for caller in callers:
            with suppress(InvalidStateError):  # the caller has just left
                if error is None:
                    caller.set_result(translation.result())
                else:
                    caller.set_exception(error)

    def _keep(self, key: _Key, result: Result) -> None:
        """Keeps a translation as the one that was used last, while there is room. The caller holds the lock."""
        if key not in self._results:
            self._results[key] = result
            self._num_bytes += _num_bytes(key, result)
        self._results.move_to_end(key)
        most_bytes = self._max_sentences * _SENTENCE_BYTES
        while len(self._results) > self._max_sentences or self._num_bytes > most_bytes:
            self._num_bytes -= _num_bytes(*self._results.popitem(last=False))

    def _forget(self, flight: _Flight) -> None:
        name = flight.key, flight.flow
        if self._flights.get(name) is flight:
            del self._flights[name]


def _num_bytes(key: _Key, result: Result) -> int:
    """Returns about how many bytes a kept translation takes."""
    _, options, source_ids = key
    num_tokens = sum(map(len, (source_ids, *options.given_targets, *options.suppressed)))
    num_tokens += sum(len(each.ids) + len(each.log_probs) for each in result.hypotheses)
    attention_bytes = 0 if result.attention is None else result.attention.nbytes
    return _OWN_BYTES + _TOKEN_BYTES * num_tokens + _NODE_BYTES * len(result.tree) + attention_bytes
