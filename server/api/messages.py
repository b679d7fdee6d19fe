"""Reads the messages of `babelserve.v1` into plain values, and writes plain values into messages."""

import time
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message
from google.rpc.code_pb2 import Code as StatusNumber

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import Priority, Tenant
from server.api.decoding_messages import read_decoding
from server.api.sentence_messages import FINISH_REASONS, kept_parts, sentence_message, sentence_messages
from server.api.term_messages import read_glossary, term_messages, used_glossaries
from server.bundle.family import max_length_ratio
from server.decoding.result import Timings
from server.errors import Code, InvalidRequest, TranslationError
from server.models.model import ServedModel
from server.telemetry.log import request_id
from server.text.formality import Formality
from server.text.markup.tag_rules import TagRules
from server.text.own_parts import MAX_RULES
from server.translation.answer import TextAnswer
from server.translation.detection import DetectedLanguage
from server.translation.job import Job
from server.translation.request import DecodingRequest, TextOptions, TranslationRequest
from server.translation.rules import MAX_PHRASES, check_range
from server.translation.submission import Place

_STATUS_NUMBERS = {code: StatusNumber.Value(code.name) for code in Code}
_PRIORITIES: dict[int, Priority] = {
    pb.PRIORITY_UNSPECIFIED: Priority.NORMAL,
    pb.PRIORITY_HIGH: Priority.HIGH,
    pb.PRIORITY_NORMAL: Priority.NORMAL,
    pb.PRIORITY_LOW: Priority.LOW,
}

_M = TypeVar("_M", bound=Message)


def parse(kind: type[_M], data: bytes) -> _M:
    """Returns a message. Raises InvalidRequest if the bytes are no message."""
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise InvalidRequest("request", "is no valid protobuf message, or holds text that is no UTF-8") from error


def read_request(message: pb.TranslateRequest, remaining: float | None, tenant: Tenant) -> TranslationRequest:
    """Returns what a message asks for.

    Args:
        message: as it came.
        remaining: seconds that the caller still waits; None for ever.
        tenant: the tenant of the call.

    Raises:
        InvalidRequest: a field of an enum has an unknown value, a field too many values, or a rule is of two kinds or
            of none. The numbers of values are checked before any value is read, because a message has millions.
    """
    arrived = time.monotonic()
    return TranslationRequest(
        contents=message.contents,
        source_language_code=message.source_language_code,
        target_language_code=message.target_language_code,
        model=message.model,
        mime_type=message.mime_type,
        decoding=read_decoding(message.decoding) if message.HasField("decoding") else DecodingRequest(),
        tenant=tenant,
        priority=read_priority(message.priority),
        with_alignment=message.output.include_alignment,
        with_tokens=message.output.include_tokens,
        with_search=message.output.include_search,
        with_confidence=message.output.include_confidence,
        text=_read_text(message.text) if message.HasField("text") else TextOptions(),
        glossary=read_glossary(message.glossary) if message.HasField("glossary") else None,
        formality=_read_formality(message.formality),
        target_prefixes=message.target_prefixes,
        traffic_key=message.traffic_key or request_id.get() or "",
        arrived=arrived,
        deadline=float("inf") if remaining is None else arrived + remaining,
    )


def response(job: Job, arrived: float, output: pb.OutputOptions) -> pb.TranslateResponse:
    """Returns the answer to a finished job.

    Args:
        job: that is finished.
        arrived: instant of its request.
        output: what the answer is to carry.
    """
    sentences = [sentence for answer in job.answers for sentence in answer.sentences.values()]
    timings = Timings.longest(sentence.timings for sentence in sentences)
    legs, *others = job.routes
    translations = [_translation(answer, job.num_hypotheses, output) for answer in job.answers]
    if others or len(legs) > 1:
        for translation, answer in zip(translations, job.answers, strict=True):
            translation.route.extend(_route(answer))
    return pb.TranslateResponse(
        translations=translations,
        model="" if others else legs[-1].model.manifest.name,
        model_version="" if others else legs[-1].model.manifest.version,
        source_language_code="" if others else legs[0].pair.source,
        target_language_code=legs[-1].pair.target,
        glossaries=used_glossaries(legs),
        timings=pb.Timings(
            total_seconds=time.monotonic() - arrived,
            queue_seconds=timings.queue_seconds,
            encode_seconds=timings.encode_seconds,
            decode_seconds=timings.decode_seconds,
        ),
    )


def opening_responses(job: Job) -> list[pb.TranslateStreamResponse]:
    """Returns the responses of a stream before any sentence: errors of texts, and texts without sentences."""
    return [
        _stream_response(answer, content_index=index, leading=answer.split.leading, status=status_message(answer.error))
        for index, answer in enumerate(job.answers)
        if answer.error is not None or not answer.split.sentences
    ]


def stream_response(job: Job, place: Place, output: pb.OutputOptions) -> pb.TranslateStreamResponse:
    """Returns the response with a completed sentence, or with the error of its text."""
    answer = job.answers[place.text]
    if answer.error is not None:
        return _stream_response(answer, content_index=place.text, status=status_message(answer.error))
    is_first, detected = place.sentence == 0, answer.detected
    sentence = answer.sentences[place.sentence]
    return _stream_response(
        answer,
        content_index=place.text,
        sentence_index=place.sentence,
        sentence_count=answer.split.num_shown,
        leading=answer.split.leading if is_first else "",  # sent only once, because it may be long
        sentence=sentence_message(
            sentence, answer.sentence_text(place.sentence), answer.source_begin(place.sentence), None, output
        ),
        detected_language_code=detected.code if detected and is_first else "",
        detection_confidence=detected.confidence if detected and is_first else 0.0,
        route=_route(answer) if is_first else (),
        glossaries=used_glossaries(answer.legs) if is_first else (),
    )


