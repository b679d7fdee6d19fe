import json
import time

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.errors import EngineFailed, InvalidRequest
from server.fronts.own import FRONT, error_event, read_message, write_message


def test_fields_may_be_written_in_both_ways() -> None:
    fields = {"contents": ["a"], "target_language_code": "de", "decoding": {"beamSize": 4}, "priority": "PRIORITY_LOW"}

    assert read_message(pb.TranslateRequest, fields) == pb.TranslateRequest(
        contents=["a"],
        target_language_code="de",
        decoding=pb.DecodingOptions(beam_size=4),
        priority=pb.PRIORITY_LOW,
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"content": ["a"]}, 'no field named "content"'),
        ({"decoding": {"beam": 4}}, 'no field named "beam"'),
        ({"contents": "a" * 1000}, "must be in"),
        ({"model": "\ud800"}, "Unpaired surrogate"),
        ({"decoding": {"beamSize": 1 << 40}}, "out of range"),
        ({"decoding": {"lengthPenalty": 10**400}}, "too large"),
        ({"priority": "URGENT"}, "Invalid enum value"),
        ({"\ud800": 1}, "half of a surrogate pair"),
        ({"priority": "\ud800"}, "half of a surrogate pair"),
        ({"decoding": {"\ud800": 1}}, ""),
        ([1], ""),
        (None, ""),
        ("a", ""),
    ],
)
def test_what_is_no_message_is_refused_with_the_reason(fields: object, words: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^body: must be the JSON form of babelserve\.v1\.Tran") as caught:
        read_message(pb.TranslateRequest, fields)

    assert words in str(caught.value)
    assert len(str(caught.value).encode()) < 300
    assert caught.value.rule == "must be the JSON form of babelserve.v1.TranslateRequest"


def test_unknown_fields_may_be_left_out() -> None:
    assert read_message(pb.BulkText, {"content": "a", "more": 1}, ignores_unknown=True) == pb.BulkText(content="a")
    with pytest.raises(InvalidRequest, match="half of a surrogate pair"):
        read_message(pb.BulkText, {"\ud800": 1}, ignores_unknown=True)


def test_a_message_is_written_in_one_line_of_utf_8() -> None:
    message = pb.TranslateResponse(translations=[pb.Translation(text="Fü\nß")], model_version="2")

    written = write_message(message)

    assert b"\n" not in written
    assert "Fü" in written.decode()
    assert json.loads(written) == {"translations": [{"text": "Fü\nß"}], "modelVersion": "2"}


def test_an_error_has_one_form_in_answers_and_streams() -> None:
    error = EngineFailed("failed")

    body = FRONT.body(error, "words", 500)
    assert body == {"error": {"code": 500, "status": "INTERNAL", "message": "words"}}
    assert json.loads(error_event(error, "my-id"))["error"]["message"] == "failed; request id my-id"


@pytest.mark.parametrize("value", ["a", [], {}, 7])
def test_many_values_are_read_in_linear_time(value: object) -> None:
    def seconds(num_values: int) -> float:
        started = time.process_time()
        with pytest.raises(InvalidRequest):
            read_message(pb.TranslateRequest, {"contents": ["a"] * num_values + [value], "none": 1})
        return time.process_time() - started

    quick, slow = (min(seconds(num_values) for _ in range(5)) for num_values in (1_250, 10_000))
    assert slow / quick < 24  # eight times as many values; sixty-four would be a square


def test_an_error_that_quotes_half_of_a_surrogate_pair_can_be_written() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_message(pb.TranslateRequest, {"contents": "\ud800"})

    assert str(caught.value).encode()


def test_long_texts_are_read_as_short_ones() -> None:
    texts = ["a" * 1_000_000, "\u4f60", ""]

    message = read_message(pb.TranslateRequest, {"targetLanguageCode": "de", "contents": texts})

    assert message == pb.TranslateRequest(contents=texts, target_language_code="de")


@pytest.mark.parametrize("contents", [[1], [None], "a", {"a": "b"}, [["a"]], ["\ud800"]])
def test_texts_of_another_kind_are_refused(contents: object) -> None:
    with pytest.raises(InvalidRequest, match="contents"):
        read_message(pb.TranslateRequest, {"contents": contents})
