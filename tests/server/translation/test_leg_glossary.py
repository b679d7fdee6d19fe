"""The terms of a leg: the caller's, and those of house glossaries."""

import contextlib
import dataclasses
import time

import pytest

from server.bundle.languages import LanguagePair
from server.decoding.options import DecodingOptions, Sampling
from server.errors import InvalidRequest
from server.models.model import Model
from server.telemetry.log import begin_request, facts
from server.text.glossary import Glossary, NamedGlossary
from server.text.term_table import Term, TermTable
from server.translation.leg_glossary import check_glossaries, choose_glossary
from server.translation.request import TranslationRequest

EN_DE = LanguagePair(source="en", target="de")
HOUSE, OTHER = (
    NamedGlossary(name, "en", target, "0", TermTable([Term(("dog",), (f"{name} dog",))]))
    for name, target in (("house", "de"), ("other", "fr"))
)


def request(glossary: Glossary | None = None, *houses: NamedGlossary) -> TranslationRequest:
    now = time.monotonic()
    return TranslationRequest(contents=["A dog."], glossary=glossary, houses=houses, arrived=now, deadline=now + 1)


def found(glossary: Glossary | None) -> list[str]:
    assert glossary is not None
    return [each.term.targets[0] for each in glossary.find("A dog")]


def test_houses_of_the_direction_hold_behind_the_callers_terms(model: Model) -> None:
    own = Glossary([Term(("dog",), ("Hund",))])
    options = DecodingOptions()

    alone = choose_glossary(request(None, OTHER, HOUSE), model, options, EN_DE, EN_DE)
    both = choose_glossary(request(own, HOUSE), model, options, EN_DE, EN_DE)
    named = choose_glossary(request(own.with_named([HOUSE]), HOUSE), model, options, EN_DE, EN_DE)

    assert found(alone) == ["house dog"]
    assert found(both) == ["Hund"]
    assert named is not None
    assert named.named == (HOUSE,)
    assert choose_glossary(request(own, OTHER), model, options, EN_DE, EN_DE) is own
    assert choose_glossary(request(None, OTHER), model, options, EN_DE, EN_DE) is None


@pytest.mark.parametrize(
    ("options", "pair", "first"),
    [
        (DecodingOptions(sampling=Sampling(seed=1)), EN_DE, EN_DE),
        (DecodingOptions(), LanguagePair(source="fr", target="de"), LanguagePair(source="en", target="fr")),
    ],
)
def test_where_no_terms_can_be_houses_do_not_hold_and_the_log_names_them(
    model: Model, options: DecodingOptions, pair: LanguagePair, first: LanguagePair
) -> None:
    own = Glossary([Term(("dog",), ("Hund",))])
    begin_request("1")

    assert choose_glossary(request(None, OTHER, HOUSE), model, options, pair, first) is None
    assert facts() == {"houses_left_out": "house"}
    with pytest.raises(InvalidRequest, match="glossary"):
        choose_glossary(request(own, HOUSE), model, options, pair, first)


def test_a_model_with_a_narrow_beam_has_no_houses(model: Model) -> None:
    limits = dataclasses.replace(model.manifest.limits, max_beam_size=1)
    narrow = dataclasses.replace(model, manifest=dataclasses.replace(model.manifest, limits=limits))

    assert choose_glossary(request(None, HOUSE), narrow, DecodingOptions(), EN_DE, EN_DE) is None


@pytest.mark.parametrize(
    ("source", "target", "is_good"),
    [
        ("en", "pt-BR", True),
        ("en-GB", "pt", True),
        ("eng", "pt_BR", True),
        ("en", "pt-PT", False),
        ("pt-BR", "en", False),
        ("de", "pt-BR", False),
    ],
)
def test_a_named_glossary_must_be_of_the_direction(source: str, target: str, *, is_good: bool) -> None:
    glossary = Glossary([]).with_named([NamedGlossary("it", source, target, "0", TermTable([]))])
    pair = LanguagePair(source="en", target="pt-BR")

    message = rf"^glossary.names: must be from en into pt-BR, not it, {source} into {target}$"
    with contextlib.nullcontext() if is_good else pytest.raises(InvalidRequest, match=message):
        check_glossaries(glossary, pair)
