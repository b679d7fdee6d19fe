"""Which model a request goes to: the one that it names, else the first that translates what it asks for.

First is who comes first in the catalogue, by the operator's order. A source language that is left open is not guessed
here (`server.translation.routes` has it detected): the request goes to the first model that has the target if the
operator has put that one first by name, or if all models that have the target have it from one language.
"""

from collections.abc import Sequence

from server.errors import InvalidRequest, ModelNotFound
from server.models.catalogue import Catalogue
from server.models.model import ServedModel
from server.translation.languages import choose_languages, find_target, known_languages
from server.translation.request import TranslationRequest
from server.translation.rules import shown

_MOST_NAMED = 8  # models, in an error


def choose_model(catalogue: Catalogue, request: TranslationRequest) -> str:
    """Returns the name of the model that a request goes to; the only one there is, whatever its languages are.

    Raises:
        ModelNotFound: there is none of that name.
        InvalidRequest: no model translates that, or several do from different languages; says which are known.
        NotServing: there is no model yet.
    """
    models = catalogue.models
    source, target = request.source_language_code, request.target_language_code
    if request.model:
        return _named(models, request.model, source, target)
    if len(models) == 1:
        return models[0].manifest.name
    having = [each for each in models if target and find_target(each.manifest, target) is not None]
    if not having:
        raise InvalidRequest("target_language_code", _unknown_target(models, target))
    if not source:
        return _of_open_source(catalogue, having, target)
    first = first_model(having, source, target)
    if first is not None:
        return first
    codes = source_codes(having, target)
    raise InvalidRequest("source_language_code", f"for this target must be {known_languages(codes, source)}")


def first_model(models: Sequence[ServedModel], source: str, target: str) -> str | None:
    """Returns the name of the first of some models that translates between two languages, or None."""
    for each in models:
        try:
            choose_languages(each.manifest, source, target)
        except InvalidRequest:
            continue
        return each.manifest.name
    return None


def source_codes(models: Sequence[ServedModel], target: str) -> tuple[str, ...]:
    """Returns the languages, each once, that some models translate from into what a request calls its target."""
    codes: dict[str, None] = {}
    for each in models:
        into = find_target(each.manifest, target) if target else None
        if into is not None:
            codes |= dict.fromkeys(each.manifest.sources_of(into))
    return tuple(codes)


def _named(models: Sequence[ServedModel], name: str, source: str, target: str) -> str:
    names = [each.manifest.name for each in models]
    if name not in names:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        verb = "is" if len(names) == 1 else "are"
        served = ", ".join(names[:_MOST_NAMED])
        raise ModelNotFound(f"model: {shown(name)} is not served here; {served}{more} {verb}")
    choose_languages(models[names.index(name)].manifest, source, target)  # before it is loaded for nothing
    return name


def _of_open_source(catalogue: Catalogue, having: Sequence[ServedModel], target: str) -> str:
    first, sources = having[0].manifest, source_codes(having, target)
    if first.name not in catalogue.preferred and len(sources) > 1:
        raise InvalidRequest("source_language_code", f"is required: {known_languages(sources, '')}")
    return first.name


def _unknown_target(models: Sequence[ServedModel], target: str) -> str:
    codes = tuple(sorted({code for each in models for code in each.manifest.target_codes}))
    return f"must be {known_languages(codes, target)}" if target else f"is required: {known_languages(codes, '')}"
