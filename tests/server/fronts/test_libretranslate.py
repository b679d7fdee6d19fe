from typing import Any

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, ModelNotFound, Overloaded, TranslationError, Unauthenticated
from server.fronts.front import FailedText
from server.fronts.libretranslate import (
    FRONT,
    read_detect,
    read_key,
    read_translate,
    refusal,
    write_detect,
    write_languages,
    write_settings,
    write_translate,
)

SERVED = pb.ListModelsResponse(
    models=[
        pb.ModelInfo(language_pairs=[pb.LanguagePair(source_language_code="en", target_language_code="de")]),
        pb.ModelInfo(language_pairs=[pb.LanguagePair(source_language_code="de", target_language_code="en")]),
        pb.ModelInfo(language_pairs=[pb.LanguagePair(source_language_code="en", target_language_code="fr")]),
    ]
)


def fields(**values: Any) -> dict[str, list[Any]]:
    return {name: [value] for name, value in ({"q": "Hello", "source": "en", "target": "de"} | values).items()}


def answered(error: TranslationError) -> tuple[int, str]:
    status = FRONT.status_of(error)
    return status, FRONT.body(error, FRONT.words_of(error, "my-id"), status)["error"]


def refused(given: dict[str, list[Any]]) -> tuple[int, str]:
    with pytest.raises(InvalidRequest) as caught:
        read_translate(given)
    return answered(caught.value)


def test_a_request_is_ours_in_other_words() -> None:
    asked = read_translate(fields(source="zt", target="pb", format="html", api_key="key"))

    assert asked.message == pb.TranslateRequest(
        contents=["Hello"],
        source_language_code="zh-Hant",
        target_language_code="pt-BR",
        mime_type="text/html",
        output=pb.OutputOptions(text_once=True),
    )
    assert (asked.source, asked.target, asked.is_list) == ("zt", "pb", False)
    assert read_key(fields(api_key="key")) == "key"
    assert read_key(fields()) is None


@pytest.mark.parametrize(
    ("q", "texts", "is_list"),
    [(["a"], ["a"], False), ([["a"]], ["a"], True), ([["a", ""]], ["a", ""], True), (["a", "b"], ["a", "b"], True)],
)
def test_texts_come_alone_as_a_list_or_as_many_fields(q: list[Any], texts: list[str], is_list: bool) -> None:
    asked = read_translate(fields() | {"q": q})

    assert (list(asked.message.contents), asked.is_list) == (texts, is_list)


@pytest.mark.parametrize(("alternatives", "beam_size"), [("1", 4), (3, 4), (7, 8)])
def test_alternatives_are_hypotheses_of_a_beam_that_has_them(alternatives: object, beam_size: int) -> None:
    decoding = read_translate(fields(alternatives=alternatives)).message.decoding

    assert (decoding.num_hypotheses, decoding.beam_size) == (int(str(alternatives)) + 1, beam_size)


def test_html_has_no_alternatives_as_there() -> None:
    asked = read_translate(fields(alternatives=2, format="html"))
    response = pb.TranslateResponse(translations=[pb.Translation(text="a", hypotheses=[pb.Hypothesis(text="a")])])

    assert not asked.message.HasField("decoding")
    assert write_translate(response, asked) == {"translatedText": "a", "alternatives": []}


@pytest.mark.parametrize("alternatives", [0, "0", -1, "", None])
def test_without_alternatives_the_search_is_the_servers(alternatives: object) -> None:
    assert not read_translate(fields(alternatives=alternatives)).message.HasField("decoding")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"source": ""}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"format": "pdf"}, "pdf format is not supported"),
        ({"alternatives": "x"}, "Invalid request: alternatives parameter is not a number"),
        ({"alternatives": [1]}, "Invalid request: alternatives parameter is not a number"),
        ({"alternatives": 8}, "Invalid request: alternatives parameter must be <= 7"),
        ({"q": 7}, "q: must be a string, not a number"),
        ({"q": ["a", 7]}, "q[1]: must be a string, not a number"),
        ({"source": ["en"]}, "source: must be a string, not a list"),
        ({"q": "\ud800"}, "q: must be Unicode text without halves of surrogate pairs"),
    ],
)
def test_what_is_wrong_is_said_in_its_own_words(given: dict[str, Any], words: str) -> None:
    assert refused(fields(**given)) == (400, words)


def test_a_missing_field_is_as_an_empty_one() -> None:
    assert refused({}) == (400, "Invalid request: missing q parameter")
    assert refused({"q": ["a"]}) == (400, "Invalid request: missing source parameter")


