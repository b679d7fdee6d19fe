"""A real gRPC server on a free port whose answers a test decides: it translates by upper case, and fails as told.

A text of the form "!CODE message" fails alone with that status; "?CODE message", as the first text, fails the call.
A translation has a term of the glossary if its target is its source in capitals. Glossaries that a request names are
said to be of version 1.
"""

import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from babelserve.channel import SERVICE
from babelserve.v1 import translation_pb2
from babelserve.v1.translation_pb2_grpc import TranslationServiceServicer, add_TranslationServiceServicer_to_server

Failure = tuple[grpc.StatusCode, str, tuple[tuple[str, str | bytes], ...]]


class ScriptedService(TranslationServiceServicer):
    """Answers calls; `failures` are used up first, one for each attempt.

    It has no room for requests of more than `most_texts`, answers DEADLINE_EXCEEDED to those with `late_text`, refuses
    those with `refused_text`, and lets each of `failing_texts` fail alone, once for each time that it stands there.
    Once, it ends a bulk call after `most_bulk_texts`, or after `most_bulk_answers` while nothing is being sent. It
    answers each text of one under the ids of `bulk_ids`.

    `before_answer` runs in the handler, with the request, before an answer is made; a test may wait there.
    `is_closing` is set when the server goes, so that nothing waits for ever.
    """

    def __init__(self) -> None:
        self.failures: deque[Failure] = deque()
        self.requests: list[translation_pb2.TranslateRequest] = []
        self.metadata: list[dict[str, Any]] = []
        self.num_attempts = 0
        self.cancelled = threading.Event()
        self.has_request = threading.Event()
        self.is_closing = threading.Event()
        self.before_answer: Callable[[translation_pb2.TranslateRequest], object] = lambda request: None
        self.language_pairs = [("en", "de")]
        self.target_languages: list[str] = []
        self.pivots: list[str] = []
        self.glossaries: list[translation_pb2.GlossaryInfo] = []
        self.most_texts = 1024
        self.late_text = self.refused_text = "none has this"
        self.failing_texts: list[str] = []
        self.most_bulk_texts = -1  # for any number
        self.most_bulk_answers = -1
        self.bulk_ids: Callable[[int], list[int]] = lambda identity: [identity]

    def Translate(
        self, request: translation_pb2.TranslateRequest, context: grpc.ServicerContext
    ) -> translation_pb2.TranslateResponse:
        self._receive(request, context)
        return translation_pb2.TranslateResponse(
            translations=[self._translation(request, text) for text in request.contents],
            model="scripted",
            model_version="1",
            source_language_code="en",
            target_language_code="de",
            timings=translation_pb2.Timings(total_seconds=0.5, queue_seconds=0.125),
            glossaries=_used_glossaries(request),
        )

    def Score(
        self, request: translation_pb2.ScoreRequest, context: grpc.ServicerContext
    ) -> translation_pb2.ScoreResponse:
        """Scores each target with minus its length."""
        if self.failures:
            context.abort(*self.failures.popleft()[:2])
        scores = [translation_pb2.Score(score=-len(pair.target)) for pair in request.pairs]
        return translation_pb2.ScoreResponse(scores=scores, model="scripted", model_version="1")

    def TranslateStream(
        self, request: translation_pb2.TranslateStreamRequest, context: grpc.ServicerContext
    ) -> Iterator[translation_pb2.TranslateStreamResponse]:
        self._receive(request.request, context)
        for index, text in reversed(list(enumerate(request.request.contents))):
            answer = _translation(request.request, text)
            if answer.HasField("status"):
                yield translation_pb2.TranslateStreamResponse(content_index=index, status=answer.status)
            elif not text.strip():
                yield translation_pb2.TranslateStreamResponse(content_index=index, leading=text)
            else:
                yield translation_pb2.TranslateStreamResponse(
                    content_index=index,
                    sentence_count=1,
                    sentence=_sentence(text),
                    model="scripted",
                    model_version="1",
                    glossaries=_used_glossaries(request.request),
                )

    def TranslateBulk(
        self, messages: Iterator[translation_pb2.TranslateBulkRequest], context: grpc.ServicerContext
    ) -> Iterator[translation_pb2.TranslateBulkResponse]:
        options = next(messages).options
        if self.failures:
            next(messages)  # gRPC's asyncio client hides a status that comes while it still sends
        self._receive(options, context)
        for number, message in enumerate(messages):
            if number == self.most_bulk_texts:
                self.most_bulk_texts = -1
                context.abort(grpc.StatusCode.UNAVAILABLE, "shutting down")
            for identity in self.bulk_ids(message.text.id):
                yield translation_pb2.TranslateBulkResponse(
                    id=identity,
                    translation=_translation(options, message.text.content),
                    model="scripted",
                    model_version="1",
                    glossaries=_used_glossaries(options),
                )
            if number + 1 == self.most_bulk_answers:
                self.most_bulk_answers = -1
                context.abort(grpc.StatusCode.UNAVAILABLE, "shutting down")

    def ListModels(
        self, request: translation_pb2.ListModelsRequest, context: grpc.ServicerContext
    ) -> translation_pb2.ListModelsResponse:
        pairs = [
            translation_pb2.LanguagePair(source_language_code=source, target_language_code=target)
            for source, target in self.language_pairs
        ]
        model = translation_pb2.ModelInfo(
            name="scripted",
            version="1",
            variant="cpu-fp32",
            language_pairs=pairs,
            max_beam_size=8,
            target_language_codes=self.target_languages,
        )
        return translation_pb2.ListModelsResponse(models=[model], pivot_language_codes=self.pivots)

    def ListGlossaries(
        self, request: translation_pb2.ListGlossariesRequest, context: grpc.ServicerContext
    ) -> translation_pb2.ListGlossariesResponse:
        return translation_pb2.ListGlossariesResponse(glossaries=self.glossaries)

    def _translation(self, request: translation_pb2.TranslateRequest, text: str) -> translation_pb2.Translation:
        if text in self.failing_texts:
            self.failing_texts.remove(text)
            text = "!INTERNAL for once"
        return _translation(request, text)

    def _receive(self, request: translation_pb2.TranslateRequest, context: grpc.ServicerContext) -> None:
        self.num_attempts += 1
        self.metadata.append(dict(context.invocation_metadata()))
        context.add_callback(self.cancelled.set)
        self.has_request.set()
        if self.failures:
            code, message, trailing = self.failures.popleft()
            context.set_trailing_metadata((*trailing, ("x-request-id", "request-7")))
            context.abort(code, message)
        if len(request.contents) > self.most_texts:
            context.set_trailing_metadata((("grpc-retry-pushback-ms", "1"),))
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "queue is full")
        if self.late_text in request.contents:
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "late")
        if self.refused_text in request.contents:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "contents: too odd")
        self.requests.append(request)
        self.before_answer(request)
        if request.contents and request.contents[0].startswith("?"):
            name, _, message = request.contents[0][1:].partition(" ")
            context.abort(grpc.StatusCode[name], message)


