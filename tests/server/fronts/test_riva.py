import pytest
from hypothesis import given
from hypothesis import strategies as st

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, ModelNotFound, TranslationError
from server.fronts.riva import read_translate, write_languages, write_translate
from server.fronts.v1 import riva_pb2 as riva

MODELS = pb.ListModelsResponse(
    models=[
        pb.ModelInfo(name="a", source_language_codes=["en"], target_language_codes=["de", "fr"]),
        pb.ModelInfo(name="b", source_language_codes=["de"], target_language_codes=["en"]),
    ]
)


def test_fields_are_those_of_ours() -> None:
    request = riva.RivaTranslateTextRequest(
        texts=["a", "b"], model="m", source_language="en-US", target_language="de-DE", max_len_variation="20"
    )

    assert read_translate(request) == pb.TranslateRequest(
        contents=["a", "b"],
        model="m",
        source_language_code="en-US",
        target_language_code="de-DE",
        output=pb.OutputOptions(text_once=True),
    )


@pytest.mark.parametrize(
    "phrases", [["NVIDIA##,dog##Hund, ,"], ["NVIDIA", "dog ## Hund"], ["NVIDIA##NVIDIA,dog##Hund"]]
)
def test_phrases_are_terms_however_they_are_sent(phrases: list[str]) -> None:
    message = read_translate(riva.RivaTranslateTextRequest(texts=["a"], dnt_phrases=phrases))

    assert [(term.source, term.target) for term in message.glossary.terms] == [("NVIDIA", "NVIDIA"), ("dog", "Hund")]


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (riva.RivaTranslateTextRequest(max_len_variation="1.5"), "max_len_variation"),
        (riva.RivaTranslateTextRequest(dnt_phrases=["a," * 1000]), "dnt_phrases"),
        (riva.RivaTranslateTextRequest(dnt_phrases=[""] * 1001), "dnt_phrases"),
    ],
)
def test_what_means_nothing_is_refused_by_its_field(request_: riva.RivaTranslateTextRequest, named: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_translate(request_)

    assert caught.value.field == named


def test_an_answer_has_the_callers_language_and_id() -> None:
    request = riva.RivaTranslateTextRequest(texts=["a"], target_language="de-DE", id=riva.RivaRequestId(value="7"))

    answer = write_translate(request, pb.TranslateResponse(translations=[pb.Translation(text="b")]))

    assert answer == riva.RivaTranslateTextResponse(
        translations=[riva.RivaTranslation(text="b", language="de-DE")], id=riva.RivaRequestId(value="7")
    )


def test_a_text_that_failed_fails_the_call() -> None:
    failed = pb.Translation(status=pb.Status(code=3, message="contents[0]: is wrong"))

    with pytest.raises(TranslationError, match="is wrong"):
        write_translate(riva.RivaTranslateTextRequest(), pb.TranslateResponse(translations=[failed]))


def test_languages_are_told_by_the_name_of_the_model() -> None:
    everything = write_languages(riva.RivaLanguagesRequest(), MODELS).languages
    one = write_languages(riva.RivaLanguagesRequest(model="b"), MODELS).languages

    assert {name: (list(pair.src_lang), list(pair.tgt_lang)) for name, pair in everything.items()} == {
        "a": (["en"], ["de", "fr"]),
        "b": (["de"], ["en"]),
    }
    assert list(one) == ["b"]
    with pytest.raises(ModelNotFound, match="model: no is not served here"):
        write_languages(riva.RivaLanguagesRequest(model="no"), MODELS)


@given(st.lists(st.text(alphabet="a#, ä"), max_size=4), st.text())
def test_any_request_is_read_or_refused(phrases: list[str], length: str) -> None:
    try:
        message = read_translate(riva.RivaTranslateTextRequest(dnt_phrases=phrases, max_len_variation=length))
    except InvalidRequest:
        return
    assert all(term.target for term in message.glossary.terms)
