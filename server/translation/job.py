"""One request's sentences on their way through the engines.

Unary and streamed calls both go this way, so that their results are the same.
"""

import asyncio
import contextlib
import functools
import itertools
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from server.decoding.result import FinishReason, Result
from server.engine.flow import ANYONE, Flow
from server.errors import Overloaded, TranslationError
from server.telemetry.tracing import current_trace
from server.text.sentences import SourceSentence
from server.translation.answer import TextAnswer, TranslatedSentence, raise_if_all_failed
from server.translation.legs import Leg
from server.translation.mailbox import Doorbell, Mailbox
from server.translation.relay import Relay

_FEW_SENTENCES = 500  # the event loop is not kept waiting for more than that at once
_SENTENCES_PER_WAKE = 8  # of the event loop, if neither the caller nor a second engine is to have any before

_T = TypeVar("_T")


class Place(NamedTuple):
    """Where a sentence stands in the request."""

    text: int
    sentence: int


class _Part(NamedTuple):
    """What the engine has of a sentence: the sentence, or on its second leg a piece of what the first made of it."""

    place: Place
    future: Future[Result]
    piece: int | None = None


class Job:
    """A request under way: its answers fill as `completions` goes on. Leaving its `with` block cancels the rest.

    Made by `start_job`.

    Attributes:
        answers: of each text.
        ways: the legs of its texts, each way once.
        num_hypotheses: that were asked for.
        held: what the job has taken, and gives back when it is left.
    """

    def __init__(
        self,
        answers: Sequence[TextAnswer],
        parts: Sequence[_Part],
        deadline: float,
        arrived: float,
        flow: Flow,
        doorbell: Doorbell,
    ) -> None:
        self.answers = answers
        self.ways = list({id(answer.legs): answer.legs for answer in answers if answer.legs}.values())
        self.num_hypotheses = self.ways[0][-1].options.num_hypotheses
        self.held = contextlib.ExitStack()
        self._parts = parts  # in the order of their places
        self._second: dict[int, list[Future[Result]]] = {}  # of second legs, by text
        self._relays: dict[Place, Relay] = {}
        self._deadline = deadline
        self._arrived = arrived
        self._flow = flow
        self._completed: Mailbox[_Part] = Mailbox(doorbell)
        self._num_running = 0
        self._has_first = False
        self._is_whole = False  # answered at once: nobody has anything of it before
        self._is_left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_left = True
        if error is not None and self._is_whole:
            for answer in self.answers:
                if answer.legs:
                    answer.legs[-1].model.metrics.undelivered_tokens_total.inc(answer.num_target_tokens)
        # Their callbacks know the job: it would be in a cycle, and keep its model in memory until that is collected.
        futures = [part.future for part in self._parts]
        futures += itertools.chain.from_iterable(self._second.values())
        self._parts, self._second = [], {}
        _cancel(futures, 0)
        self.held.__exit__(kind, error, trace)

    async def finish(self) -> None:
        """Waits until every text has its answer. Raises the first text's error if all of them fail."""
        self._is_whole = True
        async for _ in self.completions():
            pass

    async def completions(self) -> AsyncIterator[Place]:
        """Adds each sentence to its text's answer as it completes, copied ones first, and tells where; for one use.

        Of a text that fails, the first failure is told and nothing more. Raises the first text's error if all fail.
        """
        for count, (place, sentence) in enumerate(_sentences(self.answers, are_copied=True)):
            await _pause_after(count)
            self.answers[place.text].sentences[place.sentence] = TranslatedSentence.copied(sentence)
            yield place
        async for part in self._done():
            answer = self.answers[part.place.text]
            if answer.error is None and self._add(answer, part):
                self._note_first(answer)
                raise_if_all_failed(self.answers)
                yield part.place

    async def assemble(self, build: Callable[[], _T]) -> _T:
        """Calls a function that puts the response together, on another thread when that takes long."""
        is_short = sum(len(answer.split.sentences) for answer in self.answers) <= _FEW_SENTENCES
        return build() if is_short else await asyncio.to_thread(build)

    async def _done(self) -> AsyncIterator[_Part]:
        """Yields what is done, and what its ends set going, as it is done."""
        for index, part in enumerate(self._parts):
            self._watch(part)
            await _pause_after(index)
        for count in itertools.takewhile(lambda _: self._num_running, itertools.count()):
            await _pause_after(count)
            can_wait = self._is_whole and self._has_first and max(map(len, self.ways)) == 1
            part = await self._completed.get(min(_SENTENCES_PER_WAKE, self._num_running) if can_wait else 1)
            self._num_running -= 1
            yield part

    def _watch(self, part: _Part) -> None:
        self._num_running += 1
        tell = functools.partial(self._tell, part.place, part.piece, asyncio.get_running_loop())
        part.future.add_done_callback(tell)  # which does not know it: that would be a cycle, for the collector

    def _tell(self, place: Place, piece: int | None, loop: asyncio.AbstractEventLoop, future: Future[Result]) -> None:
        """Says that something is done; on the engine's thread."""
        if not self._is_left:
            self._completed.put(_Part(place, future, piece), loop)

    def _add(self, answer: TextAnswer, part: _Part) -> bool:
        """Adds what is done to its text. Returns whether there is anything to tell: a sentence, or a text's failure."""
        place = part.place
        try:
            result = part.future.result()
            if part.piece is not None:
                relay, leg = self._relays[place], answer.legs[1]
                piece = relay.middle.split.sentences[part.piece]
                relay.middle.sentences[part.piece] = self._translated(leg, piece, result)
                return self._end(answer, place, relay)
            sentence = self._translated(answer.legs[0], answer.split.sentences[place.sentence], result)
            if len(answer.legs) > 1:
                return self._pass_on(answer, place, sentence)
            answer.sentences[place.sentence] = sentence
        except TranslationError as error:
            self._fail(answer, place.text, error)
        return True

    def _note_first(self, answer: TextAnswer) -> None:
        if not self._has_first and answer.error is None:
            self._has_first = True
            metrics = answer.legs[-1].model.metrics.translations
            metrics.time_to_first_sentence_seconds.observe(time.monotonic() - self._arrived)

    def _fail(self, answer: TextAnswer, text: int, error: TranslationError) -> None:
        """Ends a text: nobody wants its other sentences any more."""
        answer.error = error
        bounds = Place(text, 0), Place(text + 1, 0)
        first, end = (bisect_left(self._parts, bound, key=lambda part: part.place) for bound in bounds)
        _cancel([part.future for part in self._parts[first:end]], 0)
        _cancel(self._second.get(text, []), 0)

    def _pass_on(self, answer: TextAnswer, place: Place, sentence: TranslatedSentence) -> bool:
        """Sends a sentence on its second leg. Returns whether it is there already: nothing of it had to go."""
        leg = answer.legs[1]
        relay = self._relays[place] = Relay.begin(sentence, leg)
        pieces = relay.middle.split.sentences
        waiting = [index for index in range(len(pieces)) if index not in relay.middle.sentences]
        if waiting:
            engine = leg.model.engine
            engine.observe_text(len(sentence.candidates[0].text), [each.num_tokens for each in pieces])
            sources = [pieces[index].source_ids or () for index in waiting]
            try:
                futures = engine.submit(sources, leg.options, self._deadline, self._flow)
            except Overloaded as error:
                leg.model.metrics.count_refusal(error.reason)
                raise
            self._second.setdefault(place.text, []).extend(futures)
            for index, future in zip(waiting, futures, strict=True):
                self._watch(_Part(place, future, index))
        return self._end(answer, place, relay)

    def _end(self, answer: TextAnswer, place: Place, relay: Relay) -> bool:
        """Adds a sentence whose second leg has ended to its text; returns whether it has."""
        if not relay.is_complete:
            return False
        answer.sentences[place.sentence] = relay.end(self.num_hypotheses)
        del self._relays[place]
        return True

    def _translated(self, leg: Leg, source: SourceSentence, result: Result) -> TranslatedSentence:
        """Returns a sentence as a leg has translated it, of which it tells the metrics and the call's trace."""
        tokenizer = leg.model.tokenizer
        best, timings = result.hypotheses[0], result.timings
        leg.model.metrics.translations.observe(
            source.num_tokens,
            tokenizer.num_unknown(source.source_ids or ()),
            best.ids,
            timings.decode_seconds,
            is_truncated=best.finish_reason is FinishReason.LENGTH,
        )
        current_trace.get().add_sentence(timings.queue_seconds, timings.encode_seconds, timings.decode_seconds)
        return TranslatedSentence.decoded(source, result, tokenizer)


