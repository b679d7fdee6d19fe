"""DeepL's requests and answers, without a server."""

from typing import Any

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.errors import (
    GlossaryNotFound,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    TranslationError,
    Unauthenticated,
)
from server.fronts.deepl import (
    FRONT,
    Fields,
    NotHere,
    base_code,
    no_formality,
    read_key,
    read_translate,
    refusal,
    write_translate,
    write_usage,
)
from server.fronts.front import FailedText

UUID = "96AB91FD-e715-41a1-adeb-5d701f84a483"


def fields(**values: Any) -> dict[str, list[Any]]:
    return {name: [value] for name, value in ({"text": ["A dog."], "target_lang": "DE"} | values).items()}


def form(*pairs: tuple[str, str]) -> dict[str, list[Any]]:
    given: dict[str, list[Any]] = {"target_lang": ["de"]}
    for name, value in pairs:
        given.setdefault(name, []).append(value)
    return given


def answered(error: TranslationError) -> tuple[int, str]:
    status = FRONT.status_of(error)
    return status, FRONT.body(error, FRONT.words_of(error, "my-id"), status)["message"]


def refused(given: Fields) -> tuple[int, str]:
    with pytest.raises(InvalidRequest) as caught:
        read_translate(given)
    return answered(caught.value)


def test_a_request_is_ours_in_other_words() -> None:
    asked = read_translate(
        fields(
            source_lang="EN",
            context="Dogs run.",
            split_sentences="1",
            preserve_formatting=True,
            formality="prefer_more",
            model_type="prefer_quality_optimized",
            show_billed_characters=True,
            enable_beta_languages=True,
            custom_instructions=[],
        )
    )

    assert asked.message == pb.TranslateRequest(
        contents=["A dog."],
        source_language_code="EN",
        target_language_code="DE",
        text=pb.TextOptions(),
        output=pb.OutputOptions(text_once=True),
        formality=pb.FORMALITY_PREFER_MORE,
    )
    assert (asked.shows_billed_characters, asked.model_type) == (True, "quality_optimized")


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        (fields(text=["a", ""]), ["a", ""]),
        (fields(text="a"), ["a"]),
        (form(("text", "a"), ("text", "b")), ["a", "b"]),
        (form(("text", "a")), ["a"]),
    ],
)
def test_texts_come_as_a_list_alone_or_as_many_fields(given: Fields, texts: list[str]) -> None:
    assert list(read_translate(given).message.contents) == texts


@pytest.mark.parametrize("names", [["raw", "x-1"], "raw,x-1", ["raw, x-1"], ["raw", ",x-1,"]])
def test_tags_may_be_a_list_or_have_commas(names: object) -> None:
    given = fields(tag_handling="xml", ignore_tags=names, splitting_tags="p", non_splitting_tags=["b"])

    message = read_translate(given | {"outline_detection": ["0"]}).message

    assert message.mime_type == "application/xml"
    assert message.text.tags == pb.TagRules(
        ignored=["raw", "x-1"], splitting=["p"], non_splitting=["b"], only_named_split=True, repair=True
    )


def test_xml_has_to_be_well_formed_in_version_2_only() -> None:
    old, new = (read_translate(fields(tag_handling="xml", tag_handling_version=version)) for version in ("v1", "v2"))
    response = pb.TranslateResponse(translations=[pb.Translation(text="x")])

    assert old.message.text.tags.repair
    assert not new.message.text.tags.repair
    assert write_translate(response, new)["translations"][0]["tag_handling_version"] == "v2"


def test_html_has_only_tags_to_ignore_and_plain_text_none() -> None:
    tags = {"ignore_tags": "Raw", "splitting_tags": "p", "outline_detection": False}

    html = read_translate(fields(tag_handling="html", **tags)).message
    plain = read_translate(fields(**tags)).message

    assert (html.mime_type, html.text.tags) == ("text/html", pb.TagRules(ignored=["raw"]))
    assert (plain.mime_type, plain.text.HasField("tags")) == ("", False)


