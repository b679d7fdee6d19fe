"""Google's Cloud Translation API v3 (https://cloud.google.com/translate/docs/reference/rpc): its messages in ours.

v3beta1 has the same fields with the same numbers, and is served too.

Projects and locations are not looked at: every caller sees all models and glossaries of this server.
"""

from collections.abc import Iterable, Mapping

from babelserve.v1 import translation_pb2 as pb
from server.errors import GlossaryNotFound, InvalidRequest, ModelNotFound
from server.fronts.front import raise_failure
from server.fronts.languages import directions, names_of, standard_code
from server.fronts.v1 import google_pb2 as google
from server.translation.rules import shown

SERVICE_NAMES = (
    "google.cloud.translation.v3.TranslationService",
    "google.cloud.translation.v3beta1.TranslationService",
)
_GLOSSARY = "glossary_config.glossary"
FIELDS: Mapping[str, str] = {"glossary.names[0]": _GLOSSARY, "glossary.names": _GLOSSARY}
DETECT_FIELDS: Mapping[str, str] = {"contents[0]": "content"}

_HTML = "text/html"  # what Google takes a text for whose type the request leaves open
_GENERAL = frozenset({"", "nmt", "general/nmt", "general/base"})  # Google's own models, which a caller does not choose


def read_translate(asked: google.TranslateTextRequest) -> pb.TranslateRequest:
    """Returns what a request to translate means. Raises InvalidRequest."""
    if asked.transliteration_config.enable_transliteration:
        raise InvalidRequest("transliteration_config", "must be absent: this server does not transliterate")
    message = pb.TranslateRequest(
        contents=asked.contents,
        mime_type=asked.mime_type or _HTML,
        source_language_code=standard_code(asked.source_language_code),
        target_language_code=standard_code(asked.target_language_code),
        model=_model(asked.model),
        output=pb.OutputOptions(text_once=True),
    )
    if asked.HasField("glossary_config"):
        config = asked.glossary_config
        if not config.glossary:
            raise InvalidRequest(_GLOSSARY, "is required")
        message.glossary.names.append(_last(config.glossary))
        message.glossary.ignore_case = config.ignore_case
    return message


def write_translate(asked: google.TranslateTextRequest, response: pb.TranslateResponse) -> google.TranslateTextResponse:
    """Returns the answer to a request to translate. Raises TranslationError if a text failed.

    Where the request names a glossary, both lists have the translations with it.
    """
    raise_failure(response.translations)
    translations = [
        google.Translation(
            translated_text=each.text,
            model=asked.model,
            detected_language_code="" if asked.source_language_code else _source(each, response),
        )
        for each in response.translations
    ]
    answer = google.TranslateTextResponse(translations=translations)
    if asked.HasField("glossary_config"):
        for each in translations:
            each.glossary_config.CopyFrom(asked.glossary_config)
        answer.glossary_translations.extend(translations)
    return answer


def read_detect(asked: google.DetectLanguageRequest) -> pb.DetectLanguagesRequest:
    """Returns what a request to detect means. Raises InvalidRequest."""
    if not asked.content:
        raise InvalidRequest("content", "is required")
    return pb.DetectLanguagesRequest(contents=[asked.content], mime_type=asked.mime_type or _HTML)


def write_detect(response: pb.DetectLanguagesResponse) -> google.DetectLanguageResponse:
    """Returns the answer to a request to detect. Raises TranslationError if no served language was found."""
    raise_failure(response.detections)
    languages = [
        google.DetectedLanguage(language_code=each.language_code, confidence=each.confidence)
        for each in response.detections
    ]
    return google.DetectLanguageResponse(languages=languages)


def write_languages(
    asked: google.GetSupportedLanguagesRequest, served: pb.ListModelsResponse
) -> google.SupportedLanguages:
    """Returns the languages of a model, or of all models; with English names if the request asks for names.

    Raises:
        ModelNotFound: the request names a model that is not served.
    """
    name = _model(asked.model)
    if name:
        models = [model for model in served.models if model.name == name]
        if not models:
            raise ModelNotFound(f"model: {shown(name)} is not served here")
        served = pb.ListModelsResponse(models=models)
    known = directions(served)
    targets = {target for each in known.values() for target in each}
    languages = [
        google.SupportedLanguage(
            language_code=code,
            display_name=names_of(code).english if asked.display_language_code else "",
            support_source=code in known,
            support_target=code in targets,
        )
        for code in sorted(targets.union(known))
    ]
    return google.SupportedLanguages(languages=languages)


def write_glossaries(
    asked: google.ListGlossariesRequest, loaded: pb.ListGlossariesResponse
) -> google.ListGlossariesResponse:
    """Returns a page of the glossaries. Raises InvalidRequest."""
    if asked.filter:
        raise InvalidRequest("filter", "must be empty: this server lists all glossaries")
    if asked.page_size < 0:
        raise InvalidRequest("page_size", f"must be at least 0, not {asked.page_size}")
    begin = _page_begin(asked.page_token)
    end = begin + (asked.page_size or len(loaded.glossaries))
    return google.ListGlossariesResponse(
        glossaries=_glossaries(asked.parent, loaded.glossaries[begin:end]),
        next_page_token=str(end) if end < len(loaded.glossaries) else "",
    )


def write_glossary(asked: google.GetGlossaryRequest, loaded: pb.ListGlossariesResponse) -> google.Glossary:
    """Returns the glossary that a request names. Raises GlossaryNotFound."""
    parent, _, name = asked.name.rpartition("/glossaries/")
    for found in _glossaries(parent, (each for each in loaded.glossaries if each.name == name)):
        return found
    raise GlossaryNotFound("name: no such glossary is loaded here")


def _model(path: str) -> str:
    """Returns the name of a model of this server; empty for a choice that is left to it.

    Args:
        path: such as projects/P/locations/L/models/general/nmt, or what stands after "models/".
    """
    name = path.rpartition("models/")[2]
    return "" if name in _GENERAL else name


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _source(translation: pb.Translation, response: pb.TranslateResponse) -> str:
    """Returns the language that a text is in, which its request left open."""
    route = translation.route[0].source_language_code if translation.route else ""
    return translation.detected_language_code or response.source_language_code or route


def _page_begin(token: str) -> int:
    """Returns the place of the first glossary of a page."""
    if not token:
        return 0
    if not (token.isascii() and token.isdigit() and len(token) <= 9):
        raise InvalidRequest("page_token", "must be a next_page_token of this server")
    return int(token)


def _glossaries(parent: str, infos: Iterable[pb.GlossaryInfo]) -> list[google.Glossary]:
    return [
        google.Glossary(
            name=f"{parent}/glossaries/{info.name}",
            display_name=info.name,
            language_pair=google.Glossary.LanguageCodePair(
                source_language_code=info.source_language_code, target_language_code=info.target_language_code
            ),
            entry_count=info.num_terms,
        )
        for info in infos
    ]
