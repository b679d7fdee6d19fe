import csv
import itertools
import time

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.fronts import languages
from server.fronts.languages import directions, is_right_to_left, kept_for_models, names_of, standard_code, unchanged


def model(*pairs: str, sources: str = "", targets: str = "") -> pb.ModelInfo:
    named = [pair.split(">") for pair in pairs]
    return pb.ModelInfo(
        language_pairs=[pb.LanguagePair(source_language_code=a, target_language_code=b) for a, b in named],
        source_language_codes=sources.split(),
        target_language_codes=targets.split(),
    )


MANY = model(sources="a b", targets="b c")
ALL = pb.ListModelsResponse(models=[model("en>de", "de>en", "en>pt", "en>zh-Hans", "zh-Hans>en", "no>en", "en>no")])


@pytest.mark.parametrize(
    ("code", "english", "native"),
    [
        ("en", "English", "English"),
        ("de", "German", "Deutsch"),
        ("zh-Hans", "Chinese (Simplified)", "中文（简体）"),
        ("pt-BR", "Portuguese (Brazil)", "português (Brasil)"),
        ("ace-Arab", "Acehnese (Arab)", "Acehnese (Arab)"),
        ("deu_Latn", "deu_Latn", "deu_Latn"),
        ("", "", ""),
    ],
)
def test_languages_have_names_and_unknown_ones_their_codes(code: str, english: str, native: str) -> None:
    assert names_of(code) == (english, native)


def test_the_table_of_names_is_whole_and_has_each_code_once() -> None:
    with languages._NAMES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))

    assert all(len(row) == 3 and all(row) for row in rows)
    assert len({row[0] for row in rows}) == len(rows) > 400


@pytest.mark.parametrize(
    ("code", "expected"),
    [("zt", "zh-Hant"), ("pb", "pt-BR"), ("zh-CHS", "zh-Hans"), ("zh_CHT", "zh-Hant"), ("zh-TW", "zh-TW"), ("", "")],
)
def test_codes_of_vendors_are_replaced_and_others_left_to_the_server(code: str, expected: str) -> None:
    assert standard_code(code) == expected


def test_directions_are_those_of_all_models() -> None:
    served = pb.ListModelsResponse(
        models=[model("en>de", "en>fr"), model("de>en"), model(sources="a b", targets="b c")]
    )

    assert directions(served) == {"en": ["de", "fr"], "de": ["en"], "a": ["b", "c"], "b": ["c"]}


def test_directions_over_a_pivot_are_served_too() -> None:
    served = pb.ListModelsResponse(
        models=[model("de>en", "fr>en"), model("en>de", "en>cs")], pivot_language_codes=["EN"]
    )

    assert directions(served) == {"de": ["en", "cs"], "fr": ["en", "de", "cs"], "en": ["de", "cs"]}


def test_two_pivots_do_not_add_up() -> None:
    models = [model("a>en"), model("en>b"), model("b>c")]

    served = pb.ListModelsResponse(models=models, pivot_language_codes=["en", "b"])
    assert directions(served) == {"a": ["en", "b"], "en": ["b", "c"], "b": ["c"]}


def test_a_model_of_many_languages_takes_time_by_its_directions() -> None:
    numbers = itertools.count()

    def seconds(num_languages: int) -> float:
        codes = " ".join(f"x{next(numbers)}" for _ in range(num_languages))  # new ones: the last answer is kept
        served = pb.ListModelsResponse(models=[model(sources=codes, targets=codes)])
        started = time.process_time()
        directions(served)
        return time.process_time() - started

    quick, slow = (min(seconds(num_languages) for _ in range(5)) for num_languages in (200, 400))
    assert slow / quick < 8  # four times as many directions; sixteen would be a square


def test_an_answer_is_kept_until_the_models_are_others() -> None:
    asked: list[int] = []

    @kept_for_models
    def count(served: pb.ListModelsResponse) -> int:
        asked.append(len(served.models))
        return len(served.models)

    one, two = (pb.ListModelsResponse(models=[model("en>de")] * number) for number in (1, 2))
    same = pb.ListModelsResponse()
    same.CopyFrom(one)

    assert [count(one), count(same), count(two), count(one)] == [1, 1, 2, 1]
    assert asked == [1, 2]


def test_a_script_decides_the_direction_of_writing() -> None:
    codes = ["ar", "he", "en", "az", "az-Arab", "ur-Latn", "de-DE", "ar-EG"]

    assert [is_right_to_left(code) for code in codes] == [True, True, False, False, True, False, False, True]


@pytest.mark.parametrize(
    ("source", "target"), [("EN", "EN-US"), ("en", "EN-GB"), ("PT", "pt-br"), ("zh", "ZH-HANS"), ("NB", "no")]
)
def test_texts_in_the_target_language_stay(source: str, target: str) -> None:
    asked = pb.TranslateRequest(contents=["a", ""], source_language_code=source, target_language_code=target)

    answer = unchanged(asked, ALL)

    assert answer is not None
    assert [each.text for each in answer.translations] == ["a", ""]
    assert answer.source_language_code == source


@pytest.mark.parametrize(
    ("source", "target"), [("DE", "EN-US"), ("ZH-HANS", "ZH-HANT"), ("PT-PT", "PT-BR"), ("FR", "FR"), ("", "DE")]
)
def test_texts_in_another_language_or_one_that_is_not_served_do_not(source: str, target: str) -> None:
    asked = pb.TranslateRequest(contents=["a"], source_language_code=source, target_language_code=target)

    assert unchanged(asked, ALL) is None


def test_a_model_between_two_regions_translates() -> None:
    asked = pb.TranslateRequest(contents=["a"], source_language_code="EN-US", target_language_code="EN-GB")

    assert unchanged(asked, pb.ListModelsResponse(models=[model("en-US>en-GB")])) is None