@pytest.mark.parametrize(
    ("split", "tag_handling", "joins"),
    [("0", "", True), (0, "", True), ("nonewlines", "", True), (1, "", False), ("0", "xml", False)],
)
def test_lines_are_joined_if_a_line_break_is_not_to_split(split: object, tag_handling: str, joins: bool) -> None:
    message = read_translate(fields(split_sentences=split, tag_handling=tag_handling)).message

    assert message.text.join_lines == joins


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"glossary_id": UUID}, [f"{UUID.lower()}.en-de"]),
        ({"glossary_id": UUID, "target_lang": "EN-US", "source_lang": "DE"}, [f"{UUID.lower()}.de-en"]),
        ({"glossary_id": "it"}, ["it"]),
        ({"glossary_ids": [UUID, "it"]}, [f"{UUID.lower()}.en-de", "it"]),
        ({"glossary_ids": f"{UUID},it"}, [f"{UUID.lower()}.en-de", "it"]),
        ({"glossary_ids": []}, []),
    ],
)
def test_glossaries_are_named_by_id_and_direction(given: dict[str, Any], names: list[str]) -> None:
    assert list(read_translate(fields(**({"source_lang": "en"} | given))).message.glossary.names) == names


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"text": []}, "Parameter 'text' not specified"),
        ({"text": None}, "Parameter 'text' not specified"),
        ({"text": [1]}, "text[0]: must be a string, not a number"),
        ({"text": {"a": 1}}, "text[0]: must be a string, not an object"),
        ({"text": ["a\ud800"]}, "text[0]: must be Unicode text without halves of surrogate pairs"),
        ({"target_lang": ""}, "Value for 'target_lang' not supported."),
        ({"target_lang": 3}, "target_lang: must be a string, not a number"),
        ({"source_lang": ["en"]}, "source_lang: must be a string, not a list"),
        ({"formality": "rude"}, "Value for 'formality' not supported."),
        ({"split_sentences": "2"}, "Value for 'split_sentences' not supported."),
        ({"split_sentences": True}, "Value for 'split_sentences' not supported."),
        ({"tag_handling": "rtf"}, "Value for 'tag_handling' not supported."),
        ({"tag_handling": ["xml"]}, "Value for 'tag_handling' not supported."),
        ({"tag_handling_version": "v3"}, "Value for 'tag_handling_version' not supported."),
        ({"preserve_formatting": "maybe"}, "Value for 'preserve_formatting' not supported."),
        ({"outline_detection": 2}, "Value for 'outline_detection' not supported."),
        ({"show_billed_characters": 1.5}, "Value for 'show_billed_characters' not supported."),
        ({"model_type": "cheap"}, "Value for 'model_type' not supported."),
        ({"context": 1}, "context: must be a string, not a number"),
        ({"ignore_tags": [1], "tag_handling": "xml"}, "ignore_tags[0]: must be a string, not a number"),
        ({"style_id": "a"}, "Value for 'style_id' not supported."),
        ({"translation_memory_id": "a"}, "Value for 'translation_memory_id' not supported."),
        ({"custom_instructions": ["Be brief."]}, "Value for 'custom_instructions' not supported."),
        ({"glossary_id": UUID}, "Use of a glossary requires the source_lang parameter to be specified"),
        ({"glossary_id": "a", "glossary_ids": ["b"], "source_lang": "en"}, "Value for 'glossary_ids' not supported."),
        ({"glossary_ids": ["a"] * 6, "source_lang": "en"}, "Value for 'glossary_ids' not supported."),
    ],
)
def test_what_is_not_served_is_refused_in_deepls_words(given: dict[str, Any], words: str) -> None:
    assert refused(fields(**given)) == (400, words)


def test_no_text_and_no_target_are_refused() -> None:
    assert refused({"target_lang": ["DE"]}) == (400, "Parameter 'text' not specified")
    assert refused({"text": ["a"]}) == (400, "Value for 'target_lang' not supported.")


@pytest.mark.parametrize(
    ("header", "given", "key"),
    [
        ("DeepL-Auth-Key a:fx", {}, "a:fx"),
        ("deepl-auth-key  a ", {"auth_key": ["b"]}, "a"),
        (None, {"auth_key": ["b"]}, "b"),
        ("Basic x", {}, None),
        (None, {"auth_key": [""]}, None),
    ],
)
def test_a_key_comes_in_a_header_or_as_a_field(header: str | None, given: Fields, key: str | None) -> None:
    assert read_key(header, given) == key


