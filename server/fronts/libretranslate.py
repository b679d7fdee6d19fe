"""LibreTranslate's API (https://docs.libretranslate.com): its requests and answers, in our messages and its own words.

It is that of LibreTranslate 1.9. Translations are not unescaped, because that would turn text in them into live HTML.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from babelserve.v1 import translation_pb2 as pb
from server.errors import Code, InvalidRequest, TranslationError
from server.fronts.front import Front, check_text, check_texts, raise_failure
from server.fronts.languages import directions, names_of, standard_code
from server.telemetry.metrics import LIBRETRANSLATE

AUTO = "auto"
_MOST_ALTERNATIVES = 7  # with the best, as many as most models search for at once. Half, and clients that ask for 5 are
# refused. Twice, and most models refuse instead.
_FORMATS = {"": "text/plain", "text": "text/plain", "html": "text/html"}
_LEAST_BEAM = 4  # with alternatives, so that they are found by a server whose own beam is narrower
_LANGUAGE_FIELDS = {"source_language_code": "source", "target_language_code": "target"}

Fields = Mapping[str, Sequence[Any]]  # each name with its values, of JSON or of a form


class WrongRequest(InvalidRequest):
    """A request that LibreTranslate refuses, in its words.

    Args:
        field: as LibreTranslate calls it.
        words: that LibreTranslate has for it.
    """

    def __init__(self, field: str, words: str) -> None:
        super().__init__(field, "is refused by LibreTranslate too")
        self.words = words


@dataclass(frozen=True, slots=True, kw_only=True)
class Translate:
    """A request to translate.

    Attributes:
        message: what it means.
        source: as the request has it.
        target: likewise.
        is_list: whether the texts came as a list, so that the answer has lists.
        num_alternatives: other translations that are wanted of each text.
    """

    message: pb.TranslateRequest
    source: str
    target: str
    is_list: bool
    num_alternatives: int


def read_key(fields: Fields) -> str | None:
    """Returns the API key that came with the fields; None if none did."""
    return _text(fields, "api_key") or None


def read_translate(fields: Fields) -> Translate:
    """Returns what a request to translate means. Raises InvalidRequest."""
    texts, is_list = _read_texts(fields)
    source, target = _required(fields, "source"), _required(fields, "target")
    num_alternatives = _read_alternatives(fields)
    kind = _text(fields, "format")
    if kind not in _FORMATS:
        raise WrongRequest("format", f"{kind[:32]} format is not supported")
    message = pb.TranslateRequest(
        contents=texts,
        source_language_code=standard_code(source),
        target_language_code=standard_code(target),
        mime_type=_FORMATS[kind],
        output=pb.OutputOptions(text_once=True),
    )
    if num_alternatives and kind != "html":  # of which LibreTranslate has none either
        message.decoding.num_hypotheses = num_alternatives + 1
        message.decoding.beam_size = max(_LEAST_BEAM, num_alternatives + 1)
    return Translate(message=message, source=source, target=target, is_list=is_list, num_alternatives=num_alternatives)


def read_translate_file(fields: Fields) -> Translate:
    """Returns what a request to translate a file means; the file is not in the message. Raises InvalidRequest."""
    source, target = _required(fields, "source"), _required(fields, "target")
    message = pb.TranslateRequest(
        source_language_code="" if source == AUTO else standard_code(source),
        target_language_code=standard_code(target),
    )
    return Translate(message=message, source=source, target=target, is_list=False, num_alternatives=0)


def refusal(error: TranslationError, asked: Translate) -> TranslationError:
    """Returns the error that LibreTranslate would answer instead of ours: of a language, the one it has."""
    name = _LANGUAGE_FIELDS.get(error.field) if isinstance(error, InvalidRequest) else None
    if name is None:
        return error
    wrong = WrongRequest(name, f"{asked.source if name == 'source' else asked.target} is not supported")
    wrong.is_recorded = error.is_recorded
    return wrong


def write_translate(response: pb.TranslateResponse, asked: Translate) -> dict[str, Any]:
    """Returns the answer to a request to translate. Raises TranslationError if a text failed."""
    raise_failure(response.translations)
    texts = [each.text for each in response.translations]
    answer: dict[str, Any] = {"translatedText": texts if asked.is_list else texts[0]}
    if asked.source == AUTO:
        detected = [_detected(each, response.source_language_code) for each in response.translations]
        answer["detectedLanguage"] = detected if asked.is_list else detected[0]
    if asked.num_alternatives:
        others = [_alternatives(each) for each in response.translations]
        answer["alternatives"] = others if asked.is_list else others[0]
    return answer


def write_languages(served: pb.ListModelsResponse) -> list[dict[str, Any]]:
    """Returns the languages, each with those that it can be translated into."""
    known = directions(served)
    codes = dict.fromkeys([*known, *(target for targets in known.values() for target in targets)])
    return [
        {"code": code, "name": names_of(code).english, "targets": sorted(known.get(code, ()))} for code in sorted(codes)
    ]


def write_settings(served: pb.ListModelsResponse, extensions: Iterable[str], *, asks_for_key: bool) -> dict[str, Any]:
    """Returns what LibreTranslate's page asks a server for.

    Args:
        served: the models.
        extensions: of the files that are translated; the first must be of plain text.
        asks_for_key: whether callers need one.
    """
    targets = next(iter(directions(served).values()), [])
    target = targets[0] if targets else ""
    return {
        "apiKeys": asks_for_key,
        "charLimit": -1,
        "filesTranslation": True,
        "frontendTimeout": 500,
        "keyRequired": asks_for_key,
        "language": {
            "source": {"code": AUTO, "name": "Auto Detect"},
            "target": {"code": target, "name": names_of(target).english},
        },
        "suggestions": False,
        "supportedFilesFormat": [f".{each}" for each in extensions],
    }


def read_detect(fields: Fields) -> pb.DetectLanguagesRequest:
    """Returns what a request to detect means: one language of all texts together. Raises InvalidRequest."""
    texts, _ = _read_texts(fields)
    return pb.DetectLanguagesRequest(contents=["\n".join(texts)])


def write_detect(response: pb.DetectLanguagesResponse) -> list[dict[str, Any]]:
    """Returns the detected language, alone, as LibreTranslate does for one that it is sure of."""
    raise_failure(response.detections)
    return [{"confidence": 100 * each.confidence, "language": each.language_code} for each in response.detections]


def _read_texts(fields: Fields) -> tuple[list[str], bool]:
    """Returns the texts, and whether they came as a list. A form may name its field once for each text."""
    values = fields.get("q", ())
    value = values[0] if len(values) == 1 else list(values)
    if not value:
        raise WrongRequest("q", "Invalid request: missing q parameter")
    return (check_texts("q", value), True) if isinstance(value, list) else ([check_text("q", value)], False)


def _read_alternatives(fields: Fields) -> int:
    value = next(iter(fields.get("alternatives", ())), None) or 0
    try:
        number = max(0, int(value))
    except (TypeError, ValueError, OverflowError):
        raise WrongRequest("alternatives", "Invalid request: alternatives parameter is not a number") from None
    if number > _MOST_ALTERNATIVES:
        words = f"Invalid request: alternatives parameter must be <= {_MOST_ALTERNATIVES}"
        raise WrongRequest("alternatives", words)
    return number


def _required(fields: Fields, name: str) -> str:
    value = _text(fields, name)
    if not value:
        raise WrongRequest(name, f"Invalid request: missing {name} parameter")
    return value


def _text(fields: Fields, name: str) -> str:
    value = next(iter(fields.get(name, ())), None)
    return "" if value is None else check_text(name, value)


def _detected(translation: pb.Translation, source: str) -> dict[str, Any]:
    """Returns the language of a text. Where only one was possible, its confidence is 0: nothing was detected."""
    legs = translation.route
    code = translation.detected_language_code or source or (legs[0].source_language_code if legs else "")
    return {"confidence": 100 * translation.detection_confidence, "language": code}


def _alternatives(translation: pb.Translation) -> list[str]:
    """Returns the other translations of a text, each once."""
    others = dict.fromkeys(each.text for each in translation.hypotheses[1:])
    others.pop(translation.text, None)
    return list(others)


def _error_body(error: TranslationError, words: str, _: int) -> dict[str, str]:
    if isinstance(error, WrongRequest):
        words = error.words
    elif error.code is Code.UNAUTHENTICATED:
        words = "Invalid API key"
    elif error.code is Code.RESOURCE_EXHAUSTED:
        words = f"Slowdown: {words}"
    return {"error": words}


FRONT = Front(name=LIBRETRANSLATE, body=_error_body, statuses={Code.UNAUTHENTICATED: 403})
