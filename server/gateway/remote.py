"""The backend that asks a server over gRPC: each call has its key, id and time, and the errors are the server's."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from babelserve.v1 import glossary_store_pb2 as store_pb
from babelserve.v1 import translation_pb2 as pb
from server.access.keys import hash_key
from server.access.tenants import ANONYMOUS
from server.errors import NotServing, TranslationError, Unauthenticated
from server.fronts.backend import Caller
from server.fronts.front import BodyTooLong
from server.gateway.failures import failure_of
from server.gateway.upstream import Upstream
from server.rpc.intake import MAX_MESSAGE_BYTES
from server.telemetry.tracing import TraceParent
from server.translation.calls import Call, Calls, let_in
from server.translation.memory import MemoryBudget, answer_need

_COPIES = 4  # of a message: parsed, as bytes here and in gRPC, and the body that it came in

_T = TypeVar("_T")


class Remote:
    """See `server.fronts.backend.Backend`.

    Args:
        upstream: the server.
        calls: runs the calls of all fronts.
        memory: counts the memory of all requests.
        is_welcome: says whether this process takes requests.
    """

    def __init__(self, upstream: Upstream, calls: Calls, memory: MemoryBudget, is_welcome: Callable[[], bool]) -> None:
        self._upstream = upstream
        self._calls = calls
        self._memory = memory
        self._is_welcome = is_welcome

    async def translate(self, message: pb.TranslateRequest, caller: Caller) -> pb.TranslateResponse:
        """See `Backend`."""
        answer: pb.TranslateResponse = await self._ask("Translate", message, caller)
        return answer

    async def translate_stream(
        self,
        message: pb.TranslateStreamRequest,
        caller: Caller,
        send: Callable[[pb.TranslateStreamResponse], Awaitable[None]],
    ) -> None:
        """See `Backend`."""

        async def answer(**options: Any) -> None:
            call = self._upstream.translation.TranslateStream(message, **options)
            try:
                async for response in call:
                    await send(response)
            finally:
                call.cancel()

        await self._run("TranslateStream", message, caller, answer)

    async def translate_bulk(
        self,
        options: pb.TranslateRequest,
        texts: Sequence[str],
        caller: Caller,
        take: Callable[[int, pb.Translation], None],
    ) -> None:
        """See `Backend`."""

        async def parts() -> AsyncIterator[pb.TranslateBulkRequest]:
            yield pb.TranslateBulkRequest(options=options)
            for index, text in enumerate(texts):
                yield pb.TranslateBulkRequest(text=pb.BulkText(id=index, content=text))

        async def answer(**of_call: Any) -> None:
            call = self._upstream.translation.TranslateBulk(parts(), **of_call)
            try:
                async for response in call:
                    take(response.id, response.translation)
            finally:
                call.cancel()

        await self._run("TranslateBulk", options, caller, answer, is_endless=True)

    async def identify(self, caller: Caller) -> str:
        """See `Backend`. Keys are told apart, not the tenants that have them, which the server alone knows.

        While no server answers, each key has what it had before.
        """
        with contextlib.suppress(NotServing):
            await self.list_models(caller)  # raises if the server does not let the caller in
        return f"key {hash_key(caller.key).hex()}" if caller.key is not None else caller.address

    async def score(self, message: pb.ScoreRequest, caller: Caller) -> pb.ScoreResponse:
        """See `Backend`."""
        answer: pb.ScoreResponse = await self._ask("Score", message, caller)
        return answer

    async def list_models(self, caller: Caller) -> pb.ListModelsResponse:
        """See `Backend`."""
        answer: pb.ListModelsResponse = await self._ask("ListModels", pb.ListModelsRequest(), caller)
        return answer

    async def list_glossaries(self, caller: Caller) -> pb.ListGlossariesResponse:
        """See `Backend`."""
        answer: pb.ListGlossariesResponse = await self._ask("ListGlossaries", pb.ListGlossariesRequest(), caller)
        return answer

    async def detect_languages(self, message: pb.DetectLanguagesRequest, caller: Caller) -> pb.DetectLanguagesResponse:
        """See `Backend`."""
        answer: pb.DetectLanguagesResponse = await self._ask("DetectLanguages", message, caller)
        return answer

    async def put_glossary(self, message: store_pb.PutKeptGlossaryRequest, caller: Caller) -> store_pb.KeptGlossary:
        """See `Backend`."""
        answer: store_pb.KeptGlossary = await self._ask("PutKeptGlossary", message, caller)
        return answer

    async def get_glossary(self, message: store_pb.GetKeptGlossaryRequest, caller: Caller) -> store_pb.KeptGlossary:
        """See `Backend`."""
        answer: store_pb.KeptGlossary = await self._ask("GetKeptGlossary", message, caller)
        return answer

    async def read_glossary(
        self, message: store_pb.GetKeptGlossaryRequest, caller: Caller, read: Callable[[store_pb.KeptGlossary], _T]
    ) -> _T:
        """See `Backend`."""
        return await asyncio.to_thread(read, await self.get_glossary(message, caller))

    async def list_kept_glossaries(self, caller: Caller) -> store_pb.ListKeptGlossariesResponse:
        """See `Backend`."""
        message = store_pb.ListKeptGlossariesRequest()
        answer: store_pb.ListKeptGlossariesResponse = await self._ask("ListKeptGlossaries", message, caller)
        return answer

    async def delete_glossary(self, message: store_pb.DeleteKeptGlossaryRequest, caller: Caller) -> None:
        """See `Backend`."""
        await self._ask("DeleteKeptGlossary", message, caller)

    def keep(self, num_bytes: int) -> Callable[[], None]:
        """See `Backend`."""
        return self._memory.keep(answer_need(num_bytes))

    async def record(self, error: TranslationError, caller: Caller) -> None:
        """See `Backend`."""

        async def fail(**_: Any) -> None:
            raise error

        with contextlib.suppress(TranslationError):
            await self._run("other", pb.ListModelsRequest(), caller, fail)

    @property
    def is_serving(self) -> bool:
        """See `Backend`."""
        return self._is_welcome() and self._upstream.is_serving

    @property
    def asks_for_key(self) -> bool:
        """See `Backend`."""
        return self._upstream.asks_for_key

    async def _ask(self, method: str, message: Message, caller: Caller) -> Any:
        """Returns the answer to a message. Raises TranslationError."""

        async def answer(**options: Any) -> Any:
            translation = self._upstream.translation
            stub = translation if hasattr(translation, method) else self._upstream.store
            return await getattr(stub, method)(message, **options)

        return await self._run(method, message, caller, answer)

    async def _run(
        self,
        method: str,
        message: Message,
        caller: Caller,
        answer: Callable[..., Awaitable[_T]],
        *,
        is_endless: bool = False,
    ) -> _T:
        """Runs a call. `answer` takes the options of a call of gRPC. Raises TranslationError."""
        end = None if caller.seconds is None else time.monotonic() + caller.seconds

        def has_expired(spare: float) -> bool:
            return end is not None and end - time.monotonic() <= spare

        async def enter() -> _T:
            let_in(ANONYMOUS, caller.address)
            num_bytes = message.ByteSize()
            if num_bytes > MAX_MESSAGE_BYTES:
                raise BodyTooLong("body", f"must mean a message of at most {MAX_MESSAGE_BYTES} bytes, not {num_bytes}")
            with self._memory.hold(num_bytes * _COPIES):
                try:
                    return await answer(metadata=_metadata(caller), timeout=caller.seconds)
                except grpc.aio.AioRpcError as error:
                    if error.code() is grpc.StatusCode.CANCELLED and _is_cancelled():
                        raise asyncio.CancelledError from None
                    raise failure_of(error) from None

        parent = TraceParent.read(caller.traceparent)
        call = Call(method, caller.request_id, has_expired, parent, is_endless=is_endless, front=caller.front)
        return await self._calls.run(call, enter)


def _metadata(caller: Caller) -> tuple[tuple[str, str], ...]:
    """Returns what goes with a call. Raises Unauthenticated if the key is one that no server has."""
    metadata = [("x-request-id", caller.request_id)]
    if caller.key is not None:
        if not caller.key.isascii() or not caller.key.isprintable():
            raise Unauthenticated("the API key is unknown")
        metadata.append(("authorization", f"Bearer {caller.key}"))
    if caller.traceparent is not None and TraceParent.read(caller.traceparent) is not None:
        metadata.append(("traceparent", caller.traceparent))
    return tuple(metadata)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
