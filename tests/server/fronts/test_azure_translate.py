from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, ModelNotFound, NotServing
from server.fronts.azure import WrongRequest
from server.fronts.azure_answers import write_translate
from server.fronts.azure_translate import (
    MOST_REQUESTS,
    Translate,
    read_translate,
    without_what_is_missing,
)
from server.translation.rules import MAX_ANSWER_CHARACTERS, MAX_TEXTS

V3 = {"api-version": ["3.0"], "from": ["en"], "to": ["de"]}
V2026 = {"api-version": ["2026-06-06"]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "language", "targets", "inputs", "script", "tone", "x"]), inner)
    ),
    max_leaves=12,
)


def inputs(*items: Any) -> dict[str, Any]:
    return {"inputs": list(items)}


def item(**fields: Any) -> dict[str, Any]:
    return {"text": "Hello", "language": "en", "targets": [{"language": "de"}], **fields}


def echoes(asked: Translate) -> Any:
    """What the answer is if each text is translated into itself with the target's code."""
    responses = {
        key: pb.TranslateResponse(
            translations=[pb.Translation(text=f"{text} {key.target}") for text in part.message.contents],
            source_language_code="en",
        )
        for key, part in asked.parts.items()
    }
    return write_translate(asked, responses)


def refused(query: dict[str, list[str]], value: Any) -> tuple[int, str]:
    with pytest.raises(WrongRequest) as caught:
        read_translate(query, value)
    return caught.value.number, caught.value.field


def test_texts_and_options_of_the_query_are_one_request_for_each_target() -> None:
    query = {**V3, "to": ["de,fr"], "texttype": ["HTML"], "category": ["my-model"], "includealignment": ["true"]}
    asked = read_translate(query, [{"Text": "A"}, {"text": "B"}])

    first, second = (part.message for part in asked.parts.values())
    assert first == pb.TranslateRequest(
        contents=["A", "B"],
        source_language_code="en",
        target_language_code="de",
        mime_type="text/html",
        model="my-model",
        output=pb.OutputOptions(text_once=True),  # of markup nothing is aligned
    )
    assert second.target_language_code == "fr"
    assert asked.num_characters == 4
    assert echoes(asked) == [
        {"translations": [{"text": "A de", "to": "de"}, {"text": "A fr", "to": "fr"}]},
        {"translations": [{"text": "B de", "to": "de"}, {"text": "B fr", "to": "fr"}]},
    ]


def test_texts_of_the_later_version_have_options_of_their_own() -> None:
    asked = read_translate(
        V2026,
        inputs(
            item(targets=[{"language": "de"}, {"Language": "zh-CHS", "script": None}]),
            item(text="A", language=None, textType="Plain"),
            item(text="B", targets=[{"language": "de", "deploymentName": "general", "allowFallback": True}]),
        ),
    )

    assert [list(part.message.contents) for part in asked.parts.values()] == [["Hello", "B"], ["Hello"], ["A"]]
    assert [key.target for key in asked.parts] == ["de", "zh-Hans", "de"]
    first, second, third = echoes(asked)["value"]
    assert [each["language"] for each in first["translations"]] == ["de", "zh-CHS"]
    assert second["detectedLanguage"] == {"language": "en", "score": 0.0}
    assert third == {"translations": [{"language": "de", "sourceCharacters": 1, "text": "B de"}]}


def test_what_azure_leaves_out_is_left_out() -> None:
    query = {**V3, "includealignment": ["true"], "category": ["none"]}
    ((key, part),) = read_translate(query, [{"text": "A"}]).parts.items()

    no_links = without_what_is_missing(part, key, InvalidRequest("output.include_alignment", "must be false"))
    assert no_links is not None
    assert not no_links.message.output.include_alignment
    no_model = without_what_is_missing(part, key, ModelNotFound("none"))
    assert no_model is not None
    assert no_model.message.model == ""
    strict = key._replace(may_use_another=False)
    assert without_what_is_missing(part, strict, ModelNotFound("none")) is None
    assert without_what_is_missing(part, key, NotServing("stops")) is None


