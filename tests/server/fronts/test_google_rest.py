import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, Overloaded, TranslationError
from server.fronts import google_rest as rest
from server.fronts.google import read_translate as read_third
from server.fronts.v1 import google_pb2 as google

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["contents", "mimeType", "glossaryConfig", "glossary", "model", "labels", "target", "q"]),
            inner,
        )
    ),
    max_leaves=10,
)


def fields(**values: Any) -> dict[str, list[Any]]:
    return {name: [value] for name, value in ({"q": "A", "target": "de"} | values).items()}


def told(error: TranslationError, front: Any = rest.FRONT) -> tuple[int, Any]:
    status = front.status_of(error)
    return status, front.body(error, front.words_of(error, "my-id"), status)["error"]


def test_a_request_of_version_2_is_html_unless_it_says_otherwise() -> None:
    assert rest.read_translate(fields(source="en", model="base")) == google.TranslateTextRequest(
        contents=["A"], mime_type="text/html", source_language_code="en", target_language_code="de"
    )
    assert rest.read_translate(fields(format="text", source=None, cid=[])).mime_type == "text/plain"


@pytest.mark.parametrize("q", [["A", "B"], [["A", "B"]]])
def test_texts_come_as_a_list_or_one_by_one(q: list[Any]) -> None:
    assert list(rest.read_translate({"q": q, "target": ["de"]}).contents) == ["A", "B"]
    assert list(rest.read_detect({"q": q}).contents) == ["A", "B"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"q": None}, "q"),
        ({"q": []}, "q"),
        ({"q": [1]}, "q[0]"),
        ({"target": None}, "target"),
        ({"target": 1}, "target"),
        ({"format": "pdf"}, "format"),
        ({"cid": ["a"]}, "cid"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        rest.read_translate(fields(**given))

    assert caught.value.field == field


def test_answers_of_version_2_have_what_was_asked() -> None:
    response = google.TranslateTextResponse(
        translations=[google.Translation(translated_text="B", detected_language_code="en")]
    )
    asked = google.TranslateTextRequest(model="nmt")
    (found,) = rest.write_translate(asked, response)["data"]["translations"]
    detected = rest.write_detect(pb.DetectLanguagesResponse(detections=[pb.Detection(language_code="en")]))
    languages = google.SupportedLanguages(languages=[google.SupportedLanguage(language_code="en", display_name="E")])

    assert found == {"translatedText": "B", "detectedSourceLanguage": "en", "model": "nmt"}
    assert detected == {"data": {"detections": [[{"language": "en", "confidence": 0.0, "isReliable": False}]]}}
    assert rest.write_languages(languages) == {"data": {"languages": [{"language": "en", "name": "E"}]}}
    assert rest.read_languages(fields(target="de", model="nmt")).display_language_code == "de"


def test_a_message_of_version_3_is_json() -> None:
    value = {"contents": ["A"], "targetLanguageCode": "de", "source_language_code": "en", "labels": {"a": "b"}}
    asked = rest.read_message(google.TranslateTextRequest, value, {"parent": "projects/p"})

    assert (asked.target_language_code, asked.source_language_code, asked.parent) == ("de", "en", "projects/p")
    answer = google.Translation(translated_text="ä", detected_language_code="en")
    assert rest.write_message(answer) == {"translatedText": "ä", "detectedLanguageCode": "en"}
    query = {"pageSize": ["5"], "page_token": ["a"], "$alt": ["json"], "key": ["k"]}
    assert rest.read_parameters(google.ListGlossariesRequest, query) == {"pageSize": "5", "page_token": "a"}


def test_an_error_has_what_googles_clients_read() -> None:
    status, wrong = told(InvalidRequest("contents", "is empty"))
    busy_status, busy = told(Overloaded("too much", "tokens", 1.5), rest.FRONT_2)

    assert (status, wrong["code"], wrong["status"]) == (400, 400, "INVALID_ARGUMENT")
    assert wrong["details"][0]["fieldViolations"] == [{"field": "contents", "description": "is empty"}]
    assert (busy_status, busy["errors"][0]["reason"]) == (429, "rateLimitExceeded")
    assert busy["details"][0]["retryDelay"] == "1.500s"


@given(JSON)
def test_anything_is_understood_or_refused(value: Any) -> None:
    named = value if isinstance(value, dict) else {"q": value}
    calls = (
        lambda: read_third(rest.read_message(google.TranslateTextRequest, value, {"parent": "p"})),
        lambda: rest.read_translate({name: [each] for name, each in named.items()}),
    )
    for call in calls:
        with contextlib.suppress(InvalidRequest):
            assert call().SerializeToString() is not None