async def start_job(
    answers: Sequence[TextAnswer], deadline: float, arrived: float, doorbell: Doorbell, flow: Flow = ANYONE
) -> Job:
    """Gives the sentences of a request to the engines of their first legs, on another thread when that takes long.

    Args:
        answers: as they begin, with their legs; those that have failed already get nothing.
        deadline: instant of `time.monotonic`.
        arrived: the same, of the request's arrival.
        doorbell: of the event loop.
        flow: that they belong to.

    Raises:
        Overloaded: a queue is at a limit.
        NotServing: an engine has stopped.
    """
    of_legs: dict[int, tuple[Leg, list[tuple[Place, SourceSentence]]]] = {}
    for place, sentence in _sentences(answers, are_copied=False):
        leg = answers[place.text].legs[0]
        of_legs.setdefault(id(leg), (leg, []))[1].append((place, sentence))
    parts: list[_Part] = []
    try:
        for leg, own in of_legs.values():
            sources = [sentence.source_ids or () for _, sentence in own]
            futures = await _submit(leg, sources, deadline, flow)
            parts += [_Part(place, future) for (place, _), future in zip(own, futures, strict=True)]
    except BaseException:
        _cancel([part.future for part in parts], 0)
        raise
    parts.sort(key=lambda part: part.place)
    return Job(answers, parts, deadline, arrived, flow, doorbell)


