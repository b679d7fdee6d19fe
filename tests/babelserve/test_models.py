import dataclasses

import pytest

from babelserve.models import glossary_table, only_target, table
from babelserve.results import ModelInfo
from babelserve.terms import GlossaryInfo

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


def test_names_cannot_move_in_the_table_nor_make_lines_of_their_own() -> None:
    hostile = dataclasses.replace(PAIRS, name="a\x1b[2J\n", version="\r1", language_pairs=(("en", "d\x9be"),))
    pivoted = dataclasses.replace(PAIRS, name="b", language_pairs=(("d\x9be", "\x07"),))

    lines = table([hostile, pivoted], ["d\x9be"]).split("\n")

    assert lines[1:] == [
        r"a\x1b[2J\n  \r1      cpu-int8  to 8  yes        en to d\x9be",
        r"b           1.1      cpu-int8  to 8  yes        d\x9be to \x07",
        r"over d\x9be: en to \x07",
    ]


def test_the_table_of_glossaries_has_a_line_for_each() -> None:
    info = GlossaryInfo(name="it", source="en", target="d\x9be", num_terms=12345, version="0123456789ab")

    assert glossary_table([info, dataclasses.replace(info, name="lawyers", num_terms=1)]).splitlines() == [
        "NAME     VERSION       TERMS  LANGUAGES",
        r"it       0123456789ab  12345  en to d\x9be",
        r"lawyers  0123456789ab  1      en to d\x9be",
    ]


def test_one_long_name_does_not_make_all_lines_long() -> None:
    long = dataclasses.replace(PAIRS, name="x" * 100_000)

    text = table([long, *[PAIRS] * 1_000])

    assert "x" * 100_000 in text
    assert len(text) < 300_000


def test_no_list_of_languages_is_too_long() -> None:
    """Lists of so many languages, whose pairs nobody could write down, and as many pivots."""
    many = 300_000
    codes = tuple(map(str, range(many)))
    any_to_any = dataclasses.replace(MANY, source_languages=codes, target_languages=codes)
    in_and_out = dataclasses.replace(PAIRS, language_pairs=(*((code, "en") for code in codes[:10_000]),))
    out = dataclasses.replace(PAIRS, language_pairs=tuple(("en", f"to {code}") for code in codes[:10_000]))

    assert " and 299992 more to any of 0, 1, " in table([any_to_any], codes)
    assert table([in_and_out, out], ["en"] * many).splitlines()[-1].startswith("over en: 0 to to 0, ")
