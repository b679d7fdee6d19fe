from typing import Any

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, ModelNotFound, NotServing, Overloaded, TranslationError, Unauthenticated
from server.fronts import azure
from server.fronts.front import BodyTooLong, FailedText, Front, NotOffered

SERVED = pb.ListModelsResponse(
    models=[
        pb.ModelInfo(language_pairs=[pb.LanguagePair(source_language_code="en", target_language_code="ar")]),
        pb.ModelInfo(language_pairs=[pb.LanguagePair(source_language_code="de", target_language_code="en")]),
    ]
)
V3, V2026 = {"api-version": ["3.0"]}, {"api-version": ["2026-06-06"]}


def answered(error: TranslationError, front: Front = azure.FRONT) -> tuple[int, Any, str]:
    status = front.status_of(error)
    told = front.body(error, front.words_of(error, "my-id"), status)["error"]
    return status, told["code"], told["message"]


def refused(call: Any, *arguments: Any) -> tuple[int, str]:
    with pytest.raises(azure.WrongRequest) as caught:
        call(*arguments)
    return caught.value.number, caught.value.field


def test_parameters_have_any_case() -> None:
    query = azure.read_query({"API-Version": ["3.0"], "To": ["de"], "to": ["fr"]})

    assert query["to"] == ["de", "fr"]
    assert azure.read_version(query) == "3.0"


@pytest.mark.parametrize("versions", [[], [""], ["2.0"], ["2025-01-01"]])
def test_an_unknown_version_is_refused(versions: list[str]) -> None:
    assert refused(azure.read_version, {"api-version": versions}) == (400021, "api-version")


def test_a_path_of_the_first_version_is_not_found_in_another() -> None:
    azure.check_is_v3(V3)
    with pytest.raises(NotOffered) as caught:
        azure.check_is_v3(V2026)

    assert answered(caught.value, azure.FRONT_2026)[:2] == (404, "404000")


@pytest.mark.parametrize(
    ("error", "status", "number"),
    [
        (azure.WrongRequest(400036, "to", "is required"), 400, 400036),
        (InvalidRequest("priority", "is wrong"), 400, 400000),
        (ModelNotFound("model: no"), 400, 400079),
        (Unauthenticated("no key"), 401, 401000),
        (Overloaded("too much", "tokens"), 429, 429000),
        (NotServing("stops"), 503, 503000),
        (BodyTooLong("body", "must be short"), 413, 400077),
        (TranslationError("internal error"), 500, 500000),
    ],
)
def test_an_error_has_azures_number_and_both_words(error: TranslationError, status: int, number: int) -> None:
    found, code, message = answered(error)

    assert (found, code) == (status, number)
    assert str(error) in message
    assert message[0].isupper()
    assert answered(error, azure.FRONT_2026)[1] == str(number)


def test_our_errors_get_azures_names() -> None:
    places = ["[4]", "[7]"]
    source = azure.refusal(InvalidRequest("source_language_code", "must be en"), places, "from", "to")
    text = azure.refusal(FailedText(pb.Status(code=3, message="contents[1]: is long")), places, "from", "to")
    tone = azure.refusal(InvalidRequest("formality", "must be unspecified"), places, "from", "to")
    other = InvalidRequest("glossary", "is wrong")

    assert answered(source)[1:] == (400035, "The source language is not valid. from: must be en")
    assert answered(tone)[1:] == (400042, "One of the options specified is not valid. tone: must be unspecified")
    assert answered(text)[1:] == (400005, "An input text is missing or invalid. [7].text: is long")
    assert azure.refusal(other, places, "from", "to") is other


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, "body"),
        ([], "body"),
        ({}, "body"),
        ([1], "body[0]"),
        ([{}], "[0].text"),
        ([{"text": 1}], "[0].text"),
        ([{"Text": "\ud800"}], "[0].text"),
    ],
)
def test_texts_must_be_a_list_of_objects(value: Any, field: str) -> None:
    assert refused(azure.read_detect, value)[1] == field


def test_detection_answers_each_text() -> None:
    message = azure.read_detect([{"Text": "a"}, {"text": "b"}])
    detections = [pb.Detection(language_code="en", confidence=0.5), pb.Detection(language_code="de")]
    answer = azure.write_detect(pb.DetectLanguagesResponse(detections=detections))

    assert message.contents == ["a", "b"]
    flags = {"isTranslationSupported": True, "isTransliterationSupported": False}
    assert answer == [{"language": "en", "score": 0.5, **flags}, {"language": "de", "score": 0.0, **flags}]


def test_sentences_come_from_the_least_translation() -> None:
    found = azure.break_messages(["en", "de", "en"], ["A.", "B.", "C."], SERVED)

    assert [(places, list(message.contents)) for places, message in found] == [([0, 2], ["A.", "C."]), ([1], ["B."])]
    assert found[0][1].target_language_code == "ar"
    assert found[0][1].decoding.max_output_tokens == 1
    assert refused(azure.break_messages, ["zz"], ["A."], SERVED) == (400035, "language")


def test_lengths_of_sentences_are_together_the_text() -> None:
    assert azure.lengths([], 3) == [3]
    assert azure.lengths([2, 10, 20], 25) == [10, 10, 5]
    sentences = [pb.Sentence(source_begin=0), pb.Sentence(source_begin=3)]
    answer = azure.write_break(["A. B."], [pb.Translation(sentences=sentences)], [pb.Detection(language_code="en")])
    assert answer == [{"sentLen": [3, 2], "detectedLanguage": {"language": "en", "score": 0.0}}]


def test_languages_are_those_of_the_scopes() -> None:
    everything = azure.write_languages(V3, SERVED)
    arabic = {"name": "Arabic", "nativeName": "العربية", "dir": "rtl"}

    assert everything["translation"]["ar"] == arabic
    assert set(everything["translation"]) == {"ar", "de", "en"}
    assert (everything["transliteration"], everything["dictionary"]) == ({}, {})
    assert azure.write_languages(V2026, SERVED)["models"] == []
    assert azure.write_languages(V2026, SERVED)["translation"]["ar"] == {**arabic, "models": []}
    assert list(azure.write_languages({**V3, "scope": ["Translation"]}, SERVED)) == ["translation"]
    assert refused(azure.write_languages, {**V3, "scope": ["models"]}, SERVED) == (400001, "scope")


def test_a_script_belongs_to_a_language() -> None:
    assert azure.with_script("sr", "Latn", "script") == "sr-Latn"
    assert azure.with_script("zh-CHS", "", "script") == "zh-Hans"
    assert refused(azure.with_script, "", "Latn", "script") == (400006, "script")
