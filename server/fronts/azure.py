"""Azure Translator's API, versions 3.0 and 2026-06-06: its errors, languages, detection and sentences.

`server.fronts.azure_translate` has its translations. Names of parameters and fields may have any case, as with Azure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from babelserve.v1 import translation_pb2 as pb
from server.bundle.codes import CodeTable
from server.errors import Code, InvalidRequest, TranslationError
from server.fronts.front import BodyTooLong, BodyTooSlow, Front, NotOffered, check_text, raise_failure
from server.fronts.languages import directions, is_right_to_left, names_of, standard_code
from server.telemetry.metrics import AZURE
from server.translation.rules import MAX_TEXTS

V3, V2026 = VERSIONS = ("3.0", "2026-06-06")
_SCOPES = {V3: ("translation", "transliteration", "dictionary"), V2026: ("translation", "transliteration", "models")}

# Azure's numbers of errors (https://learn.microsoft.com/azure/ai-services/translator/text-translation/reference).
WRONG, WRONG_SCOPE, WRONG_TEXTS, NO_PAIR, WRONG_VERSION = 400000, 400001, 400005, 400023, 400021
WRONG_SOURCE, WRONG_TARGET, WRONG_OPTION, WRONG_TYPE, WRONG_SCRIPT = 400035, 400036, 400042, 400071, 400006
TOO_LONG, NO_SYSTEM, NO_SCRIPT = 400077, 400079, 400080
_SENTENCES: Mapping[int, str] = {
    400000: "One of the request inputs is not valid.",
    400001: "The scope parameter is invalid.",
    400005: "An input text is missing or invalid.",
    400006: "The combination of language and script is not valid.",
    400021: "The API version parameter is missing or invalid.",
    400023: "One of the specified language pair is not valid.",
    400035: "The source language is not valid.",
    400036: "The target language is not valid.",
    400042: "One of the options specified is not valid.",
    400071: "The value is not valid for TextType.",
    400077: "The maximum request size has been exceeded.",
    400079: "The custom system requested for translation does not exist.",
    400080: "Transliteration is not supported for the language or script.",
    401000: "The request is not authorized because credentials are missing or invalid.",
    403000: "The operation is not allowed.",
    404000: "The requested resource was not found.",
    408002: "Request timed out waiting on incoming stream.",
    429000: "The server rejected the request because the client has exceeded request limits.",
    500000: "An unexpected error occurred.",
    503000: "Service is temporarily unavailable.",
    504000: "The request timed out.",
}
_NUMBERS_OF_FIELDS = {
    "source_language_code": WRONG_SOURCE,
    "target_language_code": WRONG_TARGET,
    "contents": WRONG_TEXTS,
    "mime_type": WRONG_TYPE,
    "formality": WRONG_OPTION,
}
_TEXT = re.compile(r"contents\[(\d+)\]")

Query = Mapping[str, Sequence[str]]  # each parameter, in lower case, with its values


class WrongRequest(InvalidRequest):
    """A request that is refused with one of Azure's numbers.

    Args:
        number: of the error.
        field: as Azure calls it.
        message: as of `InvalidRequest`.
    """

    def __init__(self, number: int, field: str, message: str) -> None:
        super().__init__(field, message)
        self.number = number


def read_query(pairs: Mapping[str, Sequence[str]]) -> Query:
    """Returns parameters by their names in lower case."""
    query: dict[str, list[str]] = {}
    for name, values in pairs.items():
        query.setdefault(name.lower(), []).extend(values)
    return query


def read_version(query: Query) -> str:
    """Returns the version that a request speaks. Raises WrongRequest."""
    version = first(query, "api-version")
    if version not in VERSIONS:
        raise WrongRequest(WRONG_VERSION, "api-version", f"must be {' or '.join(VERSIONS)}")
    return version


def check_is_v3(query: Query) -> None:
    """Checks that a request is one of version 3.0, which alone has its path. Raises TranslationError."""
    if read_version(query) != V3:
        raise NotOffered(f"api-version: must be {V3} for this path, because later versions do not have it")


def first(query: Query, name: str) -> str:
    """Returns the first value of a parameter; empty if it has none."""
    return next(iter(query.get(name.lower(), ())), "")


def read_items(value: Any, name: str = "body") -> list[dict[str, Any]]:
    """Returns the elements of a list of objects, with their names in lower case. Raises WrongRequest."""
    if not isinstance(value, list) or not value:
        raise WrongRequest(WRONG, name, "must be a list of at least one object")
    if len(value) > MAX_TEXTS:  # before they are copied for each target
        raise WrongRequest(TOO_LONG, name, f"must be a list of at most {MAX_TEXTS} objects, not {len(value)}")
    for index, each in enumerate(value):
        if not isinstance(each, dict):
            raise WrongRequest(WRONG, f"{name}[{index}]", "must be an object")
    return [{key.lower(): each for key, each in item.items()} for item in value]


def read_text(item: Mapping[str, Any], place: str) -> str:
    """Returns the text of an element that stands at a place of the body. Raises WrongRequest."""
    return own_text(WRONG_TEXTS, f"{place}.text", item.get("text"))


def own_text(number: int, name: str, value: object) -> str:
    """Returns a value that is a text. Raises WrongRequest with the number."""
    try:
        return check_text(name, value)
    except InvalidRequest as error:
        raise WrongRequest(number, name, str(error).removeprefix(f"{name}: ")) from None


def with_script(language: str, script: str, field: str) -> str:
    """Returns our code of a language, in a script if one is named. Raises WrongRequest."""
    if script and not language:
        raise WrongRequest(WRONG_SCRIPT, field, "must be absent where no language is named")
    return standard_code(language) + (f"-{script}" if script else "")


def refusal(error: TranslationError, places: Sequence[str], source: str, target: str) -> TranslationError:
    """Returns an error of ours in Azure's names.

    Args:
        error: of a request of ours.
        places: of its texts in Azure's request.
        source: Azure's name of the source language.
        target: of the target language.
    """
    words = str(error)
    field, _, rule = words.partition(": ")
    text = _TEXT.match(words)
    name = {"source_language_code": source, "target_language_code": target, "formality": "tone"}.get(field, field)
    if text is not None and int(text[1]) < len(places):
        field, name = "contents", f"{places[int(text[1])]}.text{words[text.end() : len(field)]}"
    if field not in _NUMBERS_OF_FIELDS or error.code is not Code.INVALID_ARGUMENT:
        return error
    wrong = WrongRequest(_NUMBERS_OF_FIELDS[field], name, rule)
    wrong.is_recorded = error.is_recorded
    return wrong


def read_detect(value: Any) -> pb.DetectLanguagesRequest:
    """Returns what a request to detect means: the language of each text. Raises WrongRequest."""
    return pb.DetectLanguagesRequest(contents=_texts(value))


def write_detect(response: pb.DetectLanguagesResponse) -> list[dict[str, Any]]:
    """Returns the language of each text. Raises TranslationError if one is in none that is served."""
    raise_failure(response.detections)
    served = {"isTranslationSupported": True, "isTransliterationSupported": False}
    return [{"language": each.language_code, "score": each.confidence, **served} for each in response.detections]


def read_break(query: Query, value: Any) -> tuple[str, list[str]]:
    """Returns the language and the texts of a request for sentences; an empty language is to be detected.

    Raises:
        WrongRequest: a text is none, or a script has no language.
    """
    return with_script(first(query, "language"), first(query, "script"), "script"), _texts(value)


def break_messages(
    languages: Sequence[str], texts: Sequence[str], served: pb.ListModelsResponse
) -> list[tuple[list[int], pb.TranslateRequest]]:
    """Returns requests whose answers say where sentences are, each with the places of its texts.

    A translation of one token is the least that answers so.

    Args:
        languages: of the texts.
        texts: whose sentences are wanted.
        served: the models.

    Raises:
        WrongRequest: a language is not served.
    """
    known = directions(served)
    table = CodeTable(known)
    places: dict[str, list[int]] = {}
    for index, language in enumerate(languages):
        code = table.find(language)
        if code is None:
            raise WrongRequest(WRONG_SOURCE, "language", f"must be one of {', '.join(sorted(known))}")
        places.setdefault(code, []).append(index)
    return [
        (
            found,
            pb.TranslateRequest(
                contents=[texts[index] for index in found],
                source_language_code=code,
                target_language_code=known[code][0],
                decoding=pb.DecodingOptions(beam_size=1, max_output_tokens=1),
                output=pb.OutputOptions(include_sentences=True, text_once=True),
            ),
        )
        for code, found in places.items()
    ]


def lengths(begins: Iterable[int], num_characters: int) -> list[int]:
    """Returns the lengths of the sentences of a text, which together are the text's.

    White space behind a sentence counts with it, as with Azure.

    Args:
        begins: of the sentences, in code points.
        num_characters: of the text, in code points.
    """
    inner = list(begins)[1:]
    return [end - begin for begin, end in zip([0, *inner], [*inner, num_characters], strict=True)]


def write_break(
    texts: Sequence[str], translations: Sequence[pb.Translation], detected: Sequence[pb.Detection]
) -> list[dict[str, Any]]:
    """Returns the lengths of the sentences of each text. Raises TranslationError if a text failed."""
    raise_failure(translations)
    answer: list[dict[str, Any]] = [
        {"sentLen": lengths((sentence.source_begin for sentence in each.sentences), len(text))}
        for text, each in zip(texts, translations, strict=True)
    ]
    for item, each in zip(answer, detected, strict=False):
        item["detectedLanguage"] = {"language": each.language_code, "score": each.confidence}
    return answer


def write_languages(query: Query, served: pb.ListModelsResponse) -> dict[str, Any]:
    """Returns the languages, with names in English. There is nothing to transliterate or to look up.

    Raises:
        WrongRequest: the version or a scope is unknown.
    """
    version = read_version(query)
    scopes = [each.strip().lower() for each in first(query, "scope").split(",") if each.strip()] or _SCOPES[version]
    if not set(scopes) <= set(_SCOPES[version]):
        raise WrongRequest(WRONG_SCOPE, "scope", f"must be of {', '.join(_SCOPES[version])}")
    answer: dict[str, Any] = {scope: [] if scope == "models" else {} for scope in scopes}
    if "translation" in answer:
        known = directions(served)
        codes = sorted({*known, *(target for targets in known.values() for target in targets)})
        answer["translation"] = {code: _language(code, version) for code in codes}
    return answer


def _language(code: str, version: str) -> dict[str, Any]:
    names = names_of(code)
    facts = {"name": names.english, "nativeName": names.native, "dir": "rtl" if is_right_to_left(code) else "ltr"}
    return facts if version == V3 else {**facts, "models": []}


def _texts(value: Any) -> list[str]:
    return [read_text(item, f"[{index}]") for index, item in enumerate(read_items(value))]


def _number_of(error: TranslationError, status: int) -> int:
    if isinstance(error, WrongRequest):
        return error.number
    if isinstance(error, BodyTooLong | BodyTooSlow):
        return TOO_LONG if isinstance(error, BodyTooLong) else 408002
    if error.code is Code.NOT_FOUND and status == 400:
        return NO_SYSTEM
    return min(status * 1000, 504000)


def _error_body(error: TranslationError, words: str, status: int) -> dict[str, Any]:
    """Returns the answer to an error: Azure's sentence for its number, then ours."""
    number = _number_of(error, status)
    sentence = _SENTENCES.get(number, "")
    return {"error": {"code": number, "message": f"{sentence} {words}".strip()}}


def _error_body_2026(error: TranslationError, words: str, status: int) -> dict[str, Any]:
    """Returns the same with the number as a string, which it is in this version."""
    body = _error_body(error, words, status)
    return {"error": {**body["error"], "code": str(body["error"]["code"])}}


_STATUSES = {Code.NOT_FOUND: 400, Code.UNIMPLEMENTED: 404}
FRONT = Front(name=AZURE, body=_error_body, statuses=_STATUSES)
FRONT_2026 = Front(name=AZURE, body=_error_body_2026, statuses=_STATUSES)