def model_info(model: ServedModel) -> pb.ModelInfo:
    """Returns the description of a model."""
    manifest = model.manifest
    return pb.ModelInfo(
        name=manifest.name,
        version=manifest.version,
        variant=model.variant,
        language_pairs=[
            pb.LanguagePair(source_language_code=pair.source, target_language_code=pair.target)
            for pair in manifest.language_pairs
        ],
        max_beam_size=manifest.limits.max_beam_size,
        max_source_tokens=manifest.limits.max_source_tokens,
        max_target_tokens=manifest.limits.max_target_tokens,
        has_shortlist=model.has_shortlist,
        source_language_codes=manifest.source_codes,
        target_language_codes=manifest.target_codes,
        has_alignment=manifest.alignment is not None,
        has_confidence=manifest.confidence is not None,
        family=manifest.family,
        has_length_control=max_length_ratio(manifest) > 0,
        max_length_ratio=max_length_ratio(manifest),
    )


def detection_message(found: DetectedLanguage | InvalidRequest) -> pb.Detection:
    """Returns the language of a text, or the error that it is not served."""
    if isinstance(found, InvalidRequest):
        return pb.Detection(status=status_message(found))
    return pb.Detection(language_code=found.code, confidence=found.confidence)


def _read_formality(value: int) -> Formality | None:
    try:
        return Formality(value) if value else None
    except ValueError:
        raise InvalidRequest("formality", f"must be from 0 to {max(Formality)}, not {value}") from None


def read_priority(value: int) -> Priority:
    """Returns the priority of a message. Raises InvalidRequest if the value is unknown."""
    try:
        return _PRIORITIES[value]
    except KeyError:
        raise InvalidRequest("priority", f"must be from 0 to {max(_PRIORITIES)}, not {value}") from None


def _read_text(text: pb.TextOptions) -> TextOptions:
    check_range("text.keep", len(text.keep), 0, MAX_RULES, " rules")
    return TextOptions(
        refuse_unknown_scripts=text.refuse_unknown_scripts,
        translate_attributes=text.translate_attributes,
        adapt_quantities=text.adapt_quantities,
        join_lines=text.join_lines,
        tags=_read_tags(text.tags),
        keep=[_read_keep_rule(index, rule) for index, rule in enumerate(text.keep)],
    )


def _read_tags(tags: pb.TagRules) -> TagRules:
    for name in ("ignored", "splitting", "non_splitting"):
        check_range(f"text.tags.{name}", len(getattr(tags, name)), 0, MAX_PHRASES, " names")
    return TagRules(
        ignored=frozenset(tags.ignored),
        splitting=frozenset(tags.splitting),
        non_splitting=frozenset(tags.non_splitting),
        only_named_split=tags.only_named_split,
        repair=tags.repair,
    )


def _read_keep_rule(index: int, rule: pb.KeepRule) -> str | tuple[str, str]:
    has_delimiters = bool(rule.opening or rule.closing)
    if bool(rule.literal) == has_delimiters:
        raise InvalidRequest(f"text.keep[{index}]", "must have either a literal, or an opening and a closing")
    return (rule.opening, rule.closing) if has_delimiters else rule.literal


def _translation(answer: TextAnswer, num_hypotheses: int, output: pb.OutputOptions) -> pb.Translation:
    if answer.error is not None:
        return pb.Translation(status=status_message(answer.error))
    if answer.legs and answer.legs[-1].options.return_alternatives:
        num_hypotheses = answer.num_alternatives(num_hypotheses)
    hypotheses = [pb.Hypothesis(text=answer.text(rank), score=answer.score(rank)) for rank in range(num_hypotheses)]
    text = hypotheses[0].text
    if output.text_once:
        hypotheses[0].text = ""
    return pb.Translation(
        text=text,
        score=hypotheses[0].score,
        finish_reason=FINISH_REASONS[answer.finish_reason],
        hypotheses=hypotheses,
        sentences=sentence_messages(answer, output),
        source_tokens=answer.num_source_tokens,
        target_tokens=answer.num_target_tokens,
        detected_language_code=answer.detected.code if answer.detected else "",
        detection_confidence=answer.detected.confidence if answer.detected else 0.0,
        kept=kept_parts(answer.kept),
        confidence=answer.confidence if output.include_confidence else None,
        terms=term_messages(answer),
    )


def _stream_response(answer: TextAnswer, **fields: Any) -> pb.TranslateStreamResponse:
    """Returns a response of a stream. It names the last model of its text's route, if there is one."""
    if answer.legs:
        manifest = answer.legs[-1].model.manifest
        fields |= {"model": manifest.name, "model_version": manifest.version}
    return pb.TranslateStreamResponse(**fields)


def _route(answer: TextAnswer) -> list[pb.RouteLeg]:
    return [
        pb.RouteLeg(
            model=leg.model.manifest.name,
            model_version=leg.model.manifest.version,
            source_language_code=leg.pair.source,
            target_language_code=leg.pair.target,
        )
        for leg in answer.legs
    ]


def status_message(error: TranslationError | None) -> pb.Status | None:
    """Returns the error of a text; None without one."""
    if error is None:
        return None
    return pb.Status(code=_STATUS_NUMBERS[error.code], message=str(error))
