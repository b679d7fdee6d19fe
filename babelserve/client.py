"""The Python client of a babelserve server, for threads; `babelserve.client_asyncio` has that for asyncio.

    with Client("localhost:50051") as client:
        result = client.translate(["A man rides a bike."], source="en", target="de")
        print(result.translations[0].text)

Both take the same arguments, give the same results (results.py) and raise the same errors (errors.py).
Retries, balancing, TLS and API keys are in channel.py.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

import grpc
from google.protobuf.message import Message

from babelserve.answers import BoundedChannel
from babelserve.bulk import BulkTexts, translate_bulk
from babelserve.calls import Connection
from babelserve.channel import TlsOptions, channel_options
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

# The server's own cap on a request's time, by default.
DEFAULT_DEADLINE_SECONDS = 120.0


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
        self._connection = Connection(address, tls, api_key, deadline_seconds, max_attempts)
        options = channel_options(max_attempts, tls, watch_health=watch_health) + proxy_options(address)
        if tls is None:
            self._channel = grpc.insecure_channel(address, options=options)
        else:
            self._channel = grpc.secure_channel(address, tls.credentials(), options=options)
        self._stub = TranslationServiceStub(BoundedChannel(self._channel))

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
        response = self._call(self._stub.Translate, request, deadline_seconds)
        return translate_result(response, len(request.contents))

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
        response = self._call(self._stub.Score, request, deadline_seconds)
        return score_result(response, len(request.pairs))

    def translate_stream(
        self,
        contents: Sequence[str],
        *,
        target: str,
        deadline_seconds: float | None = None,
        partial_text: bool = False,
        **options: Unpack[TranslateOptions],
    ) -> Iterator[StreamedSentence]:
        """Translates texts and yields each sentence as it finishes; leaving the loop early cancels the rest.

        Arguments and errors are those of `translate`; errors are raised by the iterator.

        Args:
            contents: Likewise.
            target: Likewise.
            deadline_seconds: Likewise.
            partial_text: Yield what unfinished sentences have so far, too, as `StreamedSentence.partial_text`. Needs
                `beam_size` 1 and plain texts.
            options: Likewise.
        """
        request = stream_request(contents, target, partial_text, **options)
        return self._stream(request, deadline_seconds)

    def _stream(
        self, request: translation_pb2.TranslateStreamRequest, deadline_seconds: float | None
    ) -> Iterator[StreamedSentence]:
        call = self._stub.TranslateStream(request, **self._connection.terms(deadline_seconds))
        try:
            for response in call:
                yield streamed_sentence(self._connection.taken(response), len(request.request.contents))
        except grpc.RpcError as error:
            raise self._connection.failure(error) from error
        finally:
            call.cancel()

    def translate_bulk(
        self,
        contents: Iterable[str],
        *,
        target: str,
        deadline_seconds: float | None = None,
        **options: Unpack[TranslateOptions],
    ) -> Iterator[BulkTranslation]:
        """Translates any number of texts, and yields each translation when it is done, in any order.

        A thread takes texts off `contents` as fast as the server needs them. If a server goes away that has begun to
        answer, the texts without an answer are sent again, for up to 45 seconds. Leaving the loop early cancels the
        rest.

        Args:
            contents: Texts, such as a generator's.
            target: Code of the target language, such as "de".
            deadline_seconds: For all texts together; None: as long as it takes.
            options: See `TranslateOptions`. The default priority is "low".

        Raises:
            TranslationError: By the iterator, as `translate`; a text that fails alone carries its own `error` instead.
                So is what `contents` raises, when all texts before are answered.
        """
        texts = BulkTexts(translate_request([], target, **options), contents)
        return translate_bulk(self._stub, self._connection, texts, deadline_seconds)

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

    def list_glossaries(self, *, deadline_seconds: float | None = None) -> tuple[GlossaryInfo, ...]:
        """Lists the glossaries that the server has loaded, by name.

        Raises:
            TranslationError: One of its subclasses; ServerFailed from a server of version 0.2.0 or older.
        """
        request = translation_pb2.ListGlossariesRequest()
        return glossary_infos(self._call(self._stub.ListGlossaries, request, deadline_seconds))

    def _list(self, deadline_seconds: float | None) -> Any:
        return self._call(self._stub.ListModels, translation_pb2.ListModelsRequest(), deadline_seconds)

    def _call(self, method: Callable[..., Any], request: Message, deadline_seconds: float | None) -> Any:
        try:
            response = method(request, **self._connection.terms(deadline_seconds))
        except grpc.RpcError as error:
            raise self._connection.failure(error) from error
        return self._connection.taken(response)

    def close(self) -> None:
        """Closes the connection; calls in flight end with CANCELLED."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