def _sentences(answers: Sequence[TextAnswer], are_copied: bool) -> Iterator[tuple[Place, SourceSentence]]:
    """Yields the sentences that are copied, or else those that are translated, and where they stand."""
    for index, answer in enumerate(answers):
        for number, sentence in enumerate(answer.split.sentences):
            if (sentence.source_ids is None) == are_copied:
                yield Place(index, number), sentence


async def _submit(leg: Leg, sources: list[tuple[int, ...]], deadline: float, flow: Flow) -> list[Future[Result]]:
    """Submits, many on another thread; if the caller leaves meanwhile, what has been submitted is cancelled."""
    submit = functools.partial(leg.model.engine.submit, sources, leg.options, deadline - leg.spared_seconds, flow)
    if len(sources) <= _FEW_SENTENCES:
        return submit()
    submitting = asyncio.ensure_future(asyncio.to_thread(submit))
    try:
        return await asyncio.shield(submitting)
    except asyncio.CancelledError:
        submitting.add_done_callback(_cancel_submitted)
        raise


def _cancel_submitted(submitting: "asyncio.Future[list[Future[Result]]]") -> None:
    if not submitting.cancelled() and submitting.exception() is None:
        _cancel(submitting.result(), 0)


def _cancel(futures: Sequence[Future[Result]], start: int) -> None:
    """Cancels what is not done; of many sentences, most of them in the event loop's next turns."""
    end = start + _FEW_SENTENCES
    for future in futures[start:end]:
        future.cancel()
    if end < len(futures):
        asyncio.get_running_loop().call_soon(_cancel, futures, end)


async def _pause_after(index: int) -> None:
    """Lets the event loop do something else after every few sentences: awaiting alone need not."""
    if index % _FEW_SENTENCES == _FEW_SENTENCES - 1:
        await asyncio.sleep(0)
