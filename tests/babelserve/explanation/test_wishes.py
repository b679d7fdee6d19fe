import dataclasses
from typing import Any

import pytest

from babelserve.explanation.wishes import wishes
from babelserve.results import ModelInfo


def model(name: str, target: str, *, can: bool) -> ModelInfo:
    facts: dict[str, Any] = {"version": "1", "variant": "cpu-int8", "max_beam_size": 8, "has_shortlist": False}
    facts |= {"max_source_tokens": 9, "max_target_tokens": 9, "language_pairs": (("en", target),)}
    return ModelInfo(name=name, has_alignment=can, has_confidence=can, target_languages=(target,), **facts)


MODELS = [model("new", "de", can=True), model("old", "fr", can=False), model("newer", "de", can=True)]


@pytest.mark.parametrize(
    ("target", "name", "can"),
    [("de", None, True), ("fr", None, False), ("fr", "new", True), ("de", "old", False), ("deu_Latn", None, False)],
)
def test_only_what_each_model_can_say_is_asked_for(target: str, name: str | None, can: bool) -> None:
    asked = wishes(MODELS, target, name)

    assert (asked["include_alignment"], asked["include_confidence"]) == (can, can)
    assert asked["include_sentences"]
    assert asked["include_tokens"]
    assert asked["include_search"]


def test_a_model_that_writes_all_words_at_once_is_asked_for_no_tokens() -> None:
    at_once = dataclasses.replace(MODELS[0], family="one_pass")

    asked = wishes([at_once], "de", None)

    assert (asked["include_sentences"], asked["include_tokens"], asked["include_search"]) == (True, False, False)
