"""The gRPC service: the only file that knows protobuf messages.

Messages in, checked field by field (`server/translation/rules.py`); `server/text/splitter.py` and
`server/translation/job.py` do the work; messages out. Errors are raised here and answered by
`server/rpc/interceptors.py`.
"""

import functools
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc.status_pb2 import Status

from protos import translation_pb2 as pb
from server.engine.sequence import DecodingOptions, FinishReason
from server.errors import DeadlineExceeded, InvalidRequest, NotServing, TranslationError
from server.telemetry.log import add_facts
from server.telemetry.metrics import Metrics
from server.text.sentences import SplitText
from server.text.splitter import Splitter
from server.translation.answer import TextAnswer, count_source_tokens
from server.translation.job import (
    Completion,
    ServedModel,
    Submission,
    TranslatedSentence,
    assemble,
    count_sentences,
    submit,
)
from server.translation.rules import check_decoding, check_mime_type, check_model, check_texts, choose_source_language

SERVICE_NAME = "babelserve.v1.TranslationService"
_FINISH_REASONS = {FinishReason.STOP: pb.FINISH_REASON_STOP, FinishReason.LENGTH: pb.FINISH_REASON_LENGTH}

_M = TypeVar("_M", bound=Message)


class Malformed:
    """Stands for bytes that are no protobuf message, so that they are answered and counted like any request."""


@dataclass(frozen=True, slots=True)
class _Work:
    """A checked request: its texts, split, and how to translate them."""

    model: ServedModel
    texts: list[SplitText | InvalidRequest]
    options: DecodingOptions
    deadline: float

    async def submit(self) -> Submission:
        return await submit(self.model, self.texts, self.options, self.deadline)


class TranslationService:
    """Handlers of `babelserve.v1.TranslationService`; they answer UNAVAILABLE until `model` is set.

    Args:
        metrics: told of the requests' sizes.
        beam_size: of requests that name none, where the model allows it.
        max_request_seconds: deadline of requests that have none, or a later one.
    """

    def __init__(self, metrics: Metrics, *, beam_size: int, max_request_seconds: float) -> None:
        self.model: ServedModel | None = None
        self._metrics = metrics
        self._splitter = Splitter()
        self._beam_size = beam_size
        self._max_request_seconds = max_request_seconds

    def handler(self) -> "grpc.GenericRpcHandler[Any, Any]":
        """Returns what a gRPC server registers."""
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        methods = {
            "Translate": unary(self.translate, _reader(pb.TranslateRequest), _write),
            "TranslateStream": stream(self.translate_stream, _reader(pb.TranslateStreamRequest), _write),
            "ListModels": unary(self.list_models, _reader(pb.ListModelsRequest), _write),
        }
        return grpc.method_handlers_generic_handler(SERVICE_NAME, methods)

    async def translate(
        self,
        request: pb.TranslateRequest | Malformed,
        context: "grpc.aio.ServicerContext[pb.TranslateRequest, pb.TranslateResponse]",
    ) -> pb.TranslateResponse:
        """Translates all texts. Raises TranslationError when each of them fails."""
        arrived = time.monotonic()
        request = _well_formed(request)
        work = await self._accept(request, context.time_remaining(), arrived)
        answers = [TextAnswer.of(text) for text in work.texts]
        _raise_if_all_failed(answers)
        with await work.submit() as submission:
            async for done in submission.completions():
                answers[done.text_index].add(done)
        _raise_if_all_failed(answers)
        add_facts(target_tokens=sum(answer.num_target_tokens for answer in answers))
        build = functools.partial(_response, request, work, answers, arrived)
        return await assemble(count_sentences(work.texts), build)

    async def translate_stream(
        self,
        request: pb.TranslateStreamRequest | Malformed,
        context: "grpc.aio.ServicerContext[pb.TranslateStreamRequest, pb.TranslateStreamResponse]",
    ) -> AsyncIterator[pb.TranslateStreamResponse]:
        """Yields each sentence as it finishes; a text that fails sends its status and nothing more."""
        arrived = time.monotonic()
        work = await self._accept(_well_formed(request).request, context.time_remaining(), arrived)
        answers = [TextAnswer.of(text) for text in work.texts]
        _raise_if_all_failed(answers)
        with await work.submit() as submission:
            for index, text in enumerate(work.texts):
                if isinstance(text, InvalidRequest):
                    yield pb.TranslateStreamResponse(content_index=index, status=_status(text))
                elif not text.sentences:
                    yield pb.TranslateStreamResponse(content_index=index, leading=text.leading)
            async for done in submission.completions():
                answer = answers[done.text_index]
                if answer.error is None:
                    answer.add(done)
                    _raise_if_all_failed(answers)
                    yield _stream_response(done, answer)
        add_facts(target_tokens=sum(answer.num_target_tokens for answer in answers))

    async def list_models(
        self,
        request: pb.ListModelsRequest | Malformed,
        context: "grpc.aio.ServicerContext[pb.ListModelsRequest, pb.ListModelsResponse]",  # noqa: ARG002 - gRPC's
    ) -> pb.ListModelsResponse:
        """Describes the model that is served."""
        _well_formed(request)
        model = self._served_model()
        manifest = model.manifest
        pairs = [
            pb.LanguagePair(source_language_code=pair.source, target_language_code=pair.target)
            for pair in manifest.language_pairs
        ]
        info = pb.ModelInfo(
            name=manifest.name,
            version=manifest.version,
            variant=model.variant,
            language_pairs=pairs,
            max_beam_size=manifest.limits.max_beam_size,
            max_source_tokens=manifest.limits.max_source_tokens,
            max_target_tokens=manifest.limits.max_target_tokens,
            has_shortlist=model.has_shortlist,
        )
        return pb.ListModelsResponse(models=[info])

    def _served_model(self) -> ServedModel:
        if self.model is None:
            raise NotServing("the server is loading its model")
        return self.model

    async def _accept(self, request: pb.TranslateRequest, remaining: float | None, arrived: float) -> _Work:
        """Checks a request and splits its texts; `remaining` are the seconds that the caller still waits."""
        model = self._served_model()
        manifest = model.manifest
        check_texts(len(request.contents))
        check_model(manifest, request.model)
        check_mime_type(request.mime_type)
        language = choose_source_language(manifest, request.source_language_code, request.target_language_code)
        options = self._read_options(request.decoding, model)
        seconds = min(self._max_request_seconds, self._max_request_seconds if remaining is None else remaining)
        deadline = arrived + seconds
        model.engine.check_room()  # before the texts are split: a full server does not pay for what it refuses
        texts = await self._splitter.split(model, request.contents, language, deadline)
        sentences = [sentence for text in texts if isinstance(text, SplitText) for sentence in text.sentences]
        num_tokens = count_source_tokens(sentences)
        self._metrics.request_source_tokens.observe(num_tokens)
        add_facts(texts=len(texts), sentences=len(sentences), source_tokens=num_tokens, beam_size=options.beam_size)
        if time.monotonic() >= deadline:
            raise DeadlineExceeded("the time was over before the translation could start")
        return _Work(model, texts, options, deadline)

    def _read_options(self, decoding: pb.DecodingOptions, model: ServedModel) -> DecodingOptions:
        limits, has = model.manifest.limits, decoding.HasField
        return check_decoding(
            limits,
            beam_size=decoding.beam_size if has("beam_size") else min(self._beam_size, limits.max_beam_size),
            num_hypotheses=decoding.num_hypotheses if has("num_hypotheses") else 1,
            length_penalty=decoding.length_penalty if has("length_penalty") else 1.0,
            max_output_tokens=decoding.max_output_tokens if has("max_output_tokens") else None,
            with_scores=decoding.with_scores if has("with_scores") else True,
            use_shortlist=decoding.use_shortlist,
            has_shortlist=model.has_shortlist,
        )


