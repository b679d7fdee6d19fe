"""The texts of a bulk translation: each goes out when the server takes it, and again if its call is lost.

A server reads ahead only as far as it needs, so only few texts have been sent and have no answer. They are kept here.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator

import grpc
import grpc.aio

from babelserve.calls import Connection
from babelserve.errors import DeadlineExceeded, InvalidRequest, ServerFailed
from babelserve.losses import Losses
from babelserve.messages import MAX_REQUEST_BYTES, translate_result
from babelserve.results import BulkTranslation
from babelserve.terms import read_glossaries
from babelserve.v1 import translation_pb2
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub


class _Unanswered:
    """Texts that have been sent and have no answer yet, and what one more call must send again.

    Args:
        options: how all texts are translated, without contents.
        contents: the texts.

    Raises:
        TypeError: `contents` is one string, which would be sent letter by letter.
    """

    def __init__(self, options: translation_pb2.TranslateRequest, contents: object) -> None:
        if isinstance(contents, str | bytes):
            raise TypeError("contents must be an iterable of texts, not one string: use [text]")
        self.fault: BaseException | None = None  # of the given texts; ends the sending
        self._options = translation_pb2.TranslateBulkRequest(options=options)
        self._messages: dict[int, translation_pb2.TranslateBulkRequest] = {}  # without an answer
        self._again: deque[int] = deque()  # to be sent by this call, before any other
        self._num_calls = 0
        self._num_texts = 0

    def answered(self, number: int) -> None:
        """Forgets a text. Raises ServerFailed if it is none that waits for an answer."""
        if self._messages.pop(number, None) is None:
            raise ServerFailed(f"the server has answered text {number}, which it was not sent, or has answered before")

    def finish(self) -> None:
        """Raises what the given texts have raised, or ServerFailed if a text has no answer."""
        if self.fault is not None:
            raise self.fault
        if self._messages:
            raise ServerFailed(f"the server has left {len(self._messages)} texts without an answer")

    def _new_call(self) -> int:
        """Ends the sending of the call before; returns the number of the new one."""
        self._num_calls += 1
        self._again = deque(self._messages)
        return self._num_calls

    def _add(self, content: str) -> translation_pb2.TranslateBulkRequest:
        """Makes a text's message, and keeps it. Raises TypeError or InvalidRequest if it cannot be sent."""
        number = self._num_texts
        if not isinstance(content, str):
            raise TypeError(f"contents[{number}] must be a string, not {type(content).__name__}")
        try:
            text = translation_pb2.BulkText(id=number, content=content)
        except UnicodeEncodeError as error:
            raise InvalidRequest(f"contents[{number}] is not valid Unicode: it holds a lone surrogate") from error
        message = translation_pb2.TranslateBulkRequest(text=text)
        if (num_bytes := message.ByteSize()) > MAX_REQUEST_BYTES:
            raise InvalidRequest(f"contents[{number}]: has {num_bytes} bytes; the limit is {MAX_REQUEST_BYTES}")
        self._messages[number] = message
        self._num_texts += 1
        return message


class BulkTexts(_Unanswered):
    """For threads: gRPC takes messages on a thread of its own.

    Args:
        contents: the texts; the iterator is asked for one after the other.
    """

    def __init__(self, options: translation_pb2.TranslateRequest, contents: Iterable[str]) -> None:
        super().__init__(options, contents)
        self._contents = iter(contents)
        self._changed = threading.Condition()
        self._is_asking = False  # whether a thread, of this call or of one before, waits for the iterator
        self._has_ended = False  # whether the iterator has

    def messages(self, seconds: float | None) -> Iterator[translation_pb2.TranslateBulkRequest] | None:
        """Waits until there is something to send; a call without texts could be lost before it has an answer.

        Args:
            seconds: after which the call begins all the same; None for ever.

        Returns:
            The messages of one more call. None: no text is left.
        """
        with self._changed:
            call = self._new_call()
            self._changed.notify_all()
            if call > 1 and not (self._again or self._is_asking or self._has_ended):
                self._is_asking = True  # a thread of its own, as this one waits no longer than `seconds`
                threading.Thread(target=self._ask, daemon=True).start()
            self._changed.wait_for(lambda: self._again or not self._is_asking, seconds)
            if self._has_ended and not self._again:
                return None
        return self._messages_of(call)

    def _messages_of(self, call: int) -> Iterator[translation_pb2.TranslateBulkRequest]:
        yield self._options
        while (message := self._next(call)) is not None:
            yield message

    def _next(self, call: int) -> translation_pb2.TranslateBulkRequest | None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: call != self._num_calls or self._again or not self._is_asking)
                if call != self._num_calls:
                    return None
                if self._again:
                    return self._messages[self._again.popleft()]
                if self._has_ended:
                    return None
                self._is_asking = True
            self._ask()

    def _ask(self) -> None:
        """Waits for one text more, which whichever call is current then sends."""
        try:
            content = next(self._contents)
            with self._changed:
                self._again.append(self._add(content).text.id)
        except Exception as error:  # noqa: BLE001  # gRPC would swallow it
            self.fault = None if isinstance(error, StopIteration) else error
            self._has_ended = True
        finally:
            with self._changed:
                self._is_asking = False
                self._changed.notify_all()


