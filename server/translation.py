"""One request's way through the engine: texts into sentences, sentences to the engine, translations as they complete.

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

from server.bundle import Manifest
from server.errors import InvalidRequest, TranslationError
from server.sequence import DecodingOptions, FinishReason, Result
from server.text import SourceSentence, SplitText, split_text
from server.tokenizer import Tokenizer

MAX_TEXT_BYTES = 2 << 20
MAX_SENTENCES = 1 << 17  # of one request: bounds its cost in memory; 2 MiB of prose have about 25,000
_SHORT_CHARACTERS = 2000  # splitting less than that is not worth another thread
_FEW_SENTENCES = 500  # nor is submitting or answering fewer

_T = TypeVar("_T")


class SentenceEngine(Protocol):
    """The part of `server.engine.Engine` that answers requests."""

    def submit(
        self, sources: Sequence[Sequence[int]], options: DecodingOptions, deadline: float | None
    ) -> list[Future[Result]]:
        """See `Engine.submit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A loaded bundle and the engine that runs one of its variants."""

    manifest: Manifest
    variant: str
    tokenizer: Tokenizer
    engine: SentenceEngine


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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    def cancel(self) -> None:
        """Cancels what is not done."""
        for future in self._futures:
            future.cancel()

    async def completions(self) -> AsyncIterator[Completion]:
        """Yields the copied sentences, then each other one as it completes; to be used once."""
        loop = asyncio.get_running_loop()
        completed: asyncio.Queue[int] = asyncio.Queue()

        def tell(index: int, _: Future[Result]) -> None:  # on the engine's thread
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(completed.put_nowait, index)

        for index, future in enumerate(self._futures):
            future.add_done_callback(functools.partial(tell, index))
        for text_index, sentence_index, sentence in self._copied:
            yield Completion(text_index, sentence_index, _copied(sentence))
        for _ in self._futures:
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


async def split_texts(model: ServedModel, texts: Sequence[str], language: str) -> list[SplitText | InvalidRequest]:
    """Splits each text, on another thread when that takes long; a text that breaks a limit becomes its error.

    Args:
        model: whose tokenizer and limits apply.
        texts: any texts.
        language: BCP-47 code of the texts.
    """
    if sum(map(len, texts)) <= _SHORT_CHARACTERS:
        return _split_texts(model, texts, language)
    return await asyncio.to_thread(_split_texts, model, texts, language)


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


def _split_texts(model: ServedModel, texts: Sequence[str], language: str) -> list[SplitText | InvalidRequest]:
    max_tokens = model.manifest.limits.max_source_tokens
    split: list[SplitText | InvalidRequest] = []
    room = MAX_SENTENCES
    for index, text in enumerate(texts):
        field = f"contents[{index}]"
        # No character takes more than 4 bytes, so most texts need not be encoded to know.
        if len(text) * 4 > MAX_TEXT_BYTES and (num_bytes := len(text.encode())) > MAX_TEXT_BYTES:
            split.append(InvalidRequest(field, f"must be at most {MAX_TEXT_BYTES} bytes of UTF-8, not {num_bytes}"))
            continue
        parts = split_text(text, language, model.tokenizer.encode, max_tokens)
        if len(parts.sentences) > room:
            message = f"makes {len(parts.sentences)} sentences; this request has room for {room} of {MAX_SENTENCES}"
            split.append(InvalidRequest(field, message))
            continue
        room -= len(parts.sentences)
        split.append(parts)
    return split


def _copied(sentence: SourceSentence) -> TranslatedSentence:
    candidate = Candidate(sentence.text, 0.0, 0, FinishReason.STOP)
    return TranslatedSentence(source=sentence, candidates=(candidate,))
