"""One request's sentences on their way through the engine.

Unary and streamed calls both go this way, so that their results are the same.
"""

import asyncio
import contextlib
import functools
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from server.bundle.languages import LanguagePair
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Result
from server.engine.flow import ANYONE, Flow
from server.errors import TranslationError
from server.models.model import Model
from server.telemetry.tracing import current_trace
from server.text.sentences import SourceSentence
from server.translation.answer import Candidate, TextAnswer, TranslatedSentence

_FEW_SENTENCES = 500  # the event loop is not kept waiting for more than that at once

_T = TypeVar("_T")


class Place(NamedTuple):
    """Where a sentence stands in the request."""

    text: int
    sentence: int


class Job:
    """A request under way: its answers fill as `completions` goes on. Leaving its `with` block cancels the rest.

    Made by `start_job`.

    Attributes:
        model: that translates.
        pair: the direction, by the model's codes.
        options: of the search.
        answers: of each text.
        held: what the job has taken, and gives back when it is left.
    """

    def __init__(
        self,
        model: Model,
        pair: LanguagePair,
        options: DecodingOptions,
        answers: Sequence[TextAnswer],
        places: Sequence[Place],
        futures: Sequence[Future[Result]],
        arrived: float,
    ) -> None:
        self.model = model
        self.pair = pair
        self.options = options
        self.answers = answers
        self.held = contextlib.ExitStack()
        self._places = places
        self._futures = futures
        self._arrived = arrived
        self._has_first = False
        self._is_left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_left = True
        # Their callbacks know the job: it would be in a cycle, and keep its model in memory until that is collected.
        futures, self._futures = self._futures, ()
        _cancel(futures, 0)
        self.held.__exit__(kind, error, trace)

    async def finish(self) -> None:
        """Waits until every text has its answer. Raises the first text's error if all of them fail."""
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
        async for place, future in self._done():
            answer = self.answers[place.text]
            if answer.error is None:
                self._add(answer, place, future)
                raise_if_all_failed(self.answers)
                yield place

    async def assemble(self, build: Callable[[], _T]) -> _T:
        """Calls a function that puts the response together, on another thread when that takes long."""
        is_short = sum(len(answer.split.sentences) for answer in self.answers) <= _FEW_SENTENCES
        return build() if is_short else await asyncio.to_thread(build)

    async def _done(self) -> AsyncIterator[tuple[Place, Future[Result]]]:
        """Yields each future as it is done."""
        loop = asyncio.get_running_loop()
        completed: asyncio.Queue[int] = asyncio.Queue()

        def tell(index: int, _: Future[Result]) -> None:  # on the engine's thread
            if not self._is_left:
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    loop.call_soon_threadsafe(completed.put_nowait, index)

        for index, future in enumerate(self._futures):
            future.add_done_callback(functools.partial(tell, index))
            await _pause_after(index)
        for count in range(len(self._futures)):
            await _pause_after(count)
            index = await completed.get()
            yield self._places[index], self._futures[index]

    def _add(self, answer: TextAnswer, place: Place, future: Future[Result]) -> None:
        """Adds a sentence to its text; when it failed, nobody wants the text's others any more."""
        try:
            result = future.result()
        except TranslationError as error:
            answer.error = error
            first, end = (bisect_left(self._places, Place(text, 0)) for text in (place.text, place.text + 1))
            _cancel(self._futures[first:end], 0)
        else:
            source = answer.split.sentences[place.sentence]
            answer.sentences[place.sentence] = _translated(source, result, self.model.tokenizer)
            self._observe(source, result)

    def _observe(self, source: SourceSentence, result: Result) -> None:
        """Tells the metrics and the call's trace of a translation."""
        metrics, best, timings = self.model.metrics.translations, result.hypotheses[0], result.timings
        if not self._has_first:
            self._has_first = True
            metrics.time_to_first_sentence_seconds.observe(time.monotonic() - self._arrived)
        metrics.observe(
            source.num_tokens,
            self.model.tokenizer.num_unknown(source.source_ids or ()),
            best.ids,
            timings.decode_seconds,
            is_truncated=best.finish_reason is FinishReason.LENGTH,
        )
        current_trace.get().add_sentence(timings.queue_seconds, timings.encode_seconds, timings.decode_seconds)


async def start_job(
    model: Model,
    pair: LanguagePair,
    options: DecodingOptions,
    answers: Sequence[TextAnswer],
    deadline: float,
    arrived: float,
    flow: Flow = ANYONE,
) -> Job:
    """Gives the sentences of a request to the engine, on another thread when that takes long.

    Args:
        model: translates them.
        pair: the direction.
        options: checked.
        answers: as they begin; those that have failed already get nothing.
        deadline: instant of `time.monotonic`.
        arrived: the same, of the request's arrival.
        flow: that they belong to.

    Raises:
        Overloaded: the queue is at a limit.
        NotServing: the engine has stopped.
    """
    waiting = list(_sentences(answers, are_copied=False))
    sources = [sentence.source_ids or () for _, sentence in waiting]
    futures: list[Future[Result]] = []
    if len(sources) > _FEW_SENTENCES:
        futures = await _submit_aside(model, sources, options, deadline, flow)
    elif sources:
        futures = model.engine.submit(sources, options, deadline, flow)
    return Job(model, pair, options, answers, [place for place, _ in waiting], futures, arrived)


def raise_if_all_failed(answers: Sequence[TextAnswer]) -> None:
    """Raises the first text's error if there is no text without one."""
    if answers[0].error is not None and all(answer.error is not None for answer in answers):
        raise answers[0].error


def _sentences(answers: Sequence[TextAnswer], are_copied: bool) -> Iterator[tuple[Place, SourceSentence]]:
    """Yields the sentences that are copied, or else those that are translated, and where they stand."""
    for index, answer in enumerate(answers):
        for number, sentence in enumerate(answer.split.sentences):
            if (sentence.source_ids is None) == are_copied:
                yield Place(index, number), sentence


async def _submit_aside(
    model: Model, sources: list[tuple[int, ...]], options: DecodingOptions, deadline: float, flow: Flow
) -> list[Future[Result]]:
    """Submits on another thread; if the caller leaves meanwhile, what has been submitted is cancelled."""
    submitting = asyncio.ensure_future(asyncio.to_thread(model.engine.submit, sources, options, deadline, flow))
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


def _translated(source: SourceSentence, result: Result, tokenizer: Tokenizer) -> TranslatedSentence:
    candidates = tuple(
        Candidate(tokenizer.decode(each.ids), each.score, len(each.ids), each.finish_reason)
        for each in result.hypotheses
    )
    return TranslatedSentence(source, candidates, result.timings)
