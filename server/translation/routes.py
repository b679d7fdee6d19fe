"""By which way each text of a request is translated, and from which language where the request leaves that open.

A way has one step, or two over a language between (a pivot) if the operator allows it (`--pivot`), nobody translates
directly and the request names no model. Each step's model is the one that a request for it alone would get.

A source is open if it is empty or "auto". Nothing is detected where there is nothing to choose: the target has one
source only, or the request says nothing at all (empty) and the operator has put a model first that has. "auto" asks to
look at the text wherever there are several.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from server.errors import InvalidRequest
from server.models.catalogue import Catalogue
from server.translation.detection import HINT, DetectedLanguage, LanguageDetection
from server.translation.languages import is_same, known_languages
from server.translation.request import TranslationRequest
from server.translation.routing import choose_model, first_model, source_codes

AUTO = "auto"


class Step(NamedTuple):
    """A model by its name, and the languages that it is asked for, as the request wrote them or models do."""

    model: str
    source: str
    target: str


Steps = tuple[Step, ...]


class Way(NamedTuple):
    """A text's way.

    Attributes:
        steps: one or two; none if its language is not served.
        found: what its language was found to be, or that this is not served; None if nobody had to ask, or it has no
            letter.
    """

    steps: Steps
    found: DetectedLanguage | InvalidRequest | None = None


async def choose_ways(
    catalogue: Catalogue, request: TranslationRequest, pivots: Sequence[str], detection: LanguageDetection
) -> list[Way]:
    """Returns the way of each text, at least one of which has steps.

    Args:
        catalogue: of the models.
        request: any.
        pivots: languages that may be between, the first first.
        detection: is asked if need be.

    Raises:
        ModelNotFound: there is none of that name.
        InvalidRequest: nothing translates that; says what is known. Or no text is in a language that is served.
        NotServing: there is no model yet.
    """
    source = request.source_language_code
    if source and source.lower() != AUTO:
        return [Way(_choose_steps(catalogue, request, pivots))] * len(request.contents)
    blank = replace(request, source_language_code="") if source else request
    codes = _sources(catalogue, request, pivots)
    if len(codes) < 2 or (not source and _has_default(catalogue, request)):
        return [Way(_choose_steps(catalogue, blank, pivots))] * len(request.contents)
    if not detection.is_available:
        raise InvalidRequest("source_language_code", f"is required: {known_languages(codes, '')}; {HINT}")
    found = await detection.detect(request.contents, codes)
    if all(isinstance(each, InvalidRequest) for each in found):
        raise next(each for each in found if isinstance(each, InvalidRequest))
    chosen = dict.fromkeys(each.code for each in found if isinstance(each, DetectedLanguage)) or {codes[0]: None}
    steps = {code: _choose_steps(catalogue, replace(request, source_language_code=code), pivots) for code in chosen}
    default = next(iter(chosen))  # of texts without a letter, which are copied
    return [
        Way(() if isinstance(each, InvalidRequest) else steps[each.code if each else default], each) for each in found
    ]


def _choose_steps(catalogue: Catalogue, request: TranslationRequest, pivots: Sequence[str]) -> Steps:
    source, target = request.source_language_code, request.target_language_code
    if not pivots or not source or request.model:
        return (Step(choose_model(catalogue, request), source, target),)
    direct = first_model(catalogue.models, source, target)
    if direct is not None:
        return (Step(direct, source, target),)
    for pivot in pivots:
        first, second = (first_model(catalogue.models, *pair) for pair in ((source, pivot), (pivot, target)))
        if first is not None and second is not None and not is_same(source, target):
            return Step(first, source, pivot), Step(second, pivot, target)
    codes = _sources(catalogue, request, pivots)
    if codes:
        raise InvalidRequest("source_language_code", f"for this target must be {known_languages(codes, source)}")
    return (Step(choose_model(catalogue, request), source, target),)  # where it is said what is wrong


def _sources(catalogue: Catalogue, request: TranslationRequest, pivots: Sequence[str]) -> tuple[str, ...]:
    """Codes of the languages that the request's target can be reached from."""
    target = request.target_language_code
    models = [each for each in catalogue.models if request.model in ("", each.manifest.name)]
    codes = dict.fromkeys(source_codes(models, target))
    for pivot in pivots if not request.model else ():
        if first_model(models, pivot, target) is not None:
            codes |= dict.fromkeys(code for code in source_codes(models, pivot) if not is_same(code, target))
    return tuple(codes)


def _has_default(catalogue: Catalogue, request: TranslationRequest) -> bool:
    """Whether the operator has put a model first that has but one source for the target."""
    for each in catalogue.models:
        sources = source_codes([each], request.target_language_code)
        if sources:
            return len(sources) == 1 and each.manifest.name in catalogue.preferred and not request.model
    return False
