"""The terms of a route's last leg: the caller's own, and behind them those of the operator's house glossaries."""

from dataclasses import replace

from server.bundle.languages import LanguagePair
from server.decoding.options import DecodingOptions
from server.errors import InvalidRequest
from server.models.model import Model
from server.telemetry.log import add_facts
from server.text.glossary import Glossary, NamedGlossary
from server.translation.languages import is_same
from server.translation.request import TranslationRequest
from server.translation.rules import check_glossary


def choose_glossary(
    request: TranslationRequest, model: Model, options: DecodingOptions, pair: LanguagePair, first: LanguagePair
) -> Glossary | None:
    """Returns the terms of a leg; None without any.

    House glossaries of other directions are left out. So are all of them where a request may have no terms, and then
    the request's line in the log names them.

    Args:
        request: has the caller's glossary and the house glossaries.
        model: of the leg.
        options: of its search.
        pair: its direction.
        first: the direction of the route's first leg; `pair` itself if the route has no other leg.

    Raises:
        InvalidRequest: the caller's terms cannot be had, or a glossary that it names is of another direction.
    """
    own, has_forms = request.glossary, model.tokenizer.has_forms
    houses = [each for each in request.houses if _is_of(each, replace(pair, source=first.source))]
    if own is None and not houses:
        return None
    try:
        check_glossary(model.manifest, has_forms, options, is_only=first == pair)
    except InvalidRequest:
        if own is None:
            add_facts(houses_left_out=",".join(each.name for each in houses))
            return None
        raise
    own = own or Glossary(())
    check_glossaries(own, pair)
    return own.with_named(list(dict.fromkeys([*own.named, *houses]))) if houses else own


def check_glossaries(glossary: Glossary, pair: LanguagePair) -> None:
    """Checks that the glossaries that a request names are of the direction. Raises InvalidRequest."""
    for each in glossary.named:
        if not _is_of(each, pair):
            message = (
                f"must be from {pair.source} into {pair.target}, not {each.name}, {each.source} into {each.target}"
            )
            raise InvalidRequest("glossary.names", message)


def _is_of(glossary: NamedGlossary, pair: LanguagePair) -> bool:
    return is_same(pair.source, glossary.source) and is_same(pair.target, glossary.target)
