"""The use cases of `babelserve.v1`, whatever carries the messages: a message in, the translator's job, a message out.

They have no rules, and let errors pass. Whose request it is, the context says (`server.translation.calls.let_in`).
"""

import functools
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import caller
from server.api.bulk import translate_bulk
from server.api.glossary_store import GlossaryStore
from server.api.messages import (
    detection_message,
    model_info,
    opening_responses,
    read_request,
    response,
    stream_response,
)
from server.api.score_messages import read_score_request, score_response
from server.api.sentence_messages import partial_response
from server.api.term_messages import glossary_info
from server.telemetry.log import add_facts
from server.translation.assembling import assemble
from server.translation.bulk import BulkText
from server.translation.job import Job
from server.translation.partial import Partial, completions_and_partials
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator


class Api:
    """Answers messages. Where a method takes `seconds`, it is what the caller still waits; None for ever.

    Args:
        translator: accepts requests.

    Attributes:
        glossary_store: answers what concerns glossaries of callers.
    """

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self._listed: tuple[object, pb.ListModelsResponse] | None = None  # the manifests, and what was told of them
        self.glossary_store = GlossaryStore(translator.glossaries.kept, translator.memory)

    def check_open(self, seconds: float | None) -> None:
        """Raises Overloaded if a request would be refused whatever it asks for, so that it need not be read."""
        self._translator.check_open(caller.get(), seconds)

    async def translate(self, message: pb.TranslateRequest, seconds: float | None) -> pb.TranslateResponse:
        """Translates all texts. Raises TranslationError if all of them fail."""
        request = read_request(message, seconds, caller.get())
        with await self._translator.accept(request) as job:
            await job.finish()
            _add_target_tokens(job)
            return await assemble(job, functools.partial(response, job, request.arrived, message.output))

    async def translate_stream(
        self, message: pb.TranslateStreamRequest, seconds: float | None
    ) -> AsyncIterator[pb.TranslateStreamResponse]:
        """Yields each sentence as it finishes, and on request what sentences have so far.

        For a text that fails it yields the status and nothing more.
        """
        request = read_request(message.request, seconds, caller.get())
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
                yield await assemble(job, build, place)
        _add_target_tokens(job)

    def translate_bulk(
        self,
        options: pb.TranslateRequest,
        texts: AsyncIterator[BulkText],
        running: RunningCalls,
        seconds: float | None,
    ) -> AsyncGenerator[pb.TranslateBulkResponse]:
        """See `server.api.bulk.translate_bulk`."""
        return translate_bulk(self._translator, running, options, texts, seconds)

    async def score(self, message: pb.ScoreRequest, seconds: float | None) -> pb.ScoreResponse:
        """Scores all pairs. Raises TranslationError if all of them fail."""
        request = read_score_request(message, seconds, caller.get())
        with await self._translator.accept(request) as job:
            await job.finish()
            _add_target_tokens(job)
            return await assemble(job, functools.partial(score_response, job))

    async def list_models(self, _: pb.ListModelsRequest, __: float | None = None) -> pb.ListModelsResponse:
        """Returns the descriptions of the served models, the default first. Nobody may change it: it is kept."""
        catalogue = self._translator.catalogue
        if self._listed is None or self._listed[0] is not catalogue.manifests:
            models = map(model_info, catalogue.models)
            listed = pb.ListModelsResponse(models=models, pivot_language_codes=self._translator.pivots)
            self._listed = catalogue.manifests, listed
        return self._listed[1]

    async def list_glossaries(self, _: pb.ListGlossariesRequest, __: float | None = None) -> pb.ListGlossariesResponse:
        """Returns the descriptions of the loaded glossaries, by name."""
        return pb.ListGlossariesResponse(glossaries=map(glossary_info, self._translator.glossaries.served))

    async def detect_languages(
        self, message: pb.DetectLanguagesRequest, seconds: float | None = None
    ) -> pb.DetectLanguagesResponse:
        """Returns the language of each text. Raises TranslationError."""
        found = await self._translator.detect(message.contents, message.mime_type, caller.get(), seconds)
        return pb.DetectLanguagesResponse(detections=map(detection_message, found))


def _add_target_tokens(job: Job) -> None:
    add_facts(target_tokens=sum(answer.num_target_tokens for answer in job.answers))
