"""Reads sentences of answers, and what all answers have: errors, routes, detected languages."""

import grpc

from babelserve.errors import ServerFailed
from babelserve.results import (
    DetectedLanguage,
    FinishReason,
    KeptPart,
    Link,
    Placement,
    RouteLeg,
    SearchNode,
    Sentence,
    TextError,
    Token,
)
from babelserve.terminal import in_one_line
from babelserve.terms import read_terms
from babelserve.v1 import translation_pb2

_FINISH_REASONS: dict[int, FinishReason] = {
    translation_pb2.FINISH_REASON_STOP: FinishReason.STOP,
    translation_pb2.FINISH_REASON_LENGTH: FinishReason.LENGTH,
    translation_pb2.FINISH_REASON_COPIED: FinishReason.COPIED,
    translation_pb2.FINISH_REASON_REPETITION: FinishReason.REPETITION,
}
_PLACEMENTS: dict[int, Placement] = {
    translation_pb2.PLACEMENT_BY_MODEL: Placement.BY_MODEL,
    translation_pb2.PLACEMENT_BY_POSITION: Placement.BY_POSITION,
    translation_pb2.PLACEMENT_MISSING: Placement.MISSING,
}
_LINK_FIELDS = [field.name for field in translation_pb2.Link.DESCRIPTOR.fields]
STATUS_CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def read_detected(
    message: translation_pb2.Translation | translation_pb2.TranslateStreamResponse,
) -> DetectedLanguage | None:
    """Reads the language that was detected; None if the request named it."""
    code = message.detected_language_code
    return DetectedLanguage(code=code, confidence=message.detection_confidence) if code else None


def read_route(
    message: translation_pb2.Translation | translation_pb2.TranslateStreamResponse,
) -> tuple[RouteLeg, ...]:
    """Reads the legs that an answer names."""
    return tuple(
        RouteLeg(
            model=leg.model,
            model_version=leg.model_version,
            source=leg.source_language_code,
            target=leg.target_language_code,
        )
        for leg in message.route
    )


def read_sentence(message: translation_pb2.Sentence) -> Sentence:
    """Reads a sentence. Raises ServerFailed if its search is no tree."""
    return Sentence(
        source_text=message.source_text,
        text=message.text,
        separator=message.separator,
        score=message.score,
        finish_reason=read_finish_reason(message.finish_reason),
        source_tokens=message.source_tokens,
        target_tokens=message.target_tokens,
        kept=read_kept(message),
        links=tuple(Link(**{name: getattr(link, name) for name in _LINK_FIELDS}) for link in message.links),
        source_begin=message.source_begin,
        source_end=message.source_end,
        begin=message.begin,
        end=message.end,
        tokens=read_tokens(message),
        terms=read_terms(message),
        confidence=message.confidence if message.HasField("confidence") else None,
        search=tuple(_read_node(index, node) for index, node in enumerate(message.search)),
    )


def _read_node(index: int, message: translation_pb2.SearchNode) -> SearchNode:
    parent = message.parent if message.HasField("parent") else None
    if parent is not None and parent >= index:  # whoever went from parent to parent might never come to an end
        raise ServerFailed(f"the server answered with node {index} of a search behind node {parent}, not one before it")
    return SearchNode(
        parent=parent,
        text=message.text,
        log_prob=message.log_prob,
        score=message.score if message.HasField("score") else None,
        finish_reason=read_finish_reason(message.finish_reason),
        is_chosen=message.is_chosen,
    )


def read_tokens(message: translation_pb2.Sentence | translation_pb2.Score) -> tuple[Token, ...]:
    """Reads the tokens of a translation."""
    return tuple(
        Token(text=token.text, begin=token.begin, end=token.end, log_prob=token.log_prob) for token in message.tokens
    )


def read_kept(message: translation_pb2.Translation | translation_pb2.Sentence) -> tuple[KeptPart, ...]:
    """Reads the parts that no model was shown."""
    placements = [_PLACEMENTS.get(part.placement, Placement.UNSPECIFIED) for part in message.kept]
    return tuple(KeptPart(text=part.text, placement=each) for part, each in zip(message.kept, placements, strict=True))


def read_finish_reason(value: translation_pb2.FinishReason) -> FinishReason:
    """Reads why a translation ended."""
    return _FINISH_REASONS.get(value, FinishReason.UNSPECIFIED)  # a newer server may have others


def read_text_error(status: translation_pb2.Status) -> TextError:
    """Reads the error of a text."""
    return TextError(code=STATUS_CODES.get(status.code, grpc.StatusCode.UNKNOWN), message=in_one_line(status.message))
