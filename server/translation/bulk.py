"""The texts of a bulk call: as many are under way as keep the lanes busy, and each one waits for room.

Texts come in groups, and each group is a job: a job of one text costs what a job of sixteen costs beside their
translation. Every text has an answer or an error of its own all the same: where a group is refused, or a text of it,
this is accepted again by itself. Groups are accepted one after the other. A text that was accepted and then lost its
room, because memory ran short or the answer would come too late, is accepted again. What would have another request
refused, such as a full queue or a quota that is used up, ends after a while, so the group is tried again until then.
Meanwhile no further group is read, and the client cannot send more.

An answer waits until the client reads it, and a client may never read. So answers are written as soon as their job is
done, and keep no model in memory.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from server.errors import DeadlineExceeded, InvalidRequest, NotServing, Overloaded, TranslationError
from server.telemetry.log import add_facts
from server.translation.answer import TextAnswer
from server.translation.bulk_window import BulkWindow
from server.translation.job import Job
from server.translation.memory import message_need
from server.translation.request import TranslationRequest
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator

_SENTENCE_BYTES = 1 << 10  # a text counts as at least one sentence for each of so many bytes

Written = TypeVar("Written")


@dataclass(frozen=True, slots=True)
class BulkText:
    """A text of a bulk call.

    Attributes:
        identity: the client's name for it.
        num_bytes: of its message.
        is_paid: whether its tenant has paid for it, because it was accepted before.
    """

    identity: int
    content: str
    num_bytes: int
    is_paid: bool = False


@dataclass(frozen=True, slots=True)
class BulkAnswer:
    """The answer to a text: a finished job, or the error of this text alone.

    Attributes:
        held: is closed when the written answer has been read. It gives back what the text's group has taken, if this is
            the last answer of the group. What the written answer takes may be added.
        index: the number of the text in the job.
    """

    identity: int
    outcome: Job | TranslationError
    held: contextlib.ExitStack
    index: int = 0


class Bulk(Generic[Written]):
    """The texts of one bulk call, on the event loop's thread. `answers` can be used once.

    Args:
        translator: accepts texts.
        running: says when the server shuts down.
        options: what all texts ask for; its contents do not matter.
        write: makes of each answer what `answers` yields. It must keep neither the job nor an error, which keep models.
    """

    def __init__(
        self,
        translator: Translator,
        running: RunningCalls,
        options: TranslationRequest,
        write: Callable[[BulkAnswer], Awaitable[Written]],
    ) -> None:
        self._translator = translator
        self._running = running
        self._options = replace(options, is_bulk=True)
        self._write = write
        self._window = BulkWindow()
        self._answers: asyncio.Queue[tuple[Written, contextlib.ExitStack] | None] = asyncio.Queue()
        self._error: TranslationError | None = None  # ends the call
        self._tasks = asyncio.TaskGroup()
        self._reading: asyncio.Task[None] | None = None
        self._has_begun = False  # whether a text was accepted, so that the options are right
        self._totals = dict.fromkeys(("texts", "sentences", "source_tokens", "target_tokens"), 0)

    async def answers(self, groups: AsyncIterator[Sequence[BulkText]]) -> AsyncGenerator[Written]:
        """Yields the written answer to each text when its group is done, and gives back what it holds after that.

        Args:
            groups: of texts, each at least one. Several should be short and few, since they are split in one go and are
                answered together.

        Raises:
            TranslationError: the options are wrong, `groups` has raised it, or the server shuts down or has lost what
                ran a text. The texts that were accepted before are answered first, where the server still can.
        """
        working = asyncio.create_task(self._work(groups))
        try:
            while (answer := await self._answers.get()) is not None:
                written, held = answer
                with held:
                    yield written
            await working
        finally:
            working.cancel()
            await asyncio.wait([working])
            while not self._answers.empty():
                if (left := self._answers.get_nowait()) is not None:
                    left[1].close()
            add_facts(**self._totals)

    async def _work(self, groups: AsyncIterator[Sequence[BulkText]]) -> None:
        """Translates all texts. Raises the error that ends the call."""
        try:
            with self._running.warned(partial(self._stop, NotServing("the server is shutting down"))):
                async with self._tasks:
                    self._reading = self._tasks.create_task(self._read(groups))
        finally:
            self._answers.put_nowait(None)
        if self._error is not None:
            raise self._error

    def _stop(self, error: TranslationError) -> None:
        """Reads no further text, and ends the call with an error when those that were accepted are answered."""
        self._error = self._error or error
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self, groups: AsyncIterator[Sequence[BulkText]]) -> None:
        try:
            async for texts in groups:
                await self._begin(texts)
                await self._window.wait_for_room()  # a text that has failed takes some too, until its answer is read
        except TranslationError as error:
            self._error = self._error or error

    async def _begin(self, texts: Sequence[BulkText]) -> None:
        """Accepts texts, and has a task finish them. Answers a text that fails by itself. Raises what is no text's."""
        with contextlib.ExitStack() as held:
            try:
                job, running = await self._accept(texts, held)
            except (InvalidRequest, DeadlineExceeded) as error:
                if len(texts) == 1:
                    if not self._has_begun and not _is_of_text(error):
                        raise
                    await self._answer(texts[0], error, held)
                    return
            else:
                own = held.pop_all()
                finishing = self._tasks.create_task(self._finish(texts, job, running, own))
                finishing.add_done_callback(partial(_close, own))  # even if it never begins
                return
        for text in texts:  # the error was that of the first one
            await self._begin([text])

    async def _finish(
        self, texts: Sequence[BulkText], job: Job, running: contextlib.ExitStack, held: contextlib.ExitStack
    ) -> None:
        """Waits for a job, and answers its texts. Those that must be accepted again are."""
        with contextlib.closing(running):
            with contextlib.suppress(TranslationError):  # each text has its own
                await job.finish()
            again = await self._answer_all(texts, job, held)
        del job  # it keeps its models in memory
        for text, seconds in again:
            await self._begin_again(text, seconds, held)

    async def _answer_all(
        self, texts: Sequence[BulkText], job: Job, held: contextlib.ExitStack
    ) -> list[tuple[BulkText, float]]:
        """Answers the texts of a finished job. Returns the texts to accept again, each with the seconds to wait."""
        again: list[tuple[BulkText, float]] = []
        done: list[tuple[BulkText, int, Job | TranslationError]] = []
        for index, (text, answer) in enumerate(zip(texts, job.answers, strict=True)):
            error = answer.error
            if isinstance(error, NotServing):
                self._stop(error)
            elif isinstance(error, Overloaded):
                again.append((replace(text, is_paid=True), error.retry_after_seconds))
            elif isinstance(error, InvalidRequest) and len(texts) > 1:
                again.append((replace(text, is_paid=True), 0.0))
            else:
                done.append((text, index, error or job))
        self._count([job.answers[index] for _, index, outcome in done if outcome is job])
        for text, index, outcome in done:
            await self._answer(text, outcome, held if index == done[-1][1] else contextlib.ExitStack(), index)
        return again

    async def _begin_again(self, text: BulkText, seconds: float, held: contextlib.ExitStack) -> None:
        """Accepts a text by itself after a while; it takes the place of what is held."""
        await asyncio.sleep(seconds)
        held.close()
        try:
            await self._begin([text])
        except NotServing as lost:
            self._stop(lost)
        except TranslationError as error:
            await self._answer(text, error, held)

    def _count(self, answers: Sequence[TextAnswer]) -> None:
        for name, number in _counts(answers).items():
            self._totals[name] += number

    async def _answer(
        self, text: BulkText, outcome: Job | TranslationError, held: contextlib.ExitStack, index: int = 0
    ) -> None:
        self._totals["texts"] += 1
        written = await self._write(BulkAnswer(text.identity, outcome, held, index))
        self._answers.put_nowait((written, held.pop_all()))

    async def _accept(self, texts: Sequence[BulkText], held: contextlib.ExitStack) -> tuple[Job, contextlib.ExitStack]:
        """Makes a job of texts as soon as there is room for it. Raises as `Translator.accept`, but not Overloaded.

        The job is returned with what gives back what it holds itself; `held` does so at the latest.

        Args:
            texts: any texts, at least one.
            held: takes what the texts hold, in place of what it has.
        """
        num_bytes = sum(text.num_bytes for text in texts)
        least = sum(max(1, text.num_bytes // _SENTENCE_BYTES) for text in texts)
        while True:
            held.close()
            held.enter_context(self._window.hold(least))
            try:
                held.enter_context(self._translator.memory.hold(message_need(num_bytes)))
                contents = [text.content for text in texts]
                paid = all(text.is_paid for text in texts)
                request = replace(self._options, contents=contents, is_paid=paid, arrived=time.monotonic())
                running = held.enter_context(contextlib.ExitStack())
                job = running.enter_context(await self._translator.accept(request))
            except Overloaded as error:
                held.close()
                await asyncio.sleep(error.retry_after_seconds)
                continue
            self._has_begun = True
            self._window.fit(job)
            held.enter_context(self._window.hold(max(0, _counts(job.answers)["sentences"] - least)))
            return job, running


def _close(held: contextlib.ExitStack, _: object) -> None:
    held.close()


def _counts(answers: Sequence[TextAnswer]) -> dict[str, int]:
    """Returns the facts of texts that are summed up."""
    return {
        "sentences": sum(len(answer.split.sentences) for answer in answers),
        "source_tokens": sum(answer.num_source_tokens for answer in answers),
        "target_tokens": sum(answer.num_target_tokens for answer in answers),
    }


def _is_of_text(error: TranslationError) -> bool:
    """Whether an error is about a text, whatever the options."""
    return isinstance(error, InvalidRequest) and error.field.startswith("contents")
