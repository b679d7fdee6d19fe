import pytest

from server.bundle.codes import CodeTable, _parse, canonical_code, few_of, language_of

MANY = [
    *("af", "ar", "arz", "bs", "ckb", "de", "en", "fa", "fr", "hr", "ku"),
    *("mn", "ms", "nb", "nn", "pt", "sq", "sr", "uk", "yue", "zh-Hans", "zh-Hant"),
]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        *[(code, code) for code in MANY],
        ("DE", "de"),
        ("deu", "de"),
        ("ger", "de"),
        ("deu_Latn", "de"),
        ("de-AT", "de"),
        ("en_XX", "en"),
        ("zh", "zh-Hans"),
        ("zh-CN", "zh-Hans"),
        ("zh-TW", "zh-Hant"),
        ("zh_HK", "zh-Hant"),
        ("cmn-TW", "zh-Hant"),
        ("zho_Hant", "zh-Hant"),
        ("zh-yue", "yue"),
        ("no", "nb"),
        ("nno_Latn", "nn"),
        ("pt-BR", "pt"),
        ("pt-PT", "pt"),
        ("arb_Arab", "ar"),
        ("pes", "fa"),
        ("prs", "fa"),
        ("zsm_Latn", "ms"),
        ("khk", "mn"),
        ("kmr", "ku"),
    ],
)
def test_a_code_means_the_same_however_it_is_written(code: str, found: str) -> None:
    assert CodeTable(MANY).find(code) == found


@pytest.mark.parametrize(
    "code",
    ["", "xx", "ru", "sh", "sr-Latn", "sr-ME", "de-Cyrl", "de-1996", "de-x-old", "en-u-ca-buddhist", "i-klingon",
     "english", "d\xe9", "a" * 1000, "de-" * 500, "de\n", " de", "x-de", "und", "mul"],
)  # fmt: skip
def test_what_is_not_there_is_not_taken_for_a_neighbour(code: str) -> None:
    assert CodeTable(MANY).find(code) is None


def test_a_region_is_only_told_apart_where_the_model_does() -> None:
    both, one = CodeTable(["pt-BR", "pt-PT"]), CodeTable(["pt-PT"])

    assert [both.find(code) for code in ("pt", "pt-BR", "pt-PT", "pt-AO")] == ["pt-BR", "pt-BR", "pt-PT", None]
    assert [one.find(code) for code in ("pt", "pt-BR", "pt-PT")] == [None, None, "pt-PT"]


def test_a_general_code_beside_a_regional_one_stands_for_the_rest() -> None:
    table = CodeTable(["en-GB", "en"])

    assert [table.find(code) for code in ("en", "en-GB", "en-US", "en-AU")] == ["en", "en-GB", "en", "en"]


def test_a_code_that_is_none_is_found_as_it_is_written() -> None:
    table = CodeTable(["klingon!", "en"])

    assert (table.find("KLINGON!"), table.find("klingon")) == ("klingon!", None)


@pytest.mark.parametrize(
    ("code", "near"),
    [
        ("sr-Latn", ["sr", "bs", "hr"]),
        ("nno", ["nn", "nb"]),
        ("zh-yue", ["yue", "zh-Hans", "zh-Hant"]),
        ("ru", []),
        ("zh-Hent", ["zh-Hans", "zh-Hant"]),
        ("zhHant", ["zh-Hant", "zh-Hans"]),
        ("", []),
        ("\0" * 1000, []),
    ],
)
def test_near_codes_are_named_nearest_first(code: str, near: list[str]) -> None:
    assert CodeTable(MANY).near(code) == near


def test_of_many_near_codes_some_are_named() -> None:
    assert (
        len(
            CodeTable([f"en-{region}" for region in ["US", "GB", "AU", "CA", "IN", "NZ", "IE", "ZA", "SG", "HK"]]).near(
                "en"
            )
        )
        == 8
    )


def test_canonical_codes() -> None:
    codes = ["deu_Latn", "zho_Hans", "en", "de-AT", "no code", "prs"]

    assert [canonical_code(code) for code in codes] == ["de", "zh-Hans", "en", "de-AT", None, "fa-AF"]


def test_of_what_clients_write_little_is_kept() -> None:
    """Langcodes' own objects are kept for ever, and a code could be a whole text."""
    from langcodes import Language  # noqa: PLC0415

    table = CodeTable(MANY)
    before = len(Language._INSTANCES), len(Language._PARSE_CACHE)
    for number in range(100):
        table.find(f"de-x-{number}")
        table.near(f"fr-x-{number}")

    assert (len(Language._INSTANCES), len(Language._PARSE_CACHE)) == before
    num_read = _parse.cache_info().currsize
    assert table.find("de-" + "x" * 64) is None
    assert _parse.cache_info().currsize == num_read
    for number in range(2000):
        table.find(f"a{number}")
    assert _parse.cache_info().currsize == _parse.cache_info().maxsize


def test_the_language_of_a_code_is_without_script_and_region() -> None:
    codes = ["zh-TW", "deu_Latn", "no", "iw", "yue", "no code"]

    assert [language_of(code) for code in codes] == ["zh", "de", "nb", "he", "yue", None]


def test_of_many_names_a_few_are_named_and_the_others_counted() -> None:
    assert [few_of(MANY[:number], 2) for number in (0, 1, 2, 5)] == ["", "af", "af, ar", "af, ar and 3 more"]
