import pytest

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest
from server.fronts.azure import WrongRequest
from server.fronts.azure_answers import check_answered, named, write_translate
from server.fronts.azure_translate import read_translate
from tests.server.fronts.test_azure_translate import V3, V2026, inputs, item


def test_words_and_sentences_are_counted_in_code_points_of_the_text() -> None:
    query = {**V3, "includealignment": ["true"], "includesentencelength": ["TRUE"]}
    asked = read_translate(query, [{"text": "😀 A. B."}])
    (key,) = asked.parts
    sentences = [
        pb.Sentence(source_begin=0, source_end=4, begin=0, end=3),
        pb.Sentence(
            source_begin=5,
            source_end=7,
            begin=4,
            end=6,
            links=[pb.Link(source_begin=0, source_end=1, target_begin=0, target_end=2)],
        ),
    ]
    response = pb.TranslateResponse(translations=[pb.Translation(text="XX. YY", sentences=sentences)])

    (translation,) = write_translate(asked, {key: response})[0]["translations"]
    assert translation["alignment"] == {"proj": "5:5-4:5"}
    assert translation["sentLen"] == {"srcSentLen": [5, 2], "transSentLen": [4, 2]}


def test_an_error_of_one_request_names_the_text_of_the_call() -> None:
    asked = read_translate(V2026, inputs(item(language="fr"), item()))
    _, (key, part) = asked.parts.items()
    failed = pb.Translation(status=pb.Status(code=3, message="contents[0]: is too long"))

    with pytest.raises(WrongRequest) as caught:
        check_answered(asked, key, pb.TranslateResponse(translations=[failed]))

    assert (caught.value.number, caught.value.field) == (400005, "inputs[1].text")
    wrong = named(InvalidRequest("target_language_code", "must be en"), asked, part)
    assert str(wrong) == "targets.language: must be en"
