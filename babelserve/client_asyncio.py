"""The client for asyncio. It takes the same arguments as `babelserve.client.Client`, and gives the same results."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

import grpc
import grpc.aio
from google.protobuf.message import Message

from babelserve.answers import BoundedChannel
from babelserve.bulk import AsyncBulkTexts, translate_bulk_async
from babelserve.calls import Connection
from babelserve.channel import TlsOptions, channel_options
from babelserve.client import DEFAULT_DEADLINE_SECONDS
from babelserve.messages import (
    TranslateOptions,
    stream_request,
    streamed_sentence,
    translate_request,
    translate_result,
)
from babelserve.model_infos import model_infos
from babelserve.proxies import proxy_options
from babelserve.results import BulkTranslation, ModelInfo, ScoreResult, StreamedSentence, TranslateResult
from babelserve.scores import Pairs, ScoreOptions, score_request, score_result
from babelserve.terms import GlossaryInfo, glossary_infos
from babelserve.v1 import translation_pb2
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub


class AsyncClient:
    """The same for asyncio; make it inside the running loop. Cancelling a task that awaits it cancels the call.

    Arguments and errors are those of `Client`.
    """

    def __init__(
        self,
        address: str,
        *,
        tls: TlsOptions | None = None,
        api_key: str | None = None,
        deadline_seconds: float = DEFAULT_DEADLINE_SECONDS,
        max_attempts: int = 4,
        watch_health: bool = True,
    ) -> None:
        self._connection = Connection(address, tls, api_key, deadline_seconds, max_attempts)
        options = channel_options(max_attempts, tls, watch_health=watch_health) + proxy_options(address)
        if tls is None:
            self._channel = grpc.aio.insecure_channel(address, options=options)
        else:
            self._channel = grpc.aio.secure_channel(address, tls.credentials(), options=options)
        self._stub = TranslationServiceStub(BoundedChannel(self._channel))

    async def translate(
        self,
        contents: Sequence[str],
        *,
        target: str,
        deadline_seconds: float | None = None,
        **options: Unpack[TranslateOptions],
    ) -> TranslateResult:
        """As `Client.translate`."""
        request = translate_request(contents, target, **options)
        response = await self._call(self._stub.Translate, request, deadline_seconds)
        return translate_result(response, len(request.contents))

    async def score(
        self, pairs: Pairs, *, target: str, deadline_seconds: float | None = None, **options: Unpack[ScoreOptions]
    ) -> ScoreResult:
        """As `Client.score`."""
        request = score_request(pairs, target, **options)
        response = await self._call(self._stub.Score, request, deadline_seconds)
        return score_result(response, len(request.pairs))

    def translate_stream(
        self,
        contents: Sequence[str],
        *,
        target: str,
        deadline_seconds: float | None = None,
        partial_text: bool = False,
        **options: Unpack[TranslateOptions],
    ) -> AsyncIterator[StreamedSentence]:
        """As `Client.translate_stream`; wrap it in `contextlib.aclosing` to leave the loop early."""
        request = stream_request(contents, target, partial_text, **options)
        return self._stream(request, deadline_seconds)

    async def _stream(
        self, request: translation_pb2.TranslateStreamRequest, deadline_seconds: float | None
    ) -> AsyncIterator[StreamedSentence]:
        call = self._stub.TranslateStream(request, **self._connection.terms(deadline_seconds))
        try:
            async for response in call:
                yield streamed_sentence(self._connection.taken(response), len(request.request.contents))
        except grpc.aio.AioRpcError as error:
            raise await asyncio.to_thread(self._connection.failure, error) from error
        finally:
            call.cancel()

    def translate_bulk(
        self,
        contents: Iterable[str] | AsyncIterable[str],
        *,
        target: str,
        deadline_seconds: float | None = None,
        **options: Unpack[TranslateOptions],
    ) -> AsyncIterator[BulkTranslation]:
        """As `Client.translate_bulk`; wrap it in `contextlib.aclosing` to leave the loop early."""
        texts = AsyncBulkTexts(translate_request([], target, **options), contents)
        return translate_bulk_async(self._stub, self._connection, texts, deadline_seconds)

    async def list_models(self, *, deadline_seconds: float | None = None) -> tuple[ModelInfo, ...]:
        """As `Client.list_models`."""
        return model_infos(await self._list(deadline_seconds))

    async def list_pivots(self, *, deadline_seconds: float | None = None) -> tuple[str, ...]:
        """As `Client.list_pivots`."""
        return tuple((await self._list(deadline_seconds)).pivot_language_codes)

    async def list_glossaries(self, *, deadline_seconds: float | None = None) -> tuple[GlossaryInfo, ...]:
        """As `Client.list_glossaries`."""
        request = translation_pb2.ListGlossariesRequest()
        return glossary_infos(await self._call(self._stub.ListGlossaries, request, deadline_seconds))

    async def _list(self, deadline_seconds: float | None) -> Any:
        return await self._call(self._stub.ListModels, translation_pb2.ListModelsRequest(), deadline_seconds)

    async def _call(self, method: Callable[..., Any], request: Message, deadline_seconds: float | None) -> Any:
        try:
            response = await method(request, **self._connection.terms(deadline_seconds))
        except grpc.aio.AioRpcError as error:
            raise await asyncio.to_thread(self._connection.failure, error) from error
        return self._connection.taken(response)

    async def close(self) -> None:
        """Closes the connection; calls in flight are cancelled."""
        await self._channel.close(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
