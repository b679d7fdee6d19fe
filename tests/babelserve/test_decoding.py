"""How translations are searched for, as it is sent."""

from typing import Any

import pytest

from babelserve.decoding import decoding_options
from babelserve.errors import InvalidRequest
from babelserve.messages import TranslateOptions, translate_request
from babelserve.v1 import translation_pb2


def test_what_is_not_given_is_absent() -> None:
    assert decoding_options({}) == translation_pb2.DecodingOptions()
    assert decoding_options({"beam_size": None, "sampling_seed": None, "suppress": None, "source": "en"}) == (
        translation_pb2.DecodingOptions()
    )


def test_zeros_are_given() -> None:
    sent = decoding_options({"min_output_tokens": 0, "sampling_top_k": 0, "end_loops": False})

    assert [sent.HasField(name) for name in ("min_output_tokens", "sampling", "end_loops")] == [True] * 3
    assert sent.sampling.HasField("top_k")
    assert not sent.sampling.HasField("seed")


def test_every_field_of_the_contract_is_an_option() -> None:
    fields = {field.name for field in translation_pb2.DecodingOptions.DESCRIPTOR.fields} - {"sampling"}
    fields |= {f"sampling_{field.name}" for field in translation_pb2.Sampling.DESCRIPTOR.fields}

    assert fields <= TranslateOptions.__annotations__.keys()


def test_a_length_is_given_in_one_way() -> None:
    assert decoding_options({"exact_tokens": 5}).WhichOneof("length") == "exact_tokens"
    assert decoding_options({"ratio": 0.5, "exact_tokens": None}).ratio == 0.5
    with pytest.raises(InvalidRequest, match=r"decoding\.ratio: must be left out with exact_tokens"):
        translate_request(["a"], "de", exact_tokens=5, ratio=0.5)


@pytest.mark.parametrize("option", ["suppress", "target_prefixes"])
@pytest.mark.parametrize("phrases", ["word", b"word", 5, {"word"}])
def test_phrases_are_a_sequence(option: str, phrases: Any) -> None:
    with pytest.raises(TypeError, match=rf"{option} must be a sequence of phrases"):
        translate_request(["a"], "de", **{option: phrases})


def test_a_phrase_is_text() -> None:
    assert list(translate_request(["a"], "de", suppress=("b", "c d")).decoding.suppress) == ["b", "c d"]
    with pytest.raises(TypeError, match=r"suppress\[1\] must be a string, not int"):
        translate_request(["a"], "de", suppress=["b", 5])  # type: ignore[list-item]
    with pytest.raises(InvalidRequest, match=r"suppress\[0\] is not valid Unicode"):
        translate_request(["a"], "de", suppress=["\ud800"])
    with pytest.raises(InvalidRequest, match=r"target_prefixes\[1\] is not valid Unicode"):
        translate_request(["a", "b"], "de", target_prefixes=["A", "\ud800"])


def test_prefixes_are_of_the_texts() -> None:
    assert list(translate_request(["a", "b"], "de", target_prefixes=("A", "")).target_prefixes) == ["A", ""]
