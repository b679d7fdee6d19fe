"""Descriptions of models."""

from babelserve.model_infos import model_infos
from babelserve.v1 import translation_pb2


def test_languages_are_those_that_the_model_names_or_those_of_its_pairs() -> None:
    pair = translation_pb2.LanguagePair(source_language_code="en", target_language_code="de")
    response = translation_pb2.ListModelsResponse(
        models=[
            translation_pb2.ModelInfo(name="a", language_pairs=[pair, pair], has_alignment=True),
            translation_pb2.ModelInfo(name="b", source_language_codes=["fr"], target_language_codes=["en"]),
        ]
    )

    first, second = model_infos(response)

    assert (first.name, first.language_pairs, first.has_alignment) == ("a", (("en", "de"), ("en", "de")), True)
    assert (first.source_languages, first.target_languages) == (("en",), ("de",))
    assert (first.family, first.has_length_control, first.max_length_ratio) == ("transformer", False, 0.0)
    assert (second.language_pairs, second.source_languages, second.target_languages) == ((), ("fr",), ("en",))


def test_a_model_says_whether_it_obeys_lengths() -> None:
    model = translation_pb2.ModelInfo(name="a", family="one_pass", has_length_control=True, max_length_ratio=2.0)

    (found,) = model_infos(translation_pb2.ListModelsResponse(models=[model]))

    assert (found.family, found.has_length_control, found.max_length_ratio) == ("one_pass", True, 2.0)
