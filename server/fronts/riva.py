"""NVIDIA Riva's text translation (https://docs.nvidia.com/deeplearning/riva): its messages in ours."""

from collections.abc import Iterator, Mapping, Sequence

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, ModelNotFound
from server.fronts.front import raise_failure
from server.fronts.languages import standard_code
from server.fronts.v1 import riva_pb2 as riva
from server.text.glossary import MAX_TERMS
from server.translation.rules import shown

SERVICE_NAME = "nvidia.riva.nmt.RivaTranslation"
FIELDS: Mapping[str, str] = {
    "contents": "texts",
    "source_language_code": "source_language",
    "target_language_code": "target_language",
    "glossary.terms": "dnt_phrases",
}

_BETWEEN = "##"  # a phrase and what it must become


def read_translate(asked: riva.RivaTranslateTextRequest) -> pb.TranslateRequest:
    """Returns what a request to translate means. Raises InvalidRequest.

    `max_len_variation`, the most tokens by which lengths differ, is read but not used: the server's own limit is the
    same for all callers.
    """
    length = asked.max_len_variation
    if length and not (length.isascii() and length.isdigit()):
        raise InvalidRequest("max_len_variation", "must be a whole number")
    terms = [pb.Term(source=source, target=target) for source, target in _phrases(asked.dnt_phrases)]
    return pb.TranslateRequest(
        contents=asked.texts,
        source_language_code=standard_code(asked.source_language),
        target_language_code=standard_code(asked.target_language),
        model=asked.model,
        glossary=pb.Glossary(terms=terms) if terms else None,
        output=pb.OutputOptions(text_once=True),
    )


def write_translate(
    asked: riva.RivaTranslateTextRequest, response: pb.TranslateResponse
) -> riva.RivaTranslateTextResponse:
    """Returns the answer to a request to translate. Raises TranslationError if a text failed."""
    raise_failure(response.translations)
    translations = [
        riva.RivaTranslation(text=each.text, language=asked.target_language) for each in response.translations
    ]
    return riva.RivaTranslateTextResponse(translations=translations, id=asked.id if asked.HasField("id") else None)


def write_languages(asked: riva.RivaLanguagesRequest, served: pb.ListModelsResponse) -> riva.RivaLanguagesResponse:
    """Returns the languages of a model, or of each model. Raises ModelNotFound."""
    answer = riva.RivaLanguagesResponse()
    for model in served.models:
        if asked.model in ("", model.name):
            pair = answer.languages[model.name]
            pair.src_lang.extend(model.source_language_codes)
            pair.tgt_lang.extend(model.target_language_codes)
    if asked.model and not answer.languages:
        raise ModelNotFound(f"model: {shown(asked.model)} is not served here")
    return answer


def _phrases(strings: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields each phrase and what it must become, which is the phrase itself if nothing else is said.

    NVIDIA's client joins all phrases with commas to one string; others send one phrase in each string.

    Raises:
        InvalidRequest: there are too many.
    """
    num_phrases = len(strings)
    if num_phrases <= MAX_TERMS:
        num_phrases += sum(string.count(",") for string in strings)
    if num_phrases > MAX_TERMS:
        raise InvalidRequest("dnt_phrases", f"must be at most {MAX_TERMS} phrases, not {num_phrases}")
    for phrase in (phrase for string in strings for phrase in string.split(",")):
        source, _, target = (part.strip() for part in phrase.partition(_BETWEEN))
        if source or target:
            yield source, target or source
