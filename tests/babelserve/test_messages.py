from typing import Any

import numpy as np
import pytest

from babelserve import Client
from babelserve.errors import InvalidRequest
from babelserve.messages import TranslateOptions, translate_result
from babelserve.v1 import translation_pb2
from tests.babelserve.scripted_server import ScriptedService


def test_options_reach_the_server_and_absent_ones_stay_absent(client: Client, service: ScriptedService) -> None:
    client.translate(
        ["a"], source="en", target="de", model="m", beam_size=2, length_penalty=0.5, priority="low", traffic_key="k"
    )
    spare: Any = {"beam_size": np.int64(1), "length_penalty": np.float32(0.5), "with_scores": False}
    client.translate(["a"], target="de", **spare)

    request, spared = service.requests
    assert (request.source_language_code, request.target_language_code, request.model) == ("en", "de", "m")
    assert (request.decoding.beam_size, request.decoding.length_penalty) == (2, 0.5)
    assert (request.priority, request.traffic_key, spared.traffic_key) == (translation_pb2.PRIORITY_LOW, "k", "")
    assert not request.decoding.HasField("num_hypotheses")
    assert not request.decoding.HasField("max_output_tokens")
    assert not request.decoding.HasField("with_scores")
    assert (spared.decoding.HasField("with_scores"), spared.decoding.with_scores) == (True, False)
    assert (spared.decoding.beam_size, spared.decoding.length_penalty) == (1, 0.5)


def test_what_is_kept_and_that_attributes_are_translated_reach_the_server(
    client: Client, service: ScriptedService
) -> None:
    client.translate(["a"], target="de", mime_type="text/html", translate_attributes=True, keep=["ACME", ("<<", ">>")])

    (request,) = service.requests
    assert request.text == translation_pb2.TextOptions(
        translate_attributes=True,
        keep=[translation_pb2.KeepRule(literal="ACME"), translation_pb2.KeepRule(opening="<<", closing=">>")],
    )


def test_one_string_in_place_of_a_list_is_refused(client: Client) -> None:
    with pytest.raises(TypeError, match="sequence of texts"):
        client.translate("hello", target="de")


@pytest.mark.parametrize(
    ("contents", "target", "options", "message"),
    [
        ([None], "de", {}, r"contents\[0\] must be a string, not NoneType"),
        (["a", b"b"], "de", {}, r"contents\[1\] must be a string, not bytes"),
        (b"ab", "de", {}, "contents must be a sequence of texts, not one string"),
        (None, "de", {}, "contents must be a sequence of texts, not NoneType"),
        (["a"], None, {}, "target must be a string, not NoneType"),
        (["a"], "de", {"source": 1}, "source must be a string, not int"),
        (["a"], "de", {"beam_size": 2.0}, "beam_size must be a whole number, not float"),
        (["a"], "de", {"beam_size": True}, "beam_size must be a whole number, not bool"),
        (["a"], "de", {"length_penalty": "1"}, "length_penalty must be a number, not str"),
        (["a"], "de", {"with_scores": 1}, "with_scores must be True or False, not int"),
        (["a"], "de", {"keep": "Acme"}, "keep must be a sequence of rules, not one string"),
        (["a"], "de", {"keep": ["a", 1]}, r"keep\[1\] must be a string, or an opening and a closing, not 1"),
        (["a"], "de", {"keep": [("a",)]}, r"keep\[0\] must be a string, or an opening and a closing"),
        (["a"], "de", {"keep": [("a", None)]}, r"keep\[0\] must be a string, not NoneType"),
        (["a"], "de", {"priority": 3}, "priority must be a string, not int"),
    ],
)
def test_what_has_another_type_is_refused_by_its_name(
    client: Client, contents: Any, target: Any, options: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=f"^{message}"):
        client.translate(contents, target=target, **options)


def test_none_is_as_if_an_option_were_not_there(client: Client, service: ScriptedService) -> None:
    names: Any = dict.fromkeys(TranslateOptions.__annotations__)
    client.translate(("a",), target="de", **names)
    client.translate(iter("a"), target="de", length_penalty=1)  # type: ignore[arg-type]

    plain, penalised = service.requests
    assert plain == translation_pb2.TranslateRequest(
        contents=["a"],
        target_language_code="de",
        decoding=translation_pb2.DecodingOptions(),
        output=translation_pb2.OutputOptions(text_once=True),
        text=translation_pb2.TextOptions(),
    )
    assert penalised.decoding.length_penalty == 1.0


def test_a_misspelt_option_is_refused(client: Client) -> None:
    with pytest.raises(TypeError, match="unknown option: beam"):
        client.translate(["hello"], target="de", beam=1)  # type: ignore[call-arg]


def test_what_protobuf_cannot_carry_is_an_invalid_request(client: Client, service: ScriptedService) -> None:
    with pytest.raises(InvalidRequest, match=r"contents\[1\].*surrogate"):
        client.translate(["a", "b\udcff"], target="de")
    with pytest.raises(InvalidRequest, match=r"target is not valid Unicode"):
        client.translate(["a"], target="d\udcff")
    with pytest.raises(InvalidRequest, match="beam_size must be from 0 to 4294967295, not -1"):
        client.translate(["a"], target="de", beam_size=-1)
    with pytest.raises(InvalidRequest, match="sampling_seed must be from 0 to 18446744073709551615, not"):
        client.translate(["a"], target="de", sampling_seed=2**64)
    with pytest.raises(InvalidRequest, match="priority must be one of high, normal, low"):
        client.translate(["a"], target="de", priority="urgent")
    with pytest.raises(InvalidRequest, match="formality must be one of less, more, prefer_less, prefer_more"):
        client.translate(["a"], target="de", formality="rude")

    assert service.num_attempts == 0


def test_the_best_translation_is_read_the_same_if_it_is_sent_once_or_twice() -> None:
    twice = [translation_pb2.Hypothesis(text="A", score=-1.0), translation_pb2.Hypothesis(text="B", score=-2.0)]
    once = [translation_pb2.Hypothesis(score=-1.0), twice[1]]
    answers = [
        translation_pb2.TranslateResponse(translations=[translation_pb2.Translation(text="A", hypotheses=hypotheses)])
        for hypotheses in (twice, once)
    ]

    first, second = (translate_result(answer, 1).translations[0] for answer in answers)

    assert first == second
    assert [(each.text, each.score) for each in first.hypotheses] == [("A", -1.0), ("B", -2.0)]
