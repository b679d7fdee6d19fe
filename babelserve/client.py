"""The Python clients of a babelserve server, for threads (`Client`) and for asyncio (`AsyncClient`).

    with Client("localhost:50051") as client:
        result = client.translate(["A man rides a bike."], source="en", target="de")
        print(result.translations[0].text)

Both take the same arguments, give the same results (results.py) and raise the same errors (errors.py).
Retries, balancing, TLS and API keys are in channel.py.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

import grpc
import grpc.aio
from google.protobuf.message import Message

from babelserve.channel import TlsOptions, call_metadata, channel_options
from babelserve.diagnosis import explain
from babelserve.errors import TlsFailed, TranslationError, Unavailable, from_rpc_error
from babelserve.messages import TranslateOptions, model_infos, streamed_sentence, translate_request, translate_result
from babelserve.results import ModelInfo, ScoreResult, StreamedSentence, TranslateResult
from babelserve.scores import Pairs, ScoreOptions, score_request, score_result
from babelserve.v1 import translation_pb2
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub

# The server's own cap on a request's time, by default.
DEFAULT_DEADLINE_SECONDS = 120.0


class _Connection:
    """What both clients know of the way to a server: until it has answered once, a failure may be one of TLS."""

    def __init__(self, address: str, tls: TlsOptions | None, api_key: str | None, deadline_seconds: float) -> None:
        self.is_proven = False
        self._address = address
        self._tls = tls
        self._metadata = call_metadata(api_key)
        self._deadline_seconds = deadline_seconds

    def terms(self, deadline_seconds: float | None) -> dict[str, Any]:
        """What goes with a call: how long it may take, by default as long as the client says, and the key."""
        seconds = self._deadline_seconds if deadline_seconds is None else deadline_seconds
        return {"timeout": seconds, "metadata": self._metadata}

    def failure(self, error: Any) -> TranslationError:
        """Makes our error of gRPC's; may take some seconds to find out more."""
        failure = from_rpc_error(error)
        self.is_proven = self.is_proven or failure.request_id is not None
        if self.is_proven or not isinstance(failure, Unavailable):
            return failure
        reason = explain(self._address, self._tls)
        return TlsFailed(reason) if reason else failure


