from pathlib import Path

import pytest

from export.imports.languages import bcp47, by_code, choose, choose_among, joined_pair, language_pairs, pair_in_name
from export.imports.report import Report


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("de", "de"),
        ("deu", "de"),
        ("deu_Latn", "de"),
        ("zho_Hant", "zh-Hant"),
        ("pt_XX", "pt"),
        ("fr_BE", "fr-BE"),
        ("mul", None),
        ("ROMANCE", None),
        ("gmw", None),
        ("", None),
        ("../x", None),
        ("english", None),
    ],
)
def test_names_of_models_become_codes(name: str, code: str | None) -> None:
    assert bcp47(name) == code


def test_two_names_of_one_code_are_noted() -> None:
    report = Report()

    found = by_code({"deu": ">>deu<<", "de": ">>de<<", "xx_yy_zz": ">>x<<"}, "vocab.json", report)

    assert found == {"de": ">>deu<<"}
    assert "de (de is >>deu<< already)" in report.notes[0]


def test_what_the_user_says_goes_first() -> None:
    report = Report()

    assert choose("source", ("ger",), ("fr",), "config.json", report) == ("de",)
    assert choose("source", (), ("gmw", "fr"), "config.json", report) == ("fr",)
    assert report.faults == []


@pytest.mark.parametrize(
    ("given", "names", "expected"),
    [
        ((), (), "nothing about the source language"),
        ((), ("gmw",), "source language gmw"),
        (("klingon!",), (), "klingon!; expected a BCP-47 code"),
    ],
)
def test_a_side_without_a_language_is_a_fault(given: tuple[str, ...], names: tuple[str, ...], expected: str) -> None:
    report = Report()

    choose("source", given, names, "config.json", report)

    assert expected in str(report.faults[0])


def test_some_of_many_are_chosen_as_clients_choose_them() -> None:
    report = Report()

    assert choose_among("target", ("de",), ["fr", "de-DE"], report) == ("de-DE",)
    assert choose_among("target", (), ["fr", "de-DE"], report) == ("fr", "de-DE")
    choose_among("target", ("nl",), ["fr", "af"], report)
    assert "--target: nl; expected a language that the model has" in str(report.faults[0])


def test_no_language_is_translated_into_itself() -> None:
    pairs = language_pairs(("en", "de"), ("de", "en"), (7,))

    assert [(pair.source, pair.target, pair.source_prefix) for pair in pairs] == [
        ("en", "de", (7,)),
        ("de", "en", (7,)),
    ]
    assert language_pairs(("de",), ("de",)) == ()


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("opus-mt-en-de", ("en", "de")),
        ("opus-mt-en-de-v2", ("en", "de")),
        ("opus-mt-en-de-ct2", ("en", "de")),
        ("opus-mt-en-de-big", ("en", "de")),
        ("opus-mt-en-ceb", ("en", "ceb")),
        ("opus-mt-mt-en", ("mt", "en")),
        ("opus-mt-tc-big-gmq-itc", ("gmq", "itc")),
        ("Helsinki-NLP--opus-mt-tc-big-eng-deu", ("eng", "deu")),
        ("fast-en-de-ct2", ("en", "de")),
        ("translate-en_de-1_9", ("en", "de")),
        ("ende", ("en", "de")),
        ("ende.student.tiny11", ("en", "de")),
        ("mozilla-base-memory.ende", ("en", "de")),
        ("opus-mt-tc-big-en-ces_slk", None),
        ("mt-en-de", None),
        ("en-zh-Hant", None),
        ("opus-ct2", None),
        ("base", None),
        ("ende-deen", None),
        ("enen", None),
        ("\xe9\xe9-de", None),
        ("model", None),
    ],
)
def test_a_directory_may_name_its_languages(tmp_path: Path, name: str, pair: tuple[str, str] | None) -> None:
    assert pair_in_name(tmp_path / name) == pair


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("model.ende.intgemm.alphas.bin", ("en", "de")),
        ("model.intgemm.alphas.bin", None),
        ("model.npz.best-bleu.npz", None),
    ],
)
def test_a_file_may_name_its_languages(name: str, pair: tuple[str, str] | None) -> None:
    assert joined_pair(name) == pair


def test_more_languages_than_there_are_is_a_fault() -> None:
    report = Report()

    assert by_code({f"a{number}": "" for number in range(2001)}, "vocab.json", report) == {}

    assert "vocab.json: 2001 names of languages; expected at most 2000" in map(str, report.faults)
    assert bcp47("de-" * 20_000) is None
