"""What all files of glossaries have in common."""

import pytest

from server.text.glossary_entries import (
    MAX_TERMS,
    Entries,
    MalformedGlossary,
    check_count,
    check_phrase,
    collected,
    languages_of_name,
    normal_code,
)


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("it.en-de", ("en", "de")),
        ("a.b.en-pt_BR", ("en", "pt_BR")),
        ("it.zh_Hant_TW-en", ("zh_Hant_TW", "en")),
        ("it", None),
        ("en-de", None),
        ("it.en", None),
        ("it.en-de-fr", None),
        ("it.english-german", None),
    ],
)
def test_a_name_may_say_the_languages(name: str, languages: tuple[str, str] | None) -> None:
    assert languages_of_name(name) == languages


def test_phrases_have_single_blanks_and_faults_their_line() -> None:
    assert check_phrase(3, "the source", "hard  disk ") == "hard disk"
    with pytest.raises(MalformedGlossary, match=r"^line 3: the source must have 1 to 200 characters.* not 201$"):
        check_phrase(3, "the source", "x" * 201)


def test_counts_have_limits() -> None:
    check_count(1, MAX_TERMS, 32)
    with pytest.raises(MalformedGlossary, match=r"^line 7: a glossary must have at most 100000 terms"):
        check_count(7, MAX_TERMS + 1, 1)
    with pytest.raises(MalformedGlossary, match=r"^line 7: a term must have at most 32 targets, not 33$"):
        check_count(7, 1, 33)


def test_a_file_has_a_term() -> None:
    assert collected(("en", "de"), {"a": ("b",)}) == Entries("en", "de", {"a": ("b",)})
    with pytest.raises(MalformedGlossary, match="must have at least one term, not 0"):
        collected(("en", "de"), {})


def test_codes_are_compared_without_case() -> None:
    assert normal_code(" pt_BR") == normal_code("PT-br") == "pt-br"