class Client:
    """A connection to a server, to be shared by any number of threads.

    Args:
        address: HOST:PORT, or any gRPC target; a name with several addresses is balanced over all of them.
        tls: None for plain text.
        api_key: Where the server asks for one; in plain text anybody on the way can read it.
        deadline_seconds: For calls that set none of their own, all attempts together.
        max_attempts: 1 (no retries) to 5.
        watch_health: False where what stands in front of the server passes on nothing but translations: unless it
            answers UNIMPLEMENTED to `grpc.health.v1`, every call would fail with Unavailable. Without health, a server
            that drains or loads gets calls, and answers them Unavailable, which is retried.

    Raises:
        ValueError: An argument is out of its range.
        OSError: A TLS file cannot be read.
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
        self._connection = _Connection(address, tls, api_key, deadline_seconds)
        options = channel_options(max_attempts, tls, watch_health=watch_health)
        if tls is None:
            self._channel = grpc.insecure_channel(address, options=options)
        else:
            self._channel = grpc.secure_channel(address, tls.credentials(), options=options)
        self._stub = TranslationServiceStub(self._channel)

    def translate(
        self,
        contents: Sequence[str],
        *,
        target: str,
        deadline_seconds: float | None = None,
        **options: Unpack[TranslateOptions],
    ) -> TranslateResult:
        """Translates texts and waits for all of them.

        Args:
            contents: 1 to 1024 texts, each at most 2 MiB of UTF-8, of any number of sentences.
            target: Code of the target language, such as "de".
            deadline_seconds: None: the client's.
            options: See `TranslateOptions`.

        Raises:
            TranslationError: One of its subclasses; a text that fails alone carries its own `error` instead.
        """
        request = translate_request(contents, target, **options)
        return translate_result(self._call(self._stub.Translate, request, deadline_seconds))

    def score(
        self, pairs: Pairs, *, target: str, deadline_seconds: float | None = None, **options: Unpack[ScoreOptions]
    ) -> ScoreResult:
        """Says how likely the model finds given translations.

        Args:
            pairs: 1 to 1024 sentences, each with a translation, as they stand: neither is split into sentences.
            target: Code of the translations' language, such as "de".
            deadline_seconds: None: the client's.
            options: See `ScoreOptions`.

        Raises:
            TranslationError: One of its subclasses; a pair that fails alone carries its own `error` instead.
        """
        request = score_request(pairs, target, **options)
        return score_result(self._call(self._stub.Score, request, deadline_seconds))

    def translate_stream(
        self,
        contents: Sequence[str],
        *,
        target: str,
        deadline_seconds: float | None = None,
        **options: Unpack[TranslateOptions],
    ) -> Iterator[StreamedSentence]:
        """Translates texts and yields each sentence as it finishes; leaving the loop early cancels the rest.

        Arguments and errors are those of `translate`; errors are raised by the iterator.
        """
        request = translation_pb2.TranslateStreamRequest(request=translate_request(contents, target, **options))
        return self._stream(request, deadline_seconds)

    def _stream(
        self, request: translation_pb2.TranslateStreamRequest, deadline_seconds: float | None
    ) -> Iterator[StreamedSentence]:
        call = self._stub.TranslateStream(request, **self._connection.terms(deadline_seconds))
        try:
            for response in call:
                self._connection.is_proven = True
                yield streamed_sentence(response)
        except grpc.RpcError as error:
            raise self._connection.failure(error) from error
        finally:
            call.cancel()

    def list_models(self, *, deadline_seconds: float | None = None) -> tuple[ModelInfo, ...]:
        """Lists the server's models.

        Raises:
            TranslationError: One of its subclasses.
        """
        return model_infos(self._list(deadline_seconds))

    def list_pivots(self, *, deadline_seconds: float | None = None) -> tuple[str, ...]:
        """Lists the languages that texts may pass through where no model translates directly, the first first.

        Raises:
            TranslationError: One of its subclasses.
        """
        return tuple(self._list(deadline_seconds).pivot_language_codes)

    def _list(self, deadline_seconds: float | None) -> Any:
        return self._call(self._stub.ListModels, translation_pb2.ListModelsRequest(), deadline_seconds)

    def _call(self, method: Callable[..., Any], request: Message, deadline_seconds: float | None) -> Any:
        try:
            response = method(request, **self._connection.terms(deadline_seconds))
        except grpc.RpcError as error:
            raise self._connection.failure(error) from error
        self._connection.is_proven = True
        return response

    def close(self) -> None:
        """Closes the connection; calls in flight end with CANCELLED."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


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
        self._connection = _Connection(address, tls, api_key, deadline_seconds)
        options = channel_options(max_attempts, tls, watch_health=watch_health)
        if tls is None:
            self._channel = grpc.aio.insecure_channel(address, options=options)
        else:
            self._channel = grpc.aio.secure_channel(address, tls.credentials(), options=options)
        self._stub = TranslationServiceStub(self._channel)

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
        return translate_result(await self._call(self._stub.Translate, request, deadline_seconds))

    async def score(
        self, pairs: Pairs, *, target: str, deadline_seconds: float | None = None, **options: Unpack[ScoreOptions]
    ) -> ScoreResult:
        """As `Client.score`."""
        request = score_request(pairs, target, **options)
        return score_result(await self._call(self._stub.Score, request, deadline_seconds))

    def translate_stream(
        self,
        contents: Sequence[str],
        *,
        target: str,
        deadline_seconds: float | None = None,
        **options: Unpack[TranslateOptions],
    ) -> AsyncIterator[StreamedSentence]:
        """As `Client.translate_stream`; wrap it in `contextlib.aclosing` to leave the loop early."""
        request = translation_pb2.TranslateStreamRequest(request=translate_request(contents, target, **options))
        return self._stream(request, deadline_seconds)

    async def _stream(
        self, request: translation_pb2.TranslateStreamRequest, deadline_seconds: float | None
    ) -> AsyncIterator[StreamedSentence]:
        call = self._stub.TranslateStream(request, **self._connection.terms(deadline_seconds))
        try:
            async for response in call:
                self._connection.is_proven = True
                yield streamed_sentence(response)
        except grpc.aio.AioRpcError as error:
            raise await asyncio.to_thread(self._connection.failure, error) from error
        finally:
            call.cancel()

    async def list_models(self, *, deadline_seconds: float | None = None) -> tuple[ModelInfo, ...]:
        """As `Client.list_models`."""
        return model_infos(await self._list(deadline_seconds))

    async def list_pivots(self, *, deadline_seconds: float | None = None) -> tuple[str, ...]:
        """As `Client.list_pivots`."""
        return tuple((await self._list(deadline_seconds)).pivot_language_codes)

    async def _list(self, deadline_seconds: float | None) -> Any:
        return await self._call(self._stub.ListModels, translation_pb2.ListModelsRequest(), deadline_seconds)

    async def _call(self, method: Callable[..., Any], request: Message, deadline_seconds: float | None) -> Any:
        try:
            response = await method(request, **self._connection.terms(deadline_seconds))
        except grpc.aio.AioRpcError as error:
            raise await asyncio.to_thread(self._connection.failure, error) from error
        self._connection.is_proven = True
        return response

    async def close(self) -> None:
        """Closes the connection; calls in flight are cancelled."""
        await self._channel.close(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
