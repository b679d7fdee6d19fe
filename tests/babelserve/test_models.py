import dataclasses

import pytest

from babelserve.models import only_target, table
from babelserve.results import ModelInfo

PAIRS = ModelInfo(
    name="pairs",
    version="1.1",
    variant="cpu-int8",
    language_pairs=(("en", "de"), ("fr", "it")),
    max_beam_size=8,
    max_source_tokens=256,
    max_target_tokens=256,
    has_shortlist=True,
    source_languages=("en", "fr"),
    target_languages=("de", "it"),
)
MANY = dataclasses.replace(
    PAIRS,
    name="many",
    language_pairs=(),
    has_shortlist=False,
    source_languages=tuple(f"s{number}" for number in range(10)),
    target_languages=("de", "pl"),
)


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("fr", "it")])
def test_a_source_may_tell_the_target(source: str, target: str) -> None:
    assert only_target([PAIRS], model=None, source=source) == target


def test_several_targets_are_named() -> None:
    for source in (None, "xx"):
        with pytest.raises(ValueError, match=r"^a target language must be named; the server has: de, it$"):
            only_target([PAIRS], model="pairs", source=source)
    with pytest.raises(ValueError, match="the server has: de, it, pl"):
        only_target([PAIRS, MANY], model=None, source=None)


def test_a_model_that_is_not_there_is_said_to_be_not() -> None:
    with pytest.raises(ValueError, match=r"^the server has no model nope; it has: pairs, many$"):
        only_target([PAIRS, MANY], model="nope", source=None)


def test_the_table_has_a_line_for_each_model() -> None:
    assert table([PAIRS, MANY]).splitlines() == [
        "NAME   VERSION  VARIANT   BEAM  SHORTLIST  LANGUAGES",
        "pairs  1.1      cpu-int8  to 8  yes        en to de, fr to it",
        "many   1.1      cpu-int8  to 8  no         any of s0, s1, s2, s3, s4, s5, s6, s7 and 2 more to any of de, pl",
    ]


def test_the_pairs_that_a_pivot_adds_have_a_line_below_the_table() -> None:
    models = [dataclasses.replace(PAIRS, language_pairs=(pair,)) for pair in (("fr", "en"), ("en", "de"), ("en", "fr"))]
    any_to_any = dataclasses.replace(MANY, source_languages=("de", "en"), target_languages=("de", "en", "pl"))

    assert table(models, ["nl", "en"]).splitlines()[4:] == ["over en: fr to de"]
    assert table([*models, any_to_any], ["en", "de"]).splitlines()[5:] == ["over en: fr to de, fr to pl, de to fr"]
    assert len(table(models).splitlines()) == 4
