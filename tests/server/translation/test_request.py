"""A request is the contract's, without protobuf: whoever adds a field to one of them adds it to the others."""

import dataclasses
from typing import Any

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.decoding.options import DecodingOptions, Sampling
from server.translation.request import DecodingRequest, TranslationRequest

OF_THE_ANSWER = {"output"}  # what the answer's message holds is its front's
OF_THE_OUTPUT = {"with_alignment", "with_tokens", "with_search"}  # but what the engine must do for the answer
OF_CONFIDENCE = {"with_confidence"}  # which the engine need not know: it is made of tokens
OF_SCORES = {"targets"}  # of the other method
OF_STREAMS = {"with_partial_text"}
OF_THE_PAIR = {"given_targets"}
OF_THE_GLOSSARY = {"terms"}
OF_THE_VOCABULARY = {"suppressed"}  # the phrases of `suppress`
OF_THE_LANGUAGE = {"forced_prefix"}  # comes of the target language
OF_THE_TEXT = {"target_prefix"}  # the ids of `target_prefixes`
OF_THE_ENGINE = OF_THE_TEXT | OF_THE_LANGUAGE | OF_THE_OUTPUT | OF_THE_PAIR | OF_THE_GLOSSARY
OF_THE_SERVER = {"houses"}  # its own glossaries, which hold in every request
OF_THE_CALL = {"arrived", "deadline", "tenant", "is_bulk", "is_paid"}  # come with the call, not in its message


SINGULAR = [field for field in pb.DecodingOptions.DESCRIPTOR.fields if field.name != "suppress"]


def names(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def test_its_fields_are_those_of_the_contract() -> None:
    contract = {field.name for field in pb.TranslateRequest.DESCRIPTOR.fields}
    beside_it = OF_THE_CALL | OF_THE_OUTPUT | OF_CONFIDENCE | OF_SCORES | OF_STREAMS | OF_THE_SERVER

    assert names(TranslationRequest) | OF_THE_ANSWER == contract | beside_it
    assert not OF_THE_ANSWER & names(TranslationRequest)
    assert not OF_THE_CALL & contract


def test_its_decoding_fields_are_those_of_the_contract_and_of_the_engine() -> None:
    contract = {field.name for field in pb.DecodingOptions.DESCRIPTOR.fields}

    assert names(DecodingRequest) == contract
    assert contract - {"suppress"} == names(DecodingOptions) - OF_THE_ENGINE - OF_THE_VOCABULARY
    assert not OF_THE_LANGUAGE & contract


@pytest.mark.parametrize("field", SINGULAR, ids=lambda field: field.name)
def test_every_decoding_field_may_be_left_to_the_server(field: Any) -> None:
    assert field.has_presence  # on the wire an absent one is not a 0
    assert getattr(DecodingRequest(), field.name) is None


def test_only_texts_and_times_must_be_given() -> None:
    request = TranslationRequest(contents=["Hi."], arrived=1.0, deadline=2.0)

    assert request.decoding == DecodingRequest()
    assert {request.source_language_code, request.target_language_code, request.model, request.mime_type} == {""}


def test_what_is_passed_on_is_one_translation_as_long_as_it_is() -> None:
    asked = DecodingRequest(
        beam_size=2,
        num_hypotheses=2,
        max_output_tokens=9,
        min_output_tokens=3,
        sampling=Sampling(),
        suppress=("a",),
        return_alternatives=True,
        min_alternative_expansion_prob=0.1,
        prefix_bias_beta=0.5,
        min_length_ratio=0.5,
        max_length_ratio=2.0,
    )

    assert asked.passed_on() == DecodingRequest(beam_size=2)
