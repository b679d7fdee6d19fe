"""The backend in the server's own process: each call runs as one of gRPC does, with the same limits and records."""

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from google.protobuf.message import Message

from babelserve.v1 import glossary_store_pb2 as store_pb
from babelserve.v1 import translation_pb2 as pb
from server.access.access import Access
from server.api.handlers import Api
from server.errors import Overloaded, TranslationError
from server.fronts.backend import Caller
from server.telemetry.tracing import TraceParent
from server.translation.bulk import BulkText
from server.translation.calls import Call, Calls, let_in
from server.translation.memory import MemoryBudget, answer_need, holder, message_need

_M = TypeVar("_M", bound=Message)
_T = TypeVar("_T")


class InProcess:
    """See `server.fronts.backend.Backend`.

    Args:
        api: answers messages.
        calls: runs the calls of all fronts.
        access: knows who may call.
        memory: counts the memory of all requests.
        is_serving: says whether requests are welcome.
    """

    def __init__(
        self, api: Api, calls: Calls, access: Access, memory: MemoryBudget, is_serving: Callable[[], bool]
    ) -> None:
        self._api = api
        self._calls = calls
        self._access = access
        self._memory = memory
        self._is_serving = is_serving

    async def translate(self, message: pb.TranslateRequest, caller: Caller) -> pb.TranslateResponse:
        """See `Backend`."""
        return await self._ask("Translate", caller, message, self._api.translate)

    async def translate_stream(
        self,
        message: pb.TranslateStreamRequest,
        caller: Caller,
        send: Callable[[pb.TranslateStreamResponse], Awaitable[None]],
    ) -> None:
        """See `Backend`."""

        async def answer(message: pb.TranslateStreamRequest, seconds: float | None) -> None:
            async for response in self._api.translate_stream(message, seconds):
                await send(response)

        await self._ask("TranslateStream", caller, message, answer)

    async def translate_bulk(
        self,
        options: pb.TranslateRequest,
        texts: Sequence[str],
        caller: Caller,
        take: Callable[[int, pb.Translation], None],
    ) -> None:
        """See `Backend`."""

        async def read() -> AsyncIterator[BulkText]:
            for index, text in enumerate(texts):
                yield BulkText(index, text, len(text.encode()))

        async def answer(options: pb.TranslateRequest, seconds: float | None) -> None:
            answers = self._api.translate_bulk(options, read(), self._calls.running, seconds)
            async with contextlib.aclosing(answers):
                async for each in answers:
                    take(each.id, each.translation)

        await self._ask("TranslateBulk", caller, options, answer, is_endless=True)

    async def score(self, message: pb.ScoreRequest, caller: Caller) -> pb.ScoreResponse:
        """See `Backend`."""
        return await self._ask("Score", caller, message, self._api.score)

    async def detect_languages(self, message: pb.DetectLanguagesRequest, caller: Caller) -> pb.DetectLanguagesResponse:
        """See `Backend`."""
        return await self._ask("DetectLanguages", caller, message, self._api.detect_languages)

    async def list_models(self, caller: Caller) -> pb.ListModelsResponse:
        """See `Backend`."""
        return await self._run("ListModels", caller, lambda _: self._api.list_models(pb.ListModelsRequest()))

    async def list_glossaries(self, caller: Caller) -> pb.ListGlossariesResponse:
        """See `Backend`."""
        request = pb.ListGlossariesRequest()
        return await self._run("ListGlossaries", caller, lambda _: self._api.list_glossaries(request))

    async def identify(self, caller: Caller) -> str:
        """See `Backend`."""

        async def name(_: float | None) -> str:
            return holder.get().name

        return await self._run("other", caller, name)

    async def put_glossary(self, message: store_pb.PutKeptGlossaryRequest, caller: Caller) -> store_pb.KeptGlossary:
        """See `Backend`."""
        return await self._ask("PutKeptGlossary", caller, message, self._api.glossary_store.put)

    async def get_glossary(self, message: store_pb.GetKeptGlossaryRequest, caller: Caller) -> store_pb.KeptGlossary:
        """See `Backend`."""
        return await self._ask("GetKeptGlossary", caller, message, self._api.glossary_store.get)

    async def read_glossary(
        self, message: store_pb.GetKeptGlossaryRequest, caller: Caller, read: Callable[[store_pb.KeptGlossary], _T]
    ) -> _T:
        """See `Backend`."""
        store = self._api.glossary_store
        return await self._ask("GetKeptGlossary", caller, message, lambda message, _: store.read(message, read))

    async def list_kept_glossaries(self, caller: Caller) -> store_pb.ListKeptGlossariesResponse:
        """See `Backend`."""
        request = store_pb.ListKeptGlossariesRequest()
        return await self._run("ListKeptGlossaries", caller, lambda _: self._api.glossary_store.list(request))

    async def delete_glossary(self, message: store_pb.DeleteKeptGlossaryRequest, caller: Caller) -> None:
        """See `Backend`."""
        await self._run("DeleteKeptGlossary", caller, lambda _: self._api.glossary_store.delete(message))

    def keep(self, num_bytes: int) -> Callable[[], None]:
        """See `Backend`."""
        return self._memory.keep(answer_need(num_bytes))

    async def record(self, error: TranslationError, caller: Caller) -> None:
        """See `Backend`."""

        async def fail(_: float | None) -> None:
            raise error

        with contextlib.suppress(TranslationError):
            await self._run("other", caller, fail)

    @property
    def is_serving(self) -> bool:
        """See `Backend`."""
        return self._is_serving()

    @property
    def asks_for_key(self) -> bool:
        """See `Backend`."""
        return not self._access.is_open

    async def _ask(
        self,
        method: str,
        caller: Caller,
        message: _M,
        answer: Callable[[_M, float | None], Awaitable[_T]],
        *,
        is_endless: bool = False,
    ) -> _T:
        """Runs a call with a message, whose memory it holds until the call ends."""

        async def ask(seconds: float | None) -> _T:
            self._api.check_open(seconds)
            with self._memory.hold(message_need(message.ByteSize())):
                return await answer(message, seconds)

        return await self._run(method, caller, ask, is_endless=is_endless)

    async def _run(
        self,
        method: str,
        caller: Caller,
        answer: Callable[[float | None], Awaitable[_T]],
        *,
        is_endless: bool = False,
    ) -> _T:
        """Runs a call. `answer` takes the seconds that the caller still waits."""
        end = None if caller.seconds is None else time.monotonic() + caller.seconds

        def has_expired(spare: float) -> bool:
            return end is not None and end - time.monotonic() <= spare

        async def enter() -> _T:
            let_in(self._access.identify(caller.key, caller.names), caller.address)
            return await answer(None if end is None else end - time.monotonic())

        parent = TraceParent.read(caller.traceparent)
        call = Call(method, caller.request_id, has_expired, parent, is_endless=is_endless, front=caller.front)
        try:
            return await self._calls.run(call, enter)
        except Overloaded as error:
            error.retry_after_seconds = self._calls.pushback.seconds(error.retry_after_seconds)
            raise
