from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from babelserve.v1 import translation_pb2 as pb
from server.errors import GlossaryNotFound, InvalidRequest, ModelNotFound, TranslationError
from server.fronts.google import (
    read_detect,
    read_translate,
    write_detect,
    write_glossaries,
    write_glossary,
    write_languages,
    write_translate,
)
from server.fronts.v1 import google_pb2 as google

PARENT = "projects/p/locations/global"
FAILED = pb.Status(code=3, message="contents[0]: is wrong")
MODELS = pb.ListModelsResponse(
    models=[
        pb.ModelInfo(name="a", source_language_codes=["en"], target_language_codes=["de"]),
        pb.ModelInfo(name="b", source_language_codes=["de"], target_language_codes=["fr"]),
    ]
)
GLOSSARIES = pb.ListGlossariesResponse(
    glossaries=[
        pb.GlossaryInfo(name=name, source_language_code="en", target_language_code="de", num_terms=2)
        for name in ("it", "law", "sea")
    ]
)


def asked(**fields: Any) -> google.TranslateTextRequest:
    return google.TranslateTextRequest(**({"contents": ["a"], "target_language_code": "de"} | fields))


def test_fields_are_those_of_ours() -> None:
    request = asked(source_language_code="en-US", mime_type="text/plain", parent=PARENT)

    assert read_translate(request) == pb.TranslateRequest(
        contents=["a"],
        mime_type="text/plain",
        source_language_code="en-US",
        target_language_code="de",
        output=pb.OutputOptions(text_once=True),
    )


def test_a_text_without_a_type_is_html() -> None:
    assert read_translate(asked()).mime_type == "text/html"
    assert read_detect(google.DetectLanguageRequest(content="a")).mime_type == "text/html"


@pytest.mark.parametrize("model", ["", f"{PARENT}/models/general/nmt", f"{PARENT}/models/general/base"])
def test_models_of_google_leave_the_choice_to_the_server(model: str) -> None:
    response = pb.TranslateResponse(translations=[pb.Translation(text="b")], model="a")

    assert read_translate(asked(model=model)).model == ""
    assert write_translate(asked(model=model), response).translations[0].model == model


def test_a_model_of_the_server_is_named_by_the_end_of_its_path() -> None:
    assert read_translate(asked(model=f"{PARENT}/models/en-de")).model == "en-de"