def test_an_answer_has_the_language_and_what_was_asked_for() -> None:
    response = pb.TranslateResponse(
        translations=[
            pb.Translation(text="Ein Hund.", detected_language_code="en"),
            pb.Translation(text="\U0001f600", route=[pb.RouteLeg(source_language_code="zh-Hant")]),
        ]
    )
    plain = read_translate(fields(text=["A dog.", "\U0001f600"]))
    full = read_translate(
        fields(text=["A dog.", "\U0001f600"], show_billed_characters="1", model_type="latency_optimized")
    )

    assert write_translate(response, plain) == {
        "translations": [
            {"detected_source_language": "EN", "text": "Ein Hund."},
            {"detected_source_language": "ZH", "text": "\U0001f600"},
        ]
    }
    assert write_translate(response, full)["translations"][1] == {
        "detected_source_language": "ZH",
        "text": "\U0001f600",
        "billed_characters": 1,
        "model_type_used": "latency_optimized",
    }


def test_the_language_of_an_answer_is_that_of_all_texts_if_they_have_one() -> None:
    response = pb.TranslateResponse(translations=[pb.Translation(text="x")], source_language_code="en-GB")

    answer = write_translate(response, read_translate(fields()))

    assert answer["translations"][0]["detected_source_language"] == "EN"


def test_a_text_that_fails_fails_the_request() -> None:
    status = pb.Status(code=3, message="contents[1]: must be well-formed XML, not so")
    response = pb.TranslateResponse(translations=[pb.Translation(text="x"), pb.Translation(status=status)])

    with pytest.raises(FailedText) as caught:
        write_translate(response, read_translate(fields(text=["a", "b"])))

    assert answered(caught.value) == (
        400,
        "Tag handling parsing failed, please check input. text[1]: must be well-formed XML, not so",
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InvalidRequest("source_language_code", "must be one of en"), (400, "Value for 'source_lang' not supported.")),
        (InvalidRequest("target_language_code", "must be one of de"), (400, "Value for 'target_lang' not supported.")),
        (GlossaryNotFound("glossary.names[0]: x"), (400, "Glossary not found")),
        (InvalidRequest("contents", "must be at most 1024"), (400, "text: must be at most 1024")),
        (ModelNotFound("contents cannot be read"), (404, "contents cannot be read")),
        (InvalidRequest("glossary", "must be empty"), (400, "glossary_id: must be empty")),
        (InvalidRequest("text.tags.ignored", "must be few"), (400, "ignore_tags: must be few")),
        (
            InvalidRequest("formality", "must be unspecified"),
            (400, "Target language 'EN-US' doesn't support formality."),
        ),
        (Overloaded("queue is full", "sentences"), (429, "queue is full")),
        (PermissionDenied("priority"), (403, "priority")),
        (ModelNotFound("model"), (404, "model")),
        (NotHere("Dictionary not found"), (404, "Dictionary not found")),
        (TranslationError("internal error"), (500, "internal error; request id my-id")),
    ],
)
def test_errors_have_deepls_words_and_statuses(error: TranslationError, expected: tuple[int, str]) -> None:
    error.is_recorded = True

    told = refusal(error, pb.TranslateRequest(target_language_code="EN-US"))

    assert answered(told) == expected
    assert told.is_recorded


def test_no_long_language_is_told_back() -> None:
    assert answered(no_formality("x" * 33)) == (400, "Target language 'given' doesn't support formality.")


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("default", pb.FORMALITY_UNSPECIFIED),
        ("Less", pb.FORMALITY_LESS),
        ("more", pb.FORMALITY_MORE),
        ("prefer_less", pb.FORMALITY_PREFER_LESS),
        ("prefer_more", pb.FORMALITY_PREFER_MORE),
    ],
)
def test_a_formality_is_ours(given: str, asked: pb.Formality) -> None:
    assert read_translate(fields(formality=given)).message.formality == asked


def test_a_caller_without_a_key_is_told_which_header_is_needed() -> None:
    status, words = answered(Unauthenticated("an API key is needed"))

    assert status == 403
    assert "Authorization: DeepL-Auth-Key KEY" in words


def test_nothing_is_used_up_and_codes_have_a_base() -> None:
    assert write_usage() == {"character_count": 0, "character_limit": 10**12}
    assert [base_code(code) for code in ("EN-US", "zh_Hant", "de", "")] == ["en", "zh", "de", ""]
