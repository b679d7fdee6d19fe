"""The texts of a bulk call: as many are under way as keep the lanes busy, and each one waits for room.

Each text is a job of its own. Texts are accepted one after the other. A text that was accepted and then lost its room,
because memory ran short or the answer would come too late, is accepted again by itself. What would have another request
refused, such as a full queue or a quota that is used up, ends after a while, so the text is tried again until then.
Meanwhile no further text is read, and the client cannot send more.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, replace
from functools import partial

from server.errors import DeadlineExceeded, InvalidRequest, NotServing, Overloaded, TranslationError
from server.telemetry.log import add_facts
from server.translation.job import Job
from server.translation.memory import message_need
from server.translation.request import TranslationRequest
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator

# How many times the sentences that the engine runs at once a call has under way. Half, and lanes wait for texts while
# answers are written. Twice, and it holds twice as much.
_AHEAD = 2
_SENTENCE_BYTES = 1 << 10  # a text counts as at least one sentence for each of so many bytes


@dataclass(frozen=True, slots=True)
class BulkText:
    """A text of a bulk call.

    Attributes:
        identity: the client's name for it.
        num_bytes: of its message.
    """

    identity: int
    content: str
    num_bytes: int


@dataclass(frozen=True, slots=True)
class BulkAnswer:
    """The answer to a text: a finished job, or the error of this text alone.

    Attributes:
        held: gives back what the text has taken, when the answer is written.
    """

    identity: int
    outcome: Job | TranslationError
    held: contextlib.ExitStack


class Bulk:
    """The texts of one bulk call, on the event loop's thread. `answers` can be used once.

    Args:
        translator: accepts texts.
        running: says when the server shuts down.
        options: what all texts ask for; its contents do not matter.
    """

    def __init__(self, translator: Translator, running: RunningCalls, options: TranslationRequest) -> None:
        self._translator = translator
        self._running = running
        self._options = replace(options, is_bulk=True)
        self._window = _Window()
        self._answers: asyncio.Queue[BulkAnswer | None] = asyncio.Queue()
        self._error: TranslationError | None = None  # ends the call
        self._reading: asyncio.Task[None] | None = None
        self._has_begun = False  # whether a text was accepted, so that the options are right
        self._totals = dict.fromkeys(("texts", "sentences", "source_tokens", "target_tokens"), 0)

    async def answers(self, texts: AsyncIterator[BulkText]) -> AsyncGenerator[BulkAnswer]:
        """Yields the answer to each text when it is done. What a text holds is given back when the next is asked for.

        Raises:
            TranslationError: the options are wrong, `texts` has raised it, or the server shuts down or has lost what
                ran a text. The texts that were accepted before are answered first, where the server still can.
        """
        working = asyncio.create_task(self._work(texts))
        try:
            while (answer := await self._answers.get()) is not None:
                with answer.held:
                    yield answer
            await working
        finally:
            working.cancel()
            await asyncio.wait([working])
            while not self._answers.empty():
                if (left := self._answers.get_nowait()) is not None:
                    left.held.close()
            add_facts(**self._totals)

    async def _work(self, texts: AsyncIterator[BulkText]) -> None:
        """Translates all texts. Raises the error that ends the call."""
        try:
            with self._running.warned(partial(self._stop, NotServing("the server is shutting down"))):
                async with asyncio.TaskGroup() as group:
                    self._reading = group.create_task(self._read(texts, group))
        finally:
            self._answers.put_nowait(None)
        if self._error is not None:
            raise self._error

    def _stop(self, error: TranslationError) -> None:
        """Reads no further text, and ends the call with an error when those that were accepted are answered."""
        self._error = self._error or error
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self, texts: AsyncIterator[BulkText], group: asyncio.TaskGroup) -> None:
        try:
            async for text in texts:
                with contextlib.ExitStack() as held:
                    try:
                        job = await self._accept(text, held)
                    except (InvalidRequest, DeadlineExceeded) as error:
                        if not self._has_begun and not _is_of_text(error):
                            raise
                        self._answer(text, error, held)
                    else:
                        own = held.pop_all()
                        finishing = group.create_task(self._finish(text, job, own))
                        finishing.add_done_callback(partial(_close, own))  # even if it never begins
                await self._window.wait_for_room()  # a text that has failed takes some too, until its answer is read
        except TranslationError as error:
            self._error = self._error or error

    async def _finish(self, text: BulkText, job: Job, held: contextlib.ExitStack) -> None:
        """Waits for a job, and answers its text. The text is tried again if there was no room for its sentences."""
        try:
            while True:
                try:
                    await job.finish()
                    break
                except Overloaded as error:
                    await asyncio.sleep(error.retry_after_seconds)
                    job = await self._accept(text, held)
            for name, number in _counts(job).items():
                self._totals[name] += number
            self._answer(text, job, held)
        except NotServing as error:
            self._stop(error)
        except TranslationError as error:
            self._answer(text, error, held)

    def _answer(self, text: BulkText, outcome: Job | TranslationError, held: contextlib.ExitStack) -> None:
        self._totals["texts"] += 1
        self._answers.put_nowait(BulkAnswer(text.identity, outcome, held.pop_all()))

    async def _accept(self, text: BulkText, held: contextlib.ExitStack) -> Job:
        """Makes a job of a text as soon as there is room for it. Raises as `Translator.accept`, but not Overloaded.

        Args:
            text: any text.
            held: takes what the text holds, in place of what it has.
        """
        while True:
            held.close()
            least = max(1, text.num_bytes // _SENTENCE_BYTES)
            held.enter_context(self._window.hold(least))
            try:
                held.enter_context(self._translator.memory.hold(message_need(text.num_bytes)))
                request = replace(self._options, contents=[text.content], arrived=time.monotonic())
                job = held.enter_context(await self._translator.accept(request))
            except Overloaded as error:
                held.close()
                await asyncio.sleep(error.retry_after_seconds)
                continue
            self._has_begun = True
            self._window.fit(job)
            held.enter_context(self._window.hold(max(0, _counts(job)["sentences"] - least)))
            return job


class _Window:
    """Counts the sentences of a call that are under way."""

    def __init__(self) -> None:
        self._most = 1
        self._num_sentences = 0
        self._has_fewer = asyncio.Event()

    def fit(self, job: Job) -> None:
        """Sets the size by the engines that run a job."""
        legs = [leg for route in job.routes for leg in route]
        self._most = _AHEAD * max(leg.model.engine.most_sentences(leg.options) for leg in legs)

    @contextlib.contextmanager
    def hold(self, num_sentences: int) -> Iterator[None]:
        """Counts sentences until the block is left."""
        self._num_sentences += num_sentences
        try:
            yield
        finally:
            self._num_sentences -= num_sentences
            self._has_fewer.set()

    async def wait_for_room(self) -> None:
        """Returns when there is room for a sentence."""
        while self._num_sentences >= self._most:
            self._has_fewer.clear()
            await self._has_fewer.wait()


def _close(held: contextlib.ExitStack, _: object) -> None:
    held.close()


def _counts(job: Job) -> dict[str, int]:
    """Returns the facts of a job that are summed up."""
    return {
        "sentences": sum(len(answer.split.sentences) for answer in job.answers),
        "source_tokens": sum(answer.num_source_tokens for answer in job.answers),
        "target_tokens": sum(answer.num_target_tokens for answer in job.answers),
    }


def _is_of_text(error: TranslationError) -> bool:
    """Whether an error is about a text, whatever the options."""
    return isinstance(error, InvalidRequest) and error.field.startswith("contents")
