"""Google's Cloud Translation over HTTP: versions 2 (https://cloud.google.com/translate/docs/reference/rest) and 3.

Version 3 is JSON of the messages of `server.fronts.google`. Version 2 has fields of its own that become such messages.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from babelserve.v1 import translation_pb2 as pb
from server.errors import Code, InvalidRequest, TranslationError
from server.fronts import own
from server.fronts.front import Front, check_text, check_texts, raise_failure
from server.fronts.v1 import google_pb2 as google
from server.telemetry.metrics import GOOGLE

V2_FIELDS = {"contents": "q", "source_language_code": "source", "target_language_code": "target", "mime_type": "format"}

_M = TypeVar("_M", bound=Message)

_TYPES = {"": "text/html", "html": "text/html", "text": "text/plain"}  # HTML is what Google takes for granted
_TYPE_URL = "type.googleapis.com/google.rpc."

Fields = Mapping[str, Sequence[Any]]  # each name with its values, of JSON, of a form or of the query


def read_message(kind: type[_M], value: Any, path: Mapping[str, str]) -> _M:
    """Returns the message of version 3 that a JSON value means; fields that this server does not know are left out.

    Args:
        kind: of the message.
        value: the JSON.
        path: fields that the path of the request has.

    Raises:
        InvalidRequest: it means none.
    """
    if not isinstance(value, dict):
        raise InvalidRequest("body", "must be a JSON object")
    return own.read_message(kind, {**value, **path}, ignores_unknown=True)


def read_parameters(kind: type[Message], query: Fields) -> dict[str, Any]:
    """Returns the fields of a message that the parameters of a query have, as JSON."""
    names = {name for each in kind.DESCRIPTOR.fields for name in (each.name, each.json_name)}
    return {name: values[0] for name, values in query.items() if name in names}


def write_message(message: Message) -> dict[str, Any]:
    """Returns a message of version 3 as JSON."""
    return MessageToDict(message)


def read_translate(fields: Fields) -> google.TranslateTextRequest:
    """Returns what a request of version 2 to translate means. Raises InvalidRequest."""
    kind = _text(fields, "format")
    if kind not in _TYPES:
        raise InvalidRequest("format", "must be html or text")
    if any(fields.get("cid", ())):
        raise InvalidRequest("cid", "must be absent: this server has no customizations")
    target = _text(fields, "target")
    if not target:
        raise InvalidRequest("target", "is required")
    model = _text(fields, "model")
    return google.TranslateTextRequest(
        contents=_texts(fields),
        mime_type=_TYPES[kind],
        source_language_code=_text(fields, "source"),
        target_language_code=target,
        model="" if model == "base" else model,
    )


def write_translate(asked: google.TranslateTextRequest, response: google.TranslateTextResponse) -> dict[str, Any]:
    """Returns the answer of version 2 to a request to translate."""
    translations = []
    for each in response.translations:
        answer = {"translatedText": each.translated_text}
        if each.detected_language_code:
            answer["detectedSourceLanguage"] = each.detected_language_code
        if asked.model:
            answer["model"] = asked.model
        translations.append(answer)
    return {"data": {"translations": translations}}


def read_detect(fields: Fields) -> pb.DetectLanguagesRequest:
    """Returns what a request of version 2 to detect means. Raises InvalidRequest."""
    return pb.DetectLanguagesRequest(contents=_texts(fields))


def write_detect(response: pb.DetectLanguagesResponse) -> dict[str, Any]:
    """Returns the answer of version 2 to it. Raises TranslationError if a text is in no language that is served."""
    raise_failure(response.detections)
    found = [
        [{"language": each.language_code, "confidence": each.confidence, "isReliable": False}]
        for each in response.detections
    ]
    return {"data": {"detections": found}}


def read_languages(fields: Fields) -> google.GetSupportedLanguagesRequest:
    """Returns what a request of version 2 for languages means: with names if it has a target. Raises InvalidRequest."""
    model = _text(fields, "model")
    return google.GetSupportedLanguagesRequest(
        display_language_code=_text(fields, "target"), model="" if model == "base" else model
    )


def write_languages(found: google.SupportedLanguages) -> dict[str, Any]:
    """Returns the answer of version 2 to it."""
    languages = [
        {"language": each.language_code} | ({"name": each.display_name} if each.display_name else {})
        for each in found.languages
    ]
    return {"data": {"languages": languages}}


def _texts(fields: Fields) -> list[str]:
    """Returns the texts; JSON has a list of them, a form or a query has its field several times."""
    values = [each for each in fields.get("q", ()) if each is not None]
    texts = check_texts("q", values[0] if len(values) == 1 and isinstance(values[0], list) else values)
    if not texts:
        raise InvalidRequest("q", "is required")
    return texts


def _text(fields: Fields, name: str) -> str:
    value = next(iter(fields.get(name, ())), None)
    return "" if value is None else check_text(name, value)


def _details(error: TranslationError, words: str) -> Iterable[dict[str, Any]]:
    """Yields what Google's clients read of an error beside its words."""
    field, found, rule = words.partition(": ")
    if isinstance(error, InvalidRequest) and found:
        violation = {"field": field, "description": rule}
        yield {"@type": f"{_TYPE_URL}BadRequest", "fieldViolations": [violation]}
    if error.retry_after_seconds is not None:
        yield {"@type": f"{_TYPE_URL}RetryInfo", "retryDelay": f"{error.retry_after_seconds:.3f}s"}


def _error_body(error: TranslationError, words: str, status: int) -> dict[str, Any]:
    told = {"code": status, "message": words, "status": error.code.name, "details": list(_details(error, words))}
    return {"error": told}


def _error_body_2(error: TranslationError, words: str, status: int) -> dict[str, Any]:
    told = _error_body(error, words, status)["error"]
    is_refused = error.code is Code.RESOURCE_EXHAUSTED
    reason = "rateLimitExceeded" if is_refused else "invalid" if status < 500 else "backendError"
    return {"error": {**told, "errors": [{"message": words, "domain": "global", "reason": reason}]}}


FRONT = Front(name=GOOGLE, body=_error_body)
FRONT_2 = Front(name=GOOGLE, body=_error_body_2)
