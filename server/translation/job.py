"""One request's way through the engine: sentences to the engine, translations as they complete.

Knows neither gRPC nor protobuf. Unary and streamed calls both go this way, so that their results are the same.
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, TypeVar

from server.bundle.bundle import Manifest
from server.bundle.tokenizer import Tokenizer
from server.engine.sequence import DecodingOptions, FinishReason, Result
from server.errors import InvalidRequest, TranslationError
from server.text.sentences import SourceSentence, SplitText

_FEW_SENTENCES = 500  # the event loop is not kept waiting for more than that at once

_T = TypeVar("_T")


class SentenceEngine(Protocol):
    """The part of `server.engine.engine.Engine` that answers requests."""

    def submit(
        self, sources: Sequence[Sequence[int]], options: DecodingOptions, deadline: float | None
    ) -> list[Future[Result]]:
        """See `Engine.submit`."""

    def check_room(self) -> None:
        """See `Engine.check_room`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A loaded bundle and the engine that runs one of its variants."""

    manifest: Manifest
    variant: str
    tokenizer: Tokenizer
    engine: SentenceEngine

    @property
    def has_shortlist(self) -> bool:
        """Whether `DecodingOptions.use_shortlist` may be asked for."""
        variant = self.manifest.variants.get(self.variant)
        return variant is not None and variant.has_shortlist


@dataclass(frozen=True, slots=True)
class Candidate:
    """One translation of a sentence: its text, score, target tokens (eos not counted) and why it ended."""

    text: str
    score: float
    num_tokens: int
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedSentence:
    """A sentence with its candidates, best first, at least one, and the seconds that it took."""

    source: SourceSentence
    candidates: tuple[Candidate, ...]
    queue_seconds: float = 0.0
    encode_seconds: float = 0.0
    decode_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Completion:
    """What became of one sentence; the indices place it."""

    text_index: int
    sentence_index: int
    outcome: TranslatedSentence | TranslationError


class Submission:
    """A request's sentences in the engine. Leaving its `with` block cancels those that are not done.

    Args:
        model: translates them.
        texts: those that are errors are left out.
        options: checked.
        deadline: instant of `time.monotonic`.

    Raises:
        Overloaded: the queue is at a limit.
        NotServing: the engine has stopped.
    """

    def __init__(
        self,
        model: ServedModel,
        texts: Sequence[SplitText | InvalidRequest],
        options: DecodingOptions,
        deadline: float,
    ) -> None:
        self._tokenizer = model.tokenizer
        self._copied: list[tuple[int, int, SourceSentence]] = []
        self._places: list[tuple[int, int, SourceSentence]] = []
        sources: list[tuple[int, ...]] = []
        for text_index, text in enumerate(texts):
            for sentence_index, sentence in enumerate(text.sentences if isinstance(text, SplitText) else ()):
                place = (text_index, sentence_index, sentence)
                if sentence.source_ids is None:
                    self._copied.append(place)
                else:
                    self._places.append(place)
                    sources.append(sentence.source_ids)
        self._futures = model.engine.submit(sources, options, deadline) if sources else []
        self._is_left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    def cancel(self) -> None:
        """Cancels what is not done; of many sentences, most of them in the event loop's next turns."""
        self._is_left = True
        self._cancel_from(0)

    def _cancel_from(self, start: int) -> None:
        end = start + _FEW_SENTENCES
        for future in self._futures[start:end]:
            future.cancel()
        if end < len(self._futures):
            asyncio.get_running_loop().call_soon(self._cancel_from, end)

    async def completions(self) -> AsyncIterator[Completion]:
        """Yields the copied sentences, then each other one as it completes; to be used once."""
        loop = asyncio.get_running_loop()
        completed: asyncio.Queue[int] = asyncio.Queue()

        def tell(index: int, _: Future[Result]) -> None:  # on the engine's thread
            if self._is_left:
                return
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(completed.put_nowait, index)

        for index, future in enumerate(self._futures):
            future.add_done_callback(functools.partial(tell, index))
            await _pause_after(index)
        for index, (text_index, sentence_index, sentence) in enumerate(self._copied):
            yield Completion(text_index, sentence_index, _copied(sentence))
            await _pause_after(index)
        for count in range(len(self._futures)):
            await _pause_after(count)
            index = await completed.get()
            text_index, sentence_index, sentence = self._places[index]
            yield Completion(text_index, sentence_index, self._outcome(sentence, self._futures[index]))

    def _outcome(self, sentence: SourceSentence, future: Future[Result]) -> TranslatedSentence | TranslationError:
        try:
            result = future.result()
        except TranslationError as error:
            return error
        candidates = tuple(
            Candidate(self._tokenizer.decode(each.ids), each.score, len(each.ids), each.finish_reason)
            for each in result.hypotheses
        )
        return TranslatedSentence(
            source=sentence,
            candidates=candidates,
            queue_seconds=result.queue_seconds,
            encode_seconds=result.encode_seconds,
            decode_seconds=result.decode_seconds,
        )


async def submit(
    model: ServedModel, texts: Sequence[SplitText | InvalidRequest], options: DecodingOptions, deadline: float
) -> Submission:
    """Makes a `Submission`, on another thread when that takes long; if the caller leaves meanwhile, it is cancelled."""
    if count_sentences(texts) <= _FEW_SENTENCES:
        return Submission(model, texts, options, deadline)
    making = asyncio.ensure_future(asyncio.to_thread(Submission, model, texts, options, deadline))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(_cancel_made)
        raise


async def assemble(num_sentences: int, build: Callable[[], _T]) -> _T:
    """Calls a function that puts an answer together, on another thread when that takes long."""
    return build() if num_sentences <= _FEW_SENTENCES else await asyncio.to_thread(build)


def count_sentences(texts: Sequence[SplitText | InvalidRequest]) -> int:
    """Sentences of all texts that are no errors."""
    return sum(len(text.sentences) for text in texts if isinstance(text, SplitText))


def _cancel_made(making: "asyncio.Future[Submission]") -> None:
    if not making.cancelled() and making.exception() is None:
        making.result().cancel()


async def _pause_after(index: int) -> None:
    """Lets the event loop do something else after every few sentences: awaiting alone need not."""
    if index % _FEW_SENTENCES == _FEW_SENTENCES - 1:
        await asyncio.sleep(0)


def _copied(sentence: SourceSentence) -> TranslatedSentence:
    candidate = Candidate(sentence.text, 0.0, 0, FinishReason.STOP)
    return TranslatedSentence(source=sentence, candidates=(candidate,))