_PLACEMENTS: tuple[translation_pb2.Placement, ...] = (
    translation_pb2.PLACEMENT_UNSPECIFIED,
    translation_pb2.PLACEMENT_BY_MODEL,
    translation_pb2.PLACEMENT_BY_POSITION,
    translation_pb2.PLACEMENT_MISSING,
)


def _translation(request: translation_pb2.TranslateRequest, text: str) -> translation_pb2.Translation:
    if text.startswith("!"):
        code, _, message = text[1:].partition(" ")
        status = translation_pb2.Status(code=grpc.StatusCode[code].value[0], message=message)
        return translation_pb2.Translation(status=status)
    in_capitals = upper(text) if request.mime_type == "text/html" else text.upper()
    best = [translation_pb2.Hypothesis(text=in_capitals, score=-0.25)] * request.decoding.num_hypotheses
    return translation_pb2.Translation(
        text=in_capitals,
        score=-0.25,
        finish_reason=translation_pb2.FINISH_REASON_COPIED if text == "***" else translation_pb2.FINISH_REASON_STOP,
        kept=[translation_pb2.KeptPart(text=text, placement=placement) for placement in _PLACEMENTS if text == "***"],
        hypotheses=best,
        sentences=[_sentence(text)] if request.output.include_sentences else [],
        source_tokens=len(text),
        target_tokens=len(text),
        terms=[_used(term, in_capitals) for term in request.glossary.terms if term.source in text],
    )


def _used_glossaries(request: translation_pb2.TranslateRequest) -> list[translation_pb2.UsedGlossary]:
    return [translation_pb2.UsedGlossary(name=name, version="1") for name in request.glossary.names]


def _used(term: translation_pb2.Term, translation: str) -> translation_pb2.UsedTerm:
    if term.target not in translation:
        return translation_pb2.UsedTerm(source=term.source, status=translation_pb2.TERM_STATUS_MISSED)
    begin = translation.index(term.target)
    return translation_pb2.UsedTerm(
        source=term.source,
        target=term.target,
        source_begin=begin,
        source_end=begin + len(term.source),
        begin=begin,
        end=begin + len(term.target),
        status=translation_pb2.TERM_STATUS_APPLIED,
    )


def upper(text: str) -> str:
    """HTML in capitals, its tags and entities as they are."""
    return re.sub(r"(<[^>]*>|&\w+;)|[^<&]+", lambda found: found[1] or found[0].upper(), text)


def _sentence(text: str) -> translation_pb2.Sentence:
    return translation_pb2.Sentence(
        source_text=text, text=text.upper(), score=-0.25, finish_reason=translation_pb2.FINISH_REASON_LENGTH
    )


_STOP_SECONDS = 10.0


class ScriptedServer:
    """Runs a ScriptedService on a port of the loopback interface, a free one unless it is given."""

    def __init__(self, credentials: grpc.ServerCredentials | None = None, port: int = 0) -> None:
        self.service = ScriptedService()
        self._executor = ThreadPoolExecutor(16)
        self._server = grpc.server(self._executor)
        add_TranslationServiceServicer_to_server(self.service, self._server)
        # A watch that does not block sends under the lock that the end of another watch wants: both wait for ever.
        self._health = health.HealthServicer(experimental_non_blocking=False)
        self.set_serving(True)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        if credentials is None:
            self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        else:
            self.port = self._server.add_secure_port(f"127.0.0.1:{port}", credentials)
        self.address = f"127.0.0.1:{self.port}"
        self._server.start()

    def set_serving(self, is_serving: bool) -> None:
        """Says by the health service whether calls are welcome."""
        status = health_pb2.HealthCheckResponse.SERVING if is_serving else health_pb2.HealthCheckResponse.NOT_SERVING
        self._health.set(SERVICE, status)

    def close(self) -> None:
        stopping = self._server.stop(None)  # first, so that no call that waits is answered
        self.service.is_closing.set()
        # In one run of all tests gRPC's thread hung in its own callback (1.85.1), and this would have waited for ever.
        has_stopped = stopping.wait(_STOP_SECONDS)
        self._executor.shutdown(wait=has_stopped)
