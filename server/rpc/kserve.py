"""KServe's protocol v2 with Triton's extensions over gRPC: what `server.fronts.kserve` reads and writes."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import grpc

from babelserve.v1 import translation_pb2 as pb
from server.api.handlers import Api
from server.api.messages import parse
from server.errors import DeadlineExceeded, Overloaded, TranslationError
from server.fronts import kserve as front
from server.fronts import kserve_models as models
from server.fronts.fields import fields_named
from server.fronts.v1 import kserve_pb2 as kserve
from server.rpc.front_service import FrontService
from server.rpc.intake import MAX_MESSAGE_BYTES, Intake
from server.rpc.parsed import parsed
from server.telemetry.log import request_id
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator

_READ_SECONDS = 5.0  # beyond the time of a request of a stream, within which its answers must be read
_STREAM_BYTES = 2 * MAX_MESSAGE_BYTES  # of a stream that waits: the longest message, as it came and parsed


class KserveHandlers:
    """Answers the messages of KServe's service. `seconds` is what the caller still waits; None for ever.

    Args:
        api: translates.
        translator: has the memory of all requests, the metrics of refusals, and the time that a request may take.
        intake: reads messages.
        running: says when the server shuts down.
        is_ready: says whether requests for a model are welcome; with an empty name, whether any are.
    """

    def __init__(
        self,
        api: Api,
        translator: Translator,
        intake: Intake,
        running: RunningCalls,
        is_ready: Callable[[str], bool],
    ) -> None:
        self._api = api
        self._translator = translator
        self._intake = intake
        self._running = running
        self._is_ready = is_ready

    async def server_live(self, _: kserve.ServerLiveRequest, __: float | None) -> kserve.ServerLiveResponse:
        """Says that the server answers."""
        return kserve.ServerLiveResponse(live=True)

    async def server_ready(self, _: kserve.ServerReadyRequest, __: float | None) -> kserve.ServerReadyResponse:
        """Says whether requests are welcome."""
        return kserve.ServerReadyResponse(ready=self._is_ready(""))

    async def model_ready(self, asked: kserve.ModelReadyRequest, _: float | None) -> kserve.ModelReadyResponse:
        """Says whether requests for a model are welcome. They are not if there is no such model."""
        ready = bool(asked.name) and self._is_ready(asked.name)
        if ready and asked.version:
            served = await self._served()
            ready = any((each.name, each.version) == (asked.name, asked.version) for each in served.models)
        return kserve.ModelReadyResponse(ready=ready)

    async def server_metadata(self, _: kserve.ServerMetadataRequest, __: float | None) -> kserve.ServerMetadataResponse:
        """Says what this server is."""
        return models.write_server_metadata()

    async def model_metadata(self, asked: kserve.ModelMetadataRequest, _: float | None) -> kserve.ModelMetadataResponse:
        """Describes the tensors of a model. Raises TranslationError."""
        return models.write_metadata(models.find_model(await self._served(), asked.name, asked.version))

    async def model_config(self, asked: kserve.ModelConfigRequest, _: float | None) -> kserve.ModelConfigResponse:
        """Describes a model as Triton does. Raises TranslationError."""
        return models.write_config(models.find_model(await self._served(), asked.name, asked.version))

    async def repository_index(
        self, asked: kserve.RepositoryIndexRequest, _: float | None
    ) -> kserve.RepositoryIndexResponse:
        """Lists the models. Raises TranslationError."""
        return models.write_index(asked, await self._served(), self._is_ready)

    async def model_infer(self, asked: kserve.ModelInferRequest, seconds: float | None) -> kserve.ModelInferResponse:
        """Translates all texts. Raises TranslationError if one of them fails."""
        message = front.read_infer(asked, await self._served())
        patience = front.read_timeout(asked, seconds)
        with fields_named(front.FIELDS):
            return front.write_infer(asked, await self._api.translate(message, patience))

    async def model_stream_infer(self, _: Any, context: Any) -> AsyncIterator[bytes]:
        """Yields the sentences of each request of a stream, one request after the other.

        Raises:
            TranslationError: a message is none, there is no memory for the stream, or the caller does not read. An
                error of a request is answered within the stream, as Triton does.
            CancelledError: the server shuts down while the stream waits.
        """
        with self._translator.memory.hold(_STREAM_BYTES):
            while (data := await self._next(context)) is not None:
                async with contextlib.aclosing(self._answer_in_time(data, context.time_remaining())) as responses:
                    async for response in responses:
                        yield response

    async def _next(self, context: Any) -> bytes | None:
        """Returns the next message of a stream; None at its end."""
        reading = asyncio.ensure_future(self._intake.read_next(context))
        try:
            with self._running.warned(lambda: _cancel(reading)):
                return await reading
        finally:
            reading.cancel()

    async def _answer_in_time(self, data: bytes, seconds: float | None) -> AsyncGenerator[bytes]:
        """Yields the responses to one request of a stream, which keeps its models in memory.

        Raises:
            DeadlineExceeded: the caller has not read them in time.
        """
        limit = asyncio.timeout(self._translator.max_request_seconds + _READ_SECONDS)
        try:
            async with limit, contextlib.aclosing(self._answer(data, seconds)) as responses:
                async for response in responses:
                    yield response.SerializeToString()
        except (TimeoutError, GeneratorExit) as error:  # the latter, if it passes while a response is written
            if limit.expired():
                raise DeadlineExceeded("the answers were not read in time") from error
            raise

    async def _answer(self, data: bytes, seconds: float | None) -> AsyncGenerator[kserve.ModelStreamInferResponse]:
        """Yields the responses to one request of a stream."""
        asked = parse(kserve.ModelInferRequest, data)
        try:
            with self._intake.hold(data):
                self._api.check_open(seconds)
                request = front.read_infer(asked, await self._served())
                patience = front.read_timeout(asked, seconds)
                async with contextlib.aclosing(self._pieces(asked, request, patience)) as responses:
                    async for response in responses:
                        yield response
        except Overloaded as error:
            self._translator.metrics.count_refusal(error.reason)  # the call itself goes on
            yield front.write_stream_error(asked, f"{error}; try again in {error.retry_after_seconds:.1f} seconds")
        except TranslationError as error:
            told = f"{error}; request id {request_id.get()}" if error.code.is_ours else str(error)
            yield front.write_stream_error(asked, told)

    async def _pieces(
        self, asked: kserve.ModelInferRequest, request: pb.TranslateRequest, seconds: float | None
    ) -> AsyncGenerator[kserve.ModelStreamInferResponse]:
        """Yields the sentences of a request. Raises TranslationError if a text fails."""
        pieces = front.Pieces(len(request.contents))
        parts = self._api.translate_stream(pb.TranslateStreamRequest(request=request), seconds)
        with fields_named(front.FIELDS):
            async with contextlib.aclosing(parts):  # type: ignore[type-var]
                async for part in parts:
                    for piece in pieces.add(part):
                        yield front.write_piece(asked, piece, is_final=pieces.is_finished)

    async def _served(self) -> pb.ListModelsResponse:
        return await self._api.list_models(pb.ListModelsRequest())

    def service(self) -> FrontService:
        """Returns the service that a gRPC server registers."""
        unary, stream = grpc.stream_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        api, intake = self._api, self._intake
        methods = {
            "ServerLive": unary(parsed(kserve.ServerLiveRequest, self.server_live, intake)),
            "ServerReady": unary(parsed(kserve.ServerReadyRequest, self.server_ready, intake)),
            "ModelReady": unary(parsed(kserve.ModelReadyRequest, self.model_ready, intake)),
            "ServerMetadata": unary(parsed(kserve.ServerMetadataRequest, self.server_metadata, intake)),
            "ModelMetadata": unary(parsed(kserve.ModelMetadataRequest, self.model_metadata, intake)),
            "ModelConfig": unary(parsed(kserve.ModelConfigRequest, self.model_config, intake)),
            "RepositoryIndex": unary(parsed(kserve.RepositoryIndexRequest, self.repository_index, intake)),
            "ModelInfer": unary(parsed(kserve.ModelInferRequest, self.model_infer, intake, api.check_open)),
            "ModelStreamInfer": stream(self.model_stream_infer),
        }
        return FrontService(front.SERVICE_NAME, methods)


def _cancel(task: "asyncio.Future[Any]") -> None:
    task.cancel()
