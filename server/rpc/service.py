"""`babelserve.v1.TranslationService`: messages in, the translator's job, messages out.

It has no rules, and lets errors pass: `server.rpc.interceptors` answers them.
"""

import functools
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import grpc

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import caller
from server.rpc.bulk import BulkHandler
from server.rpc.intake import Intake
from server.rpc.messages import (
    model_info,
    opening_responses,
    parsed,
    parsed_stream,
    read_request,
    response,
    stream_response,
)
from server.rpc.score_messages import read_score_request, score_response
from server.rpc.sentence_messages import partial_response
from server.rpc.term_messages import glossary_info
from server.telemetry.log import add_facts
from server.translation.job import Job
from server.translation.partial import Partial, completions_and_partials
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator

SERVICE_NAME = "babelserve.v1.TranslationService"
BULK_METHOD = "TranslateBulk"


class TranslationService:
    """The handlers of all methods.

    Args:
        translator: accepts requests.
        intake: reads messages.
        running: says when the server shuts down.
    """

    def __init__(self, translator: Translator, intake: Intake, running: RunningCalls) -> None:
        self._translator = translator
        self._intake = intake
        self._bulk = BulkHandler(translator, intake, running)

    def handler(self) -> "grpc.GenericRpcHandler[Any, Any]":
        """Returns the handlers that a gRPC server registers."""
        # Clients of the other methods send one message, which `server.rpc.intake` reads when it is its turn.
        unary, stream = grpc.stream_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        translate = parsed(pb.TranslateRequest, self.translate, self._intake, self._check)
        stream_request = pb.TranslateStreamRequest
        translate_stream = parsed_stream(stream_request, self.translate_stream, self._intake, self._check)
        score = parsed(pb.ScoreRequest, self.score, self._intake, self._check)
        list_models = parsed(pb.ListModelsRequest, self.list_models, self._intake)
        list_glossaries = parsed(pb.ListGlossariesRequest, self.list_glossaries, self._intake)
        methods = {
            "Translate": unary(translate),
            "TranslateStream": stream(translate_stream),
            "Score": unary(score),
            BULK_METHOD: stream(self._bulk.handle),
            "ListModels": unary(list_models),
            "ListGlossaries": unary(list_glossaries),
        }
        return grpc.method_handlers_generic_handler(SERVICE_NAME, methods)

    async def translate(self, message: pb.TranslateRequest, context: Any) -> pb.TranslateResponse:
        """Translates all texts. Raises TranslationError if all of them fail."""
        request = read_request(message, context.time_remaining(), caller.get())
        with await self._translator.accept(request) as job:
            await job.finish()
            _add_target_tokens(job)
            return await job.assemble(functools.partial(response, job, request.arrived, message.output))

    async def translate_stream(
        self, message: pb.TranslateStreamRequest, context: Any
    ) -> AsyncIterator[pb.TranslateStreamResponse]:
        """Yields each sentence as it finishes, and on request what sentences have so far.

        For a text that fails it yields the status and nothing more.
        """
        request = read_request(message.request, context.time_remaining(), caller.get())
        request = replace(request, with_partial_text=message.include_partial_text)
        with await self._translator.accept(request) as job:
            for opening in opening_responses(job):
                yield opening
            places = completions_and_partials(job) if request.with_partial_text else job.completions()
            async for place in places:
                if isinstance(place, Partial):
                    yield partial_response(place, job.answers[place.place.text].split.num_shown)
                    continue
                build = functools.partial(stream_response, job, place, message.request.output)
                yield await job.assemble(build, place)
        _add_target_tokens(job)

    async def score(self, message: pb.ScoreRequest, context: Any) -> pb.ScoreResponse:
        """Scores all pairs. Raises TranslationError if all of them fail."""
        request = read_score_request(message, context.time_remaining(), caller.get())
        with await self._translator.accept(request) as job:
            await job.finish()
            _add_target_tokens(job)
            return await job.assemble(functools.partial(score_response, job))

    async def list_models(self, message: pb.ListModelsRequest, context: Any) -> pb.ListModelsResponse:  # noqa: ARG002
        """Returns the descriptions of the served models, the default first."""
        models = [model_info(each) for each in self._translator.catalogue.models]
        return pb.ListModelsResponse(models=models, pivot_language_codes=self._translator.pivots)

    async def list_glossaries(self, message: pb.ListGlossariesRequest, context: Any) -> pb.ListGlossariesResponse:  # noqa: ARG002
        """Returns the descriptions of the loaded glossaries, by name."""
        return pb.ListGlossariesResponse(glossaries=map(glossary_info, self._translator.glossaries.served))

    def _check(self, context: Any) -> None:
        """Raises Overloaded if a request would be refused whatever it asks for."""
        self._translator.check_open(caller.get(), context.time_remaining())


def _add_target_tokens(job: Job) -> None:
    add_facts(target_tokens=sum(answer.num_target_tokens for answer in job.answers))