class AsyncBulkTexts(_Unanswered):
    """The same for asyncio.

    The first text of a call goes alone until it is answered: if the server refuses the options, nothing is being sent
    that would fail, for which gRPC would give an error of its own in place of the server's.

    Args:
        contents: the texts, from an iterable of either kind.
    """

    def __init__(self, options: translation_pb2.TranslateRequest, contents: Iterable[str] | AsyncIterable[str]) -> None:
        super().__init__(options, contents)
        self._contents = aiter(contents) if isinstance(contents, AsyncIterable) else _as_async(contents)
        self._has_answer = asyncio.Event()  # whether a text of this call has
        self._asking: asyncio.Task[None] | None = None  # outlives a call, whose end would cancel the iterator
        self._has_ended = False  # whether the iterator has

    async def messages(self, seconds: float | None) -> AsyncIterator[translation_pb2.TranslateBulkRequest] | None:
        """See `BulkTexts.messages`."""
        self._has_answer.clear()
        call = self._new_call()
        if call > 1 and not (self._again or self._has_ended):
            await asyncio.wait([self._asked()], timeout=seconds)
        if self._has_ended and not self._again:
            return None
        return self._messages_of(call)

    def answered(self, number: int) -> None:
        """See `_Unanswered`."""
        super().answered(number)
        self._has_answer.set()

    def close(self) -> None:
        """Asks for no further text."""
        if self._asking is not None:
            self._asking.cancel()

    async def _messages_of(self, call: int) -> AsyncIterator[translation_pb2.TranslateBulkRequest]:
        yield self._options
        while (message := await self._next(call)) is not None:
            yield message
            await self._has_answer.wait()

    async def _next(self, call: int) -> translation_pb2.TranslateBulkRequest | None:
        while call == self._num_calls:
            if self._again:
                return self._messages[self._again.popleft()]
            if self._has_ended:
                return None
            await asyncio.wait([self._asked()])
        return None

    def _asked(self) -> "asyncio.Task[None]":
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        return self._asking

    async def _ask(self) -> None:
        """See `BulkTexts._ask`."""
        try:
            content = await anext(self._contents)
            self._again.append(self._add(content).text.id)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # gRPC would swallow it
            self.fault = None if isinstance(error, StopAsyncIteration) else error
            self._has_ended = True


def translate_bulk(
    stub: TranslationServiceStub, connection: Connection, texts: BulkTexts, deadline_seconds: float | None
) -> Iterator[BulkTranslation]:
    """See `Client.translate_bulk`."""
    deadline, losses = _Deadline(deadline_seconds), Losses(connection.max_attempts)
    while (messages := texts.messages(deadline.left())) is not None:
        call = stub.TranslateBulk(messages, **connection.bulk_terms(deadline.left()))
        try:
            for response in call:
                losses.end()
                yield _read(connection.taken(response), texts)
            break
        except grpc.RpcError as error:
            pause = losses.pause(error, connection.failure(error))
        finally:
            call.cancel()
        time.sleep(deadline.cut(pause))
    texts.finish()


async def translate_bulk_async(
    stub: TranslationServiceStub, connection: Connection, texts: AsyncBulkTexts, deadline_seconds: float | None
) -> AsyncIterator[BulkTranslation]:
    """See `AsyncClient.translate_bulk`."""
    deadline, losses = _Deadline(deadline_seconds), Losses(connection.max_attempts)
    try:
        while (messages := await texts.messages(deadline.left())) is not None:
            call = stub.TranslateBulk(messages, **connection.bulk_terms(deadline.left()))
            try:
                async for response in call:
                    losses.end()
                    yield _read(connection.taken(response), texts)
                break
            except grpc.aio.AioRpcError as error:
                pause = losses.pause(error, await asyncio.to_thread(connection.failure, error))
            finally:
                call.cancel()
            await asyncio.sleep(deadline.cut(pause))
        texts.finish()
    finally:
        texts.close()


class _Deadline:
    """The seconds that are left of all calls together; None for ever."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        if self._end is None:
            return None
        if (seconds := self._end - time.monotonic()) <= 0:
            raise DeadlineExceeded("the deadline of all texts has passed")  # gRPC may say "Internal error from Core"
        return seconds

    def cut(self, seconds: float) -> float:
        """Returns `seconds`, or the seconds until the deadline if it comes sooner."""
        left = self.left()
        return seconds if left is None else min(seconds, left)


def _read(response: translation_pb2.TranslateBulkResponse, texts: _Unanswered) -> BulkTranslation:
    texts.answered(response.id)
    (translation,) = translate_result(
        translation_pb2.TranslateResponse(translations=[response.translation]), 1
    ).translations
    return BulkTranslation(
        index=response.id,
        translation=translation,
        model=response.model,
        model_version=response.model_version,
        glossaries=read_glossaries(response),
    )


async def _as_async(contents: Iterable[str]) -> AsyncIterator[str]:
    for content in contents:
        yield content