@pytest.mark.parametrize(
    ("options", "number", "field"),
    [
        ({"to": []}, 400036, "to"),
        ({"to": ["de,"]}, 400036, "to"),
        ({"texttype": ["pdf"]}, 400071, "textType"),
        ({"profanityaction": ["Deleted"]}, 400042, "profanityAction"),
        ({"profanitymarker": ["Stars"]}, 400042, "profanityMarker"),
        ({"includealignment": ["yes"]}, 400042, "includeAlignment"),
        ({"toscript": ["Latn"]}, 400080, "toScript"),
        ({"from": [], "fromscript": ["Latn"]}, 400006, "fromScript"),
    ],
)
def test_a_wrong_option_of_the_query_is_named(options: dict[str, list[str]], number: int, field: str) -> None:
    assert refused({**V3, **options}, [{"text": "A"}]) == (number, field)


def test_a_tone_is_a_formality_and_a_request_of_its_own() -> None:
    targets = [{"language": "de", "tone": tone} for tone in ("formal", "Informal", "neutral", "")]
    parts = read_translate(V2026, inputs(item(targets=targets))).parts.values()

    assert [part.message.formality for part in parts] == [
        pb.FORMALITY_MORE,
        pb.FORMALITY_LESS,
        pb.FORMALITY_UNSPECIFIED,
    ]


@pytest.mark.parametrize(
    ("value", "number", "field"),
    [
        ([], 400000, "body"),
        (inputs(), 400000, "inputs"),
        (inputs(item(text=None)), 400005, "inputs[0].text"),
        (inputs(item(), item(textType="pdf")), 400071, "inputs[1].textType"),
        (inputs(item(language=1)), 400042, "inputs[0].language"),
        (inputs(item(targets=[])), 400000, "inputs[0].targets"),
        (inputs(item(targets=[{}])), 400036, "inputs[0].targets[0].language"),
        (inputs(item(targets=[{"language": "de", "tone": "rude"}])), 400042, "inputs[0].targets[0].tone"),
        (
            inputs(item(targets=[{"language": "de", "referenceTextPairs": [{}]}])),
            400042,
            "inputs[0].targets[0].referenceTextPairs",
        ),
        (
            inputs(item(targets=[{"language": "de", "allowFallback": "x"}])),
            400042,
            "inputs[0].targets[0].allowFallback",
        ),
    ],
)
def test_a_wrong_field_of_the_body_is_named(value: Any, number: int, field: str) -> None:
    assert refused(V2026, value) == (number, field)


def test_a_call_is_at_most_so_many_requests() -> None:
    targets = [{"language": f"l{n}"} for n in range(MOST_REQUESTS + 1)]

    assert len(read_translate(V2026, inputs(item(targets=targets[:-1]))).parts) == MOST_REQUESTS
    assert refused(V2026, inputs(item(targets=targets))) == (400000, "targets")


def test_a_call_has_at_most_so_many_texts() -> None:
    texts = [{"text": ""}] * (MAX_TEXTS + 1)

    assert len(read_translate(V3, texts[1:]).inputs) == MAX_TEXTS
    assert refused(V3, texts) == (400077, "body")
    assert refused(V2026, inputs(*[item()] * (MAX_TEXTS + 1))) == (400077, "inputs")


def test_a_long_text_is_not_copied_for_too_many_targets() -> None:
    query = {**V3, "to": ["de", "fr"]}
    longest = "a" * (MAX_ANSWER_CHARACTERS // 2)

    assert read_translate(query, [{"text": longest}]).num_characters == MAX_ANSWER_CHARACTERS
    assert refused(query, [{"text": longest + "a"}]) == (400077, "text")


@given(value=JSON, query=st.dictionaries(st.sampled_from(["to", "from", "texttype"]), st.lists(st.text(max_size=3))))
def test_anything_is_understood_or_refused(value: Any, query: dict[str, list[str]]) -> None:
    for version, body in (("3.0", value), ("2026-06-06", value), ("2026-06-06", {"inputs": value})):
        try:
            asked = read_translate({**query, "api-version": [version]}, body)
        except WrongRequest:
            continue
        assert echoes(asked)