def test_a_glossary_is_named_by_the_end_of_its_path_and_fills_both_lists() -> None:
    config = google.TranslateTextGlossaryConfig(glossary=f"{PARENT}/glossaries/it", ignore_case=True)
    request = asked(glossary_config=config)

    answer = write_translate(request, pb.TranslateResponse(translations=[pb.Translation(text="b")]))

    assert read_translate(request).glossary == pb.Glossary(names=["it"], ignore_case=True)
    assert [each.translated_text for each in answer.translations] == ["b"]
    assert not answer.translations[0].HasField("glossary_config")
    assert answer.glossary_translations[0].translated_text == "b"
    assert answer.glossary_translations[0].glossary_config == config


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"glossary_config": google.TranslateTextGlossaryConfig()}, "glossary_config.glossary"),
        (
            {"transliteration_config": google.TransliterationConfig(enable_transliteration=True)},
            "transliteration_config",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_by_its_field(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_translate(asked(**fields))

    assert caught.value.field == named


@pytest.mark.parametrize(
    ("translation", "source", "detected"),
    [
        (pb.Translation(text="b", detected_language_code="fr"), "", "fr"),
        (pb.Translation(text="b"), "en", "en"),
        (pb.Translation(text="b", route=[pb.RouteLeg(source_language_code="it")]), "", "it"),
    ],
)
def test_the_language_is_told_if_the_request_left_it_open(
    translation: pb.Translation, source: str, detected: str
) -> None:
    response = pb.TranslateResponse(translations=[translation], source_language_code=source)

    assert write_translate(asked(), response).translations[0].detected_language_code == detected
    given = write_translate(asked(source_language_code="en"), response)
    assert given.translations[0].detected_language_code == ""


def test_a_text_that_failed_fails_the_call() -> None:
    with pytest.raises(TranslationError, match="is wrong"):
        write_translate(asked(), pb.TranslateResponse(translations=[pb.Translation(status=FAILED)]))
    with pytest.raises(TranslationError, match="is wrong"):
        write_detect(pb.DetectLanguagesResponse(detections=[pb.Detection(status=FAILED)]))


def test_detection_needs_a_text_and_tells_one_language() -> None:
    response = pb.DetectLanguagesResponse(detections=[pb.Detection(language_code="de", confidence=0.5)])

    assert write_detect(response).languages[0] == google.DetectedLanguage(language_code="de", confidence=0.5)
    with pytest.raises(InvalidRequest, match="content: is required"):
        read_detect(google.DetectLanguageRequest())


def test_languages_are_those_of_all_models_or_of_one() -> None:
    everything = write_languages(google.GetSupportedLanguagesRequest(display_language_code="de"), MODELS)
    one = write_languages(google.GetSupportedLanguagesRequest(model=f"{PARENT}/models/b"), MODELS)

    facts = [(each.language_code, each.support_source, each.support_target) for each in everything.languages]
    assert facts == [("de", True, True), ("en", True, False), ("fr", False, True)]
    assert [each.display_name for each in everything.languages] == ["German", "English", "French"]
    assert [(each.language_code, each.display_name) for each in one.languages] == [("de", ""), ("fr", "")]
    with pytest.raises(ModelNotFound, match="model: no is not served here"):
        write_languages(google.GetSupportedLanguagesRequest(model="models/no"), MODELS)


def test_glossaries_come_in_pages() -> None:
    names, token = [], ""
    for _ in range(2):
        request = google.ListGlossariesRequest(parent=PARENT, page_size=2, page_token=token)
        page = write_glossaries(request, GLOSSARIES)
        names.append([each.name for each in page.glossaries])
        token = page.next_page_token

    assert names == [[f"{PARENT}/glossaries/it", f"{PARENT}/glossaries/law"], [f"{PARENT}/glossaries/sea"]]
    assert token == ""
    assert len(write_glossaries(google.ListGlossariesRequest(), GLOSSARIES).glossaries) == 3


@pytest.mark.parametrize(
    ("fields", "named"),
    [({"filter": "a"}, "filter"), ({"page_size": -1}, "page_size"), ({"page_token": "-1"}, "page_token")],
)
def test_a_list_that_cannot_be_made_is_refused_by_its_field(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        write_glossaries(google.ListGlossariesRequest(**fields), GLOSSARIES)

    assert caught.value.field == named


def test_a_glossary_is_found_by_its_name() -> None:
    found = write_glossary(google.GetGlossaryRequest(name=f"{PARENT}/glossaries/law"), GLOSSARIES)

    assert (found.name, found.display_name, found.entry_count) == (f"{PARENT}/glossaries/law", "law", 2)
    assert found.language_pair.source_language_code == "en"
    assert found.language_pair.target_language_code == "de"
    with pytest.raises(GlossaryNotFound):
        write_glossary(google.GetGlossaryRequest(name=f"{PARENT}/glossaries/no"), GLOSSARIES)


@given(
    st.builds(
        google.ListGlossariesRequest,
        parent=st.text(),
        page_size=st.integers(-(2**31), 2**31 - 1),
        page_token=st.text() | st.integers(0).map(str),
        filter=st.just("") | st.text(),
    )
)
def test_any_page_is_answered_or_refused(request: google.ListGlossariesRequest) -> None:
    try:
        page = write_glossaries(request, GLOSSARIES)
    except InvalidRequest:
        return
    assert len(page.glossaries) <= 3


@given(
    st.builds(
        google.TranslateTextRequest,
        contents=st.lists(st.text()),
        mime_type=st.text(),
        model=st.text() | st.text().map("projects/p/locations/l/models/{}".format),
        target_language_code=st.text(),
        glossary_config=st.none() | st.builds(google.TranslateTextGlossaryConfig, glossary=st.text()),
    )
)
def test_any_request_is_read_or_refused(request: google.TranslateTextRequest) -> None:
    try:
        message = read_translate(request)
    except InvalidRequest:
        return
    assert list(message.contents) == list(request.contents)
    assert message.mime_type
