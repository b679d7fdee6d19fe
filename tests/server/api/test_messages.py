"""Requests read into plain values, and the calls that bring them, without a server."""

import time

import grpc
import pytest

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import Priority, Tenant
from server.api.messages import parse, read_request, status_message
from server.errors import Code, InvalidRequest, TranslationError
from server.telemetry.log import begin_request, request_id
from server.text.formality import Formality
from server.text.markup.tag_rules import TagRules
from server.translation.request import DecodingRequest, TextOptions

TENANT = Tenant(name="billing")
MESSAGE = pb.TranslateRequest(contents=["A dog runs."], target_language_code="de")
NO_MESSAGE = b"\xff"
STATUSES = {code: grpc.StatusCode[code.name].value[0] for code in Code}


def test_every_field_of_a_request_is_read() -> None:
    message = pb.TranslateRequest(
        contents=["one", "two"],
        source_language_code="en",
        target_language_code="de",
        model="m",
        mime_type="text/plain",
        decoding=pb.DecodingOptions(
            beam_size=3,
            num_hypotheses=2,
            length_penalty=0.5,
            max_output_tokens=9,
            with_scores=False,
            use_shortlist=True,
        ),
        priority=pb.PRIORITY_LOW,
        target_prefixes=["eins", ""],
        traffic_key="document 7",
        formality=pb.FORMALITY_PREFER_LESS,
        output=pb.OutputOptions(
            include_alignment=True, include_tokens=True, include_confidence=True, include_search=True
        ),
        text=pb.TextOptions(
            refuse_unknown_scripts=True,
            translate_attributes=True,
            join_lines=True,
            tags=pb.TagRules(
                ignored=["a"], splitting=["b"], non_splitting=["c", "d"], only_named_split=True, repair=True
            ),
            keep=[pb.KeepRule(literal="Acme"), pb.KeepRule(opening="<<", closing=">>"), pb.KeepRule(opening="[")],
        ),
    )

    request = read_request(message, None, TENANT)

    assert (list(request.contents), request.tenant) == (["one", "two"], TENANT)
    assert list(request.target_prefixes) == ["eins", ""]
    assert (request.source_language_code, request.target_language_code) == ("en", "de")
    assert (request.model, request.mime_type, request.priority) == ("m", "text/plain", Priority.LOW)
    assert (request.traffic_key, request.formality) == ("document 7", Formality.PREFER_LESS)
    assert request.decoding == DecodingRequest(
        beam_size=3,
        num_hypotheses=2,
        length_penalty=0.5,
        max_output_tokens=9,
        with_scores=False,
        use_shortlist=True,
    )
    assert request.with_alignment
    assert request.with_tokens
    assert request.with_confidence
    assert request.with_search
    assert request.text == TextOptions(
        refuse_unknown_scripts=True,
        translate_attributes=True,
        join_lines=True,
        tags=TagRules(frozenset({"a"}), frozenset({"b"}), frozenset({"c", "d"}), only_named_split=True, repair=True),
        keep=["Acme", ("<<", ">>"), ("[", "")],
    )


@pytest.mark.parametrize("rule", [pb.KeepRule(), pb.KeepRule(literal="a", closing="b")])
def test_a_rule_of_two_kinds_or_none_is_refused(rule: pb.KeepRule) -> None:
    message = pb.TranslateRequest(text=pb.TextOptions(keep=[pb.KeepRule(literal="a"), rule]))

    with pytest.raises(
        InvalidRequest, match=r"^text.keep\[1\]: must have either a literal, or an opening and a closing"
    ):
        read_request(message, None, TENANT)


@pytest.mark.parametrize(
    ("request_", "fault"),
    [
        (pb.TranslateRequest(glossary=pb.Glossary(terms=[pb.Term()] * 1001)), "glossary.terms: must be from 0 to 1000"),
        (pb.TranslateRequest(glossary=pb.Glossary(names=["a"] * 17)), "glossary.names: must be from 0 to 16"),
        (
            pb.TranslateRequest(glossary=pb.Glossary(terms=[pb.Term(source="a", target_forms=["a"] * 32)])),
            r"glossary.terms\[0\].target_forms: must be from 0 to 31",
        ),
        (
            pb.TranslateRequest(glossary=pb.Glossary(terms=[pb.Term(source="a", source_forms=["a"] * 32)])),
            r"glossary.terms\[0\].source_forms: must be from 0 to 31",
        ),
        (pb.TranslateRequest(text=pb.TextOptions(keep=[pb.KeepRule()] * 101)), "text.keep: must be from 0 to 100"),
        (
            pb.TranslateRequest(text=pb.TextOptions(tags=pb.TagRules(splitting=["a"] * 101))),
            "text.tags.splitting: must be from 0 to 100 names",
        ),
        (
            pb.TranslateRequest(decoding=pb.DecodingOptions(suppress=["a"] * 101)),
            "decoding.suppress: must be from 0 to 100 phrases, not 101",
        ),
    ],
)
def test_too_many_values_are_refused_before_they_are_read(request_: pb.TranslateRequest, fault: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{fault}"):
        read_request(request_, None, TENANT)


def test_without_a_traffic_key_the_requests_id_is_one() -> None:
    begin_request("id-7")

    assert read_request(MESSAGE, None, TENANT).traffic_key == "id-7"
    request_id.set(None)


def test_a_formality_that_is_none_is_refused() -> None:
    assert read_request(MESSAGE, None, TENANT).formality is None
    assert ["UNSPECIFIED", *(each.name for each in Formality)] == [
        value.name.removeprefix("FORMALITY_") for value in pb.Formality.DESCRIPTOR.values
    ]
    with pytest.raises(InvalidRequest, match="formality: must be from 0 to 4, not 5"):
        read_request(pb.TranslateRequest(formality=5), None, TENANT)  # type: ignore[arg-type]


def test_a_priority_that_is_none_is_refused() -> None:
    assert read_request(MESSAGE, None, TENANT).priority is Priority.NORMAL
    with pytest.raises(InvalidRequest, match="priority: must be from 0 to 3, not 7"):
        read_request(pb.TranslateRequest(priority=7), None, TENANT)  # type: ignore[arg-type]


def test_a_deadline_is_an_instant_from_the_arrival_on() -> None:
    before = time.monotonic()
    soon, never = read_request(MESSAGE, 2.5, TENANT), read_request(MESSAGE, None, TENANT)

    assert before <= soon.arrived <= time.monotonic()
    assert soon.deadline == soon.arrived + 2.5
    assert never.deadline == float("inf")


@pytest.mark.parametrize("error", TranslationError.__subclasses__())
def test_the_error_of_a_text_has_the_number_of_its_status(error: type[TranslationError]) -> None:
    status = status_message(error.__new__(error))

    assert status is not None
    assert status.code == STATUSES[error.code]


def test_a_text_without_an_error_has_no_status() -> None:
    assert status_message(None) is None


def test_bytes_that_are_no_message_are_an_invalid_request() -> None:
    assert parse(pb.TranslateRequest, MESSAGE.SerializeToString()) == MESSAGE
    with pytest.raises(InvalidRequest, match=r"^request: is no valid protobuf message"):
        parse(pb.TranslateRequest, NO_MESSAGE)
