"""DeepL's glossaries, without a server."""

from collections.abc import Mapping
from typing import Any

import pytest

from babelserve.v1 import glossary_store_pb2 as pb
from server.errors import InvalidRequest
from server.fronts.deepl import NotHere, Refused
from server.fronts.deepl_glossaries import (
    merged,
    read_dictionaries,
    read_id,
    read_pair,
    read_v2,
    read_v3,
    refusal,
    replaced,
    without,
    write_all_v2,
    write_dictionary_of,
    write_entries,
    write_tsv,
    write_v2,
    write_v3,
)

PAIRS = [("en", "de"), ("de", "en")]
DIALECTS = ["DE", "de-AT"]
UUID = "96ab91fd-e715-41a1-adeb-5d701f84a483"
GIVEN = {
    "name": "Dogs",
    "source_lang": "EN",
    "target_lang": "DE",
    "entries": "dog\tHund\n\r\ncat \t Katze\r\n",
    "entries_format": "tsv",
}


def fields(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {name: [value] for name, value in values.items()}


def terms(dictionary: pb.Dictionary) -> dict[str, str]:
    return {each.source: each.target for each in dictionary.terms}


def dictionary(source: str, target: str, **entries: str) -> pb.Dictionary:
    given = [pb.DictionaryTerm(source=key, target=value) for key, value in entries.items()]
    return pb.Dictionary(source_language_code=source, target_language_code=target, terms=given, num_terms=len(entries))


KEPT = pb.KeptGlossary(
    id=UUID,
    title="Dogs",
    create_time_ms=1_700_000_000_123,
    revision=3,
    dictionaries=[dictionary("en", "de", dog="Hund", cat="Katze"), dictionary("de", "en", Hund="dog")],
)


def test_version_2_has_one_dictionary() -> None:
    glossary = read_v2(fields(GIVEN), PAIRS)

    (only,) = glossary.dictionaries
    assert (glossary.title, only.source_language_code, only.target_language_code) == ("Dogs", "en", "de")
    assert terms(only) == {"dog": "Hund", "cat": "Katze"}


@pytest.mark.parametrize("way", ["json", "dots", "brackets"])
def test_version_3_has_dictionaries_however_they_come(way: str) -> None:
    own = {name: value for name, value in GIVEN.items() if name != "name"}
    other = {"source_lang": "DE", "target_lang": "EN-US", "entries": "Hund,dog", "entries_format": "csv"}
    given: dict[str, Any] = {"name": "Dogs"}
    if way == "json":
        given["dictionaries"] = [own, other]
    else:
        for index, each in enumerate([own, other]):
            pattern = "dictionaries[{}].{}" if way == "dots" else "dictionaries[{}][{}]"
            given |= {pattern.format(index, name): value for name, value in each.items()}

    first, second = read_v3(fields(given), PAIRS).dictionaries

    assert terms(first) == {"dog": "Hund", "cat": "Katze"}
    assert (second.source_language_code, second.target_language_code, terms(second)) == ("de", "en", {"Hund": "dog"})


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ('a,b,en,de\n"c""d","e,f",EN,DE\n', {"a": "b", 'c"d': "e,f"}),
        ("a,b\n\n,\n c , d \nx\n", {"a": "b", "c": "d"}),
        ("\ufeffa,b,en,de\nc,d,de,en\n", {"a": "b"}),
        ('"a\nb",c\nd,e', {"a\nb": "c", "d": "e"}),
    ],
)
def test_csv_may_have_quotes_and_codes(entries: str, expected: dict[str, str]) -> None:
    glossary = read_v2(fields(GIVEN | {"entries": entries, "entries_format": "csv"}), PAIRS)

    assert terms(glossary.dictionaries[0]) == expected


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "Missing or invalid argument: name"),
        ({"name": 3}, "name: must be a string, not a number"),
        ({"target_lang": "XX"}, "Unsupported glossary source and target language pair"),
        ({"target_lang": "EN"}, "Unsupported glossary source and target language pair"),
        ({"source_lang": None}, "Unsupported glossary source and target language pair"),
        ({"entries": ""}, "Parameter 'entries' not specified"),
        ({"entries": ["a\tb"]}, "entries: must be a string, not a list"),
        ({"entries_format": ""}, "Parameter 'entries_format' not specified"),
        ({"entries_format": "tbx"}, "Value for 'entries_format' not supported."),
        ({"entries": "\n \n"}, "Invalid glossary entries provided: There is no entry"),
        ({"entries": "a"}, "Invalid glossary entries provided: Key with the index 0 misses tab separator"),
        (
            {"entries": "a\tb\n\na\tc"},
            "Invalid glossary entries provided: Key with the index 2 duplicates key with the index 0",
        ),
        ({"entries": "\n" * 50_001}, "Invalid glossary entries provided: There must be at most 50000 lines"),
        (
            {"entries": '"' + "a" * 200_000, "entries_format": "csv"},
            "Invalid glossary entries provided: The CSV cannot be read: field larger than field limit (131072)",
        ),
    ],
)
def test_what_is_no_glossary_is_refused_in_deepls_words(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_v2(fields(GIVEN | changes), PAIRS)

    error = caught.value
    told = f"{error.words}: {error.detail}".removesuffix(": ") if isinstance(error, Refused) else str(error)
    assert told == words


@pytest.mark.parametrize(
    ("dictionaries", "words"),
    [
        ([], "dictionaries"),
        (["a"], r"dictionaries\[0\]: must be an object"),
        ([{"source_lang": 1}], r"dictionaries\[0\].source_lang: must be a string"),
        ("a", r"dictionaries\[0\]: must be an object"),
        ([None], r"dictionaries\[0\]: must be an object"),
    ],
)
def test_what_are_no_dictionaries_is_refused(dictionaries: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        read_v3(fields({"name": "Dogs", "dictionaries": dictionaries}), PAIRS)


def test_a_request_has_one_dictionary_of_a_direction() -> None:
    given = [{"source_lang": "EN", "target_lang": code, "entries": "a,b", "entries_format": "csv"} for code in DIALECTS]

    with pytest.raises(InvalidRequest, match=r"^dictionaries\[1\]: has the direction that dictionaries\[0\] has alr"):
        read_dictionaries(fields({"dictionaries": given}), PAIRS)


def test_the_dictionaries_of_a_request_have_a_limit_of_lines_together() -> None:
    entries = "".join(f"{index}\tb\n" for index in range(25_001))
    given = [
        {"source_lang": source, "target_lang": target, "entries": entries, "entries_format": "tsv"}
        for source, target in PAIRS
    ]

    assert len(read_dictionaries(fields({"dictionaries": given[:1]}), PAIRS)) == 1
    with pytest.raises(Refused) as caught:
        read_dictionaries(fields({"dictionaries": given}), PAIRS)
    assert caught.value.detail == "There must be at most 50000 lines"


def test_other_fields_of_a_form_are_no_dictionaries() -> None:
    assert read_dictionaries(fields({"dictionaries[0]": "x", "dictionaries[99999].entries": "x"}), PAIRS) == []


def test_more_terms_win_over_older_ones() -> None:
    more = [dictionary("en", "de", dog="Köter", bird="Vogel"), dictionary("en", "fr", dog="chien")]

    changed = merged(KEPT, "", more)

    assert [terms(each) for each in changed.dictionaries] == [
        {"dog": "Köter", "cat": "Katze", "bird": "Vogel"},
        {"Hund": "dog"},
        {"dog": "chien"},
    ]
    assert (changed.id, changed.title, changed.revision) == (UUID, "Dogs", 3)
    assert merged(KEPT, "Cats", []).title == "Cats"
    assert terms(KEPT.dictionaries[0])["dog"] == "Hund", "what is kept stays as it is"


def test_a_dictionary_is_replaced_or_taken_out() -> None:
    changed = replaced(KEPT, dictionary("en", "de", bird="Vogel"))

    assert [terms(each) for each in changed.dictionaries] == [{"Hund": "dog"}, {"bird": "Vogel"}]
    assert [terms(each) for each in without(KEPT, ("de", "en")).dictionaries] == [terms(KEPT.dictionaries[0])]
    assert changed.revision == 3
    with pytest.raises(NotHere):
        without(KEPT, ("en", "fr"))


def test_descriptions_have_the_form_of_their_version() -> None:
    one = without(KEPT, ("de", "en"))
    one.create_time_ms = KEPT.create_time_ms

    assert write_v2(one) == {
        "glossary_id": UUID,
        "name": "Dogs",
        "ready": True,
        "source_lang": "en",
        "target_lang": "de",
        "entry_count": 2,
        "creation_time": "2023-11-14T22:13:20.123Z",
    }
    assert write_v3(KEPT) == {
        "glossary_id": UUID,
        "name": "Dogs",
        "dictionaries": [
            {"source_lang": "en", "target_lang": "de", "entry_count": 2},
            {"source_lang": "de", "target_lang": "en", "entry_count": 1},
        ],
        "creation_time": "2023-11-14T22:13:20.123Z",
    }
    assert write_tsv(one) == "dog\tHund\ncat\tKatze"
    assert write_dictionary_of(KEPT, ("de", "en"))["entry_count"] == 1
    assert write_all_v2(pb.ListKeptGlossariesResponse(glossaries=[KEPT, one])) == {"glossaries": [write_v2(one)]}
    for write in (write_v2, write_tsv):
        with pytest.raises(NotHere):
            write(KEPT)


def test_entries_are_those_of_a_direction_or_all() -> None:
    one = write_entries(KEPT, fields({"source_lang": "DE", "target_lang": "EN"}))

    assert one == {
        "dictionaries": [{"source_lang": "de", "target_lang": "en", "entries_format": "tsv", "entries": "Hund\tdog"}]
    }
    assert len(write_entries(KEPT, {})["dictionaries"]) == 2
    with pytest.raises(NotHere, match="Dictionary not found"):
        write_entries(KEPT, fields({"source_lang": "fr", "target_lang": "EN"}))
    with pytest.raises(InvalidRequest, match="target_lang"):
        write_entries(KEPT, fields({"source_lang": "fr"}))


def test_ids_and_directions_are_read() -> None:
    assert read_id(UUID.upper()) == UUID
    assert read_pair(fields({"source_lang": "EN", "target_lang": "de-AT"})) == ("en", "de")
    with pytest.raises(InvalidRequest):
        read_id("invalid_glossary_id")


def test_a_rule_of_terms_is_told_in_deepls_words() -> None:
    error = InvalidRequest("glossary.dictionaries[0].terms[7].source", "must have 1 to 200 characters")
    error.is_recorded = True

    told = refusal(error)

    assert isinstance(told, Refused)
    assert (told.words, told.is_recorded) == ("Invalid glossary entries provided", True)
    assert told.detail == "Key with the index 7: must have 1 to 200 characters"
    other = InvalidRequest("glossary.title", "must be short")
    assert refusal(other) is other