def _reader(kind: type[_M]) -> Callable[[bytes], _M | Malformed]:
    def read(data: bytes) -> _M | Malformed:
        try:
            return kind.FromString(data)
        except DecodeError:
            return Malformed()

    return read


def _write(message: Message) -> bytes:
    return message.SerializeToString()


def _well_formed(request: _M | Malformed) -> _M:
    if isinstance(request, Malformed):
        raise InvalidRequest("request", "is no valid protobuf message, or holds text that is no UTF-8")
    return request


def _raise_if_all_failed(answers: Sequence[TextAnswer]) -> None:
    if answers[0].error is not None and all(answer.error is not None for answer in answers):
        raise answers[0].error


def _response(
    request: pb.TranslateRequest, work: _Work, answers: Sequence[TextAnswer], arrived: float
) -> pb.TranslateResponse:
    num_hypotheses, with_sentences = work.options.num_hypotheses, request.output.include_sentences
    sentences = [sentence for answer in answers for sentence in answer.sentences.values()]
    return pb.TranslateResponse(
        translations=[_translation(answer, num_hypotheses, with_sentences) for answer in answers],
        model=work.model.manifest.name,
        model_version=work.model.manifest.version,
        timings=_timings(sentences, time.monotonic() - arrived),
    )


def _translation(answer: TextAnswer, num_hypotheses: int, with_sentences: bool) -> pb.Translation:
    if answer.error is not None:
        return pb.Translation(status=_status(answer.error))
    hypotheses = [pb.Hypothesis(text=answer.text(rank), score=answer.score(rank)) for rank in range(num_hypotheses)]
    return pb.Translation(
        text=hypotheses[0].text,
        score=hypotheses[0].score,
        finish_reason=_FINISH_REASONS[answer.finish_reason],
        hypotheses=hypotheses,
        sentences=[_sentence(sentence) for sentence in answer.in_order()] if with_sentences else [],
        source_tokens=answer.num_source_tokens,
        target_tokens=answer.num_target_tokens,
    )


def _stream_response(done: Completion, answer: TextAnswer) -> pb.TranslateStreamResponse:
    if isinstance(done.outcome, TranslationError):
        return pb.TranslateStreamResponse(content_index=done.text_index, status=_status(done.outcome))
    assert answer.split is not None
    return pb.TranslateStreamResponse(
        content_index=done.text_index,
        sentence_index=done.sentence_index,
        sentence_count=len(answer.split.sentences),
        leading=answer.split.leading if done.sentence_index == 0 else "",  # once is enough: it may be long
        sentence=_sentence(done.outcome),
    )


def _sentence(sentence: TranslatedSentence) -> pb.Sentence:
    best = sentence.candidates[0]
    return pb.Sentence(
        source_text=sentence.source.text,
        text=best.text,
        separator=sentence.source.separator,
        score=best.score,
        finish_reason=_FINISH_REASONS[best.finish_reason],
        source_tokens=count_source_tokens([sentence.source]),
        target_tokens=best.num_tokens,
    )


def _status(error: TranslationError) -> Status:
    number: int = grpc.StatusCode[error.code.name].value[0]
    return Status(code=number, message=str(error))


def _timings(sentences: Sequence[TranslatedSentence], total_seconds: float) -> pb.Timings:
    return pb.Timings(
        total_seconds=total_seconds,
        queue_seconds=max((each.queue_seconds for each in sentences), default=0.0),
        encode_seconds=max((each.encode_seconds for each in sentences), default=0.0),
        decode_seconds=max((each.decode_seconds for each in sentences), default=0.0),
    )