def test_a_language_that_is_not_served_is_named_as_it_was_written() -> None:
    asked = read_translate(fields(source="zt", target="zz"))

    for name, words in (("source", "zt is not supported"), ("target", "zz is not supported")):
        error = InvalidRequest(f"{name}_language_code", "must be one of de, not zz")
        error.is_recorded = True
        refused = refusal(error, asked)
        assert refused.is_recorded
        assert answered(refused) == (400, words)
    other = Overloaded("queue is full", "sentences")
    assert refusal(other, asked) is other


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Unauthenticated("no key"), (403, "Invalid API key")),
        (ModelNotFound("none"), (404, "none")),
        (Overloaded("queue is full", "sentences"), (429, "Slowdown: queue is full")),
        (TranslationError("internal error"), (500, "internal error; request id my-id")),
    ],
)
def test_other_errors_have_its_statuses(error: TranslationError, expected: tuple[int, str]) -> None:
    assert answered(error) == expected


def test_an_answer_is_a_text_or_a_list_as_the_request() -> None:
    response = pb.TranslateResponse(translations=[pb.Translation(text="Hallo"), pb.Translation(text="Welt")])

    assert write_translate(response, read_translate(fields(q=["Hello", "world"]))) == {
        "translatedText": ["Hallo", "Welt"]
    }
    del response.translations[1]
    assert write_translate(response, read_translate(fields())) == {"translatedText": "Hallo"}
    assert write_translate(response, read_translate(fields(q=["Hello"]))) == {"translatedText": ["Hallo"]}


def test_alternatives_are_others_each_once() -> None:
    hypotheses = [pb.Hypothesis(text=text) for text in ("", "Hallo", "Hi", "Hi", "Servus")]
    response = pb.TranslateResponse(translations=[pb.Translation(text="Hallo", hypotheses=hypotheses)])

    assert write_translate(response, read_translate(fields(alternatives=4)))["alternatives"] == ["Hi", "Servus"]
    assert write_translate(response, read_translate(fields(q=["a"], alternatives=4)))["alternatives"] == [
        ["Hi", "Servus"]
    ]


def test_the_detected_language_is_told_only_if_it_was_left_open() -> None:
    detected = pb.Translation(text="a", detected_language_code="en", detection_confidence=0.5)
    only = pb.TranslateResponse(translations=[pb.Translation(text="a")], source_language_code="en")
    routed = pb.Translation(text="a", route=[pb.RouteLeg(source_language_code="fr")])
    auto = read_translate(fields(source="auto"))

    several = pb.TranslateResponse(translations=[detected, routed])
    assert write_translate(several, read_translate(fields(source="auto", q=["a", "b"])))["detectedLanguage"] == [
        {"confidence": 50, "language": "en"},
        {"confidence": 0, "language": "fr"},
    ]
    assert write_translate(only, auto)["detectedLanguage"] == {"confidence": 0, "language": "en"}
    assert "detectedLanguage" not in write_translate(only, read_translate(fields()))


def test_a_text_that_failed_fails_the_request() -> None:
    failed = pb.Translation(status=pb.Status(code=3, message="contents[0]: is wrong"))

    with pytest.raises(FailedText) as caught:
        write_translate(pb.TranslateResponse(translations=[pb.Translation(text="a"), failed]), read_translate(fields()))

    assert answered(caught.value) == (400, "contents[0]: is wrong")
    assert caught.value.is_recorded


def test_languages_have_names_and_targets() -> None:
    assert write_languages(SERVED) == [
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": ["de", "fr"]},
        {"code": "fr", "name": "French", "targets": []},
    ]


def test_settings_are_those_of_a_server_without_suggestions() -> None:
    settings = write_settings(SERVED, ["txt", "docx"], asks_for_key=True)

    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    assert (settings["apiKeys"], settings["keyRequired"], settings["suggestions"]) == (True, True, False)
    assert write_settings(pb.ListModelsResponse(), [], asks_for_key=False)["language"]["target"]["code"] == ""


def test_one_language_is_detected_of_all_texts() -> None:
    assert list(read_detect({"q": ["a", "b"]}).contents) == ["a\nb"]
    with pytest.raises(InvalidRequest):
        read_detect({})
    found = pb.DetectLanguagesResponse(detections=[pb.Detection(language_code="de", confidence=0.25)])

    assert write_detect(found) == [{"confidence": 25, "language": "de"}]
