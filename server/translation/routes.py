"""Chooses the models that translate a text: the table of routes, and each text's route in it.

A route has one leg. It has two legs over a language between (a pivot) if the operator allows it (`--pivot`), no model
translates directly and the request names no model. A leg is translated by the model that the request names, else by
the first model, in the catalogue's order, that translates its direction.

A source language is open if it is empty or "auto". It is detected only if several languages are possible: not if the
target has one source only, and not if the request leaves the source empty, and the first model that has the target has
one source for it and is one that the operator has put first. "auto" detects wherever the target has several sources.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from server.bundle.codes import few_of
from server.bundle.languages import LanguagePair
from server.bundle.manifest import Manifest
from server.errors import InvalidRequest, ModelNotFound
from server.translation.detection import HINT, DetectedLanguage, LanguageDetection
from server.translation.languages import choose_languages, find_languages, find_target, is_same, known_languages
from server.translation.request import TranslationRequest
from server.translation.rules import shown

AUTO = "auto"

_MOST_KEPT = 4096  # routes of a table: those of a few dozen languages, with several spellings of their codes
_MOST_NAMED = 8  # models, in an error


@dataclass(frozen=True, slots=True, eq=False)
class PlannedLeg:
    """One model's part of a route, before the model is borrowed.

    Attributes:
        source, target: codes as the request wrote them; a pivot's code is as the operator wrote it.
        pair: the direction, by the model's codes.
    """

    manifest: Manifest
    source: str
    target: str
    pair: LanguagePair


class Route(NamedTuple):
    """The table's entry for the model, source and target that a request names.

    Attributes:
        legs: one, or two over a pivot; none if the source language must be detected.
        sources: then, the codes of the languages among which it is detected.
    """

    legs: tuple[PlannedLeg, ...]
    sources: tuple[str, ...] = ()


class TextRoute(NamedTuple):
    """The route of one text.

    Attributes:
        legs: one or two; none if no model translates its language.
        found: the detected language, or the error that it is not served. None if no language had to be detected, or the
            text has no letter.
    """

    legs: tuple[PlannedLeg, ...]
    found: DetectedLanguage | InvalidRequest | None = None


class Routes:
    """The table of all routes. It holds as long as the same models are served.

    Codes can be written in many ways, so a route is found when a request first asks for it, and is then kept. A refusal
    is not kept, because any text can stand in the place of a code.

    Args:
        manifests: of the models, in the order in which they are asked; at least one.
        preferred: names of the models that the operator has put first.
        pivots: codes of languages between, in the order in which they are tried.

    Attributes:
        manifests: as given; the caller compares it with the manifests that are served.
        find: see `_find`; it keeps the routes that it has found.
    """

    def __init__(self, manifests: Sequence[Manifest], preferred: Sequence[str], pivots: Sequence[str]) -> None:
        self.manifests = manifests
        self._preferred = preferred
        self._pivots = pivots
        self.find = functools.lru_cache(_MOST_KEPT)(self._find)

    def _find(self, model: str, source: str, target: str) -> Route:
        """Returns the route that a request means.

        Args:
            model: a name, or empty for the server's choice.
            source: a code, or empty or "auto" for an open one.
            target: a code.

        Raises:
            ModelNotFound: no model has that name.
            InvalidRequest: no model translates the direction, or several do from different languages. The error says
                which languages are known.
        """
        if source and source.lower() != AUTO:
            return Route(self._legs(model, source, target))
        sources = self._sources(model, target)
        if len(sources) < 2 or (not source and not model and self._has_default(target)):
            manifest = self._named(model) if model else self._having(target)[0]
            return Route((_leg(manifest, "", target),))
        return Route((), sources)

    def _legs(self, model: str, source: str, target: str) -> tuple[PlannedLeg, ...]:
        if model:
            return (_leg(self._named(model), source, target),)
        direct = self._first_leg(source, target)
        if direct is not None:
            return (direct,)
        for pivot in self._pivots:
            first, second = self._first_leg(source, pivot), self._first_leg(pivot, target)
            if first is not None and second is not None and not is_same(source, target):
                return first, second
        sources = self._sources(model, target)
        if len(self.manifests) == 1 and not (self._pivots and sources):
            return (_leg(self.manifests[0], source, target),)  # it raises the error that says what is wrong
        self._having(target)
        raise InvalidRequest("source_language_code", f"for this target must be {known_languages(sources, source)}")

    def _first_leg(self, source: str, target: str) -> PlannedLeg | None:
        """Returns the leg of the first model that translates between two languages, or None."""
        for manifest in self.manifests:
            pair = find_languages(manifest, source, target)
            if pair is not None:
                return PlannedLeg(manifest, source, target, pair)
        return None

    def _sources(self, model: str, target: str) -> tuple[str, ...]:
        """Returns the codes of the languages from which the target can be reached."""
        codes = dict.fromkeys(_source_codes((each for each in self.manifests if model in ("", each.name)), target))
        for pivot in self._pivots if not model else ():
            if self._first_leg(pivot, target) is not None:
                before = _source_codes(self.manifests, pivot)
                codes |= dict.fromkeys(code for code in before if not is_same(code, target))
        return tuple(codes)

    def _has_default(self, target: str) -> bool:
        """Whether the operator has put a model first that has only one source for the target."""
        for each in self.manifests:
            sources = _source_codes([each], target)
            if sources:
                return len(sources) == 1 and each.name in self._preferred
        return False

    def _named(self, name: str) -> Manifest:
        for each in self.manifests:
            if each.name == name:
                return each
        names = [each.name for each in self.manifests]
        verb = "is" if len(names) == 1 else "are"
        raise ModelNotFound(f"model: {shown(name)} is not served here; {few_of(names, _MOST_NAMED)} {verb}")

    def _having(self, target: str) -> list[Manifest]:
        """Returns the models that have the target. Raises InvalidRequest if none has it."""
        having = [each for each in self.manifests if find_target(each, target) is not None]
        if having:
            return having
        known = known_languages(tuple(sorted({code for each in self.manifests for code in each.target_codes})), target)
        raise InvalidRequest("target_language_code", f"must be {known}" if target else f"is required: {known}")


async def choose_routes(
    table: Routes, request: TranslationRequest, detection: LanguageDetection, deadline: float = math.inf
) -> list[TextRoute]:
    """Returns the route of each text. At least one of them has legs.

    Args:
        table: the table of all routes.
        request: any request.
        detection: is asked if the source language is open and several are possible.
        deadline: instant of `time.monotonic`, until which it may take.

    Raises:
        ModelNotFound: no model has the name that the request names.
        InvalidRequest: no model translates the direction, with the languages that are known; or no text is in a
            language that is served.
        PreconditionFailed: the languages cannot be detected here.
        Overloaded: too much is being split or detected already.
        DeadlineExceeded: the deadline passed.
    """
    model, target = request.model, request.target_language_code
    legs, sources = table.find(model, request.source_language_code, target)
    if legs:
        return [TextRoute(legs)] * len(request.contents)
    if not detection.is_available:
        raise InvalidRequest("source_language_code", f"is required: {known_languages(sources, '')}; {HINT}")
    found = await detection.detect(request.contents, sources, request.mime_type, deadline)
    if all(isinstance(each, InvalidRequest) for each in found):
        raise next(each for each in found if isinstance(each, InvalidRequest))
    chosen = dict.fromkeys(each.code for each in found if isinstance(each, DetectedLanguage)) or {sources[0]: None}
    routes = {code: table.find(model, code, target).legs for code in chosen}
    default = next(iter(chosen))  # the route of texts without a letter, which are copied
    return [
        TextRoute(() if isinstance(each, InvalidRequest) else routes[each.code if each else default], each)
        for each in found
    ]


def _leg(manifest: Manifest, source: str, target: str) -> PlannedLeg:
    return PlannedLeg(manifest, source, target, choose_languages(manifest, source, target))


def _source_codes(manifests: Iterable[Manifest], target: str) -> tuple[str, ...]:
    """Returns the languages, each once, that some models translate from into a request's target."""
    codes: dict[str, None] = {}
    for each in manifests:
        into = find_target(each, target)
        if into is not None:
            codes |= dict.fromkeys(each.sources_of(into))
    return tuple(codes)
