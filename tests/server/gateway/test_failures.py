from typing import Any

import grpc
import pytest

from server.errors import (
    Code,
    DeadlineExceeded,
    GlossaryNotFound,
    InvalidRequest,
    ModelNotFound,
    NotServing,
    Overloaded,
    PermissionDenied,
    Unauthenticated,
)
from server.fronts.front import BodyTooLong, NotOffered
from server.gateway.failures import failure_of


def ended(code: str, words: str, **trailing: str) -> grpc.aio.AioRpcError:
    metadata = grpc.aio.Metadata(*((name.replace("_", "-"), value) for name, value in trailing.items()))
    return grpc.aio.AioRpcError(grpc.StatusCode[code], grpc.aio.Metadata(), metadata, words, None)


@pytest.mark.parametrize(
    ("code", "words", "kind"),
    [
        ("INVALID_ARGUMENT", "contents: is empty", InvalidRequest),
        ("NOT_FOUND", "model: no such model", ModelNotFound),
        ("NOT_FOUND", "glossary.names[0]: no such glossary", GlossaryNotFound),
        ("UNAUTHENTICATED", "no key", Unauthenticated),
        ("PERMISSION_DENIED", "not you", PermissionDenied),
        ("DEADLINE_EXCEEDED", "over", DeadlineExceeded),
        ("UNIMPLEMENTED", "no such method", NotOffered),
    ],
)
def test_an_error_is_what_the_server_raised(code: str, words: str, kind: Any) -> None:
    failure = failure_of(ended(code, words))

    assert (type(failure), str(failure)) == (kind, words)


def test_the_field_of_a_wrong_request_is_kept() -> None:
    wrong = failure_of(ended("INVALID_ARGUMENT", "decoding.beam_size: must be 1 to 8, not 9"))

    assert isinstance(wrong, InvalidRequest)
    assert (wrong.field, wrong.rule) == ("decoding.beam_size", "must be 1 to 8")


def test_the_time_to_come_back_is_kept() -> None:
    busy = failure_of(ended("RESOURCE_EXHAUSTED", "full", grpc_retry_pushback_ms="2500"))

    assert isinstance(busy, Overloaded)
    assert (str(busy), busy.retry_after_seconds) == ("full", 2.5)


def test_what_grpc_itself_says_stays_inside() -> None:
    long = failure_of(ended("RESOURCE_EXHAUSTED", "CLIENT: Received message larger than max"))
    away = failure_of(ended("UNAVAILABLE", "failed to connect to 10.0.0.1:50051"))
    hidden = failure_of(ended("INTERNAL", "Internal error from Core"))
    told = failure_of(ended("UNAVAILABLE", "the server is shutting down", x_request_id="a"))
    ours = failure_of(ended("INTERNAL", "internal error; request id a"))

    assert isinstance(long, BodyTooLong)
    assert isinstance(away, NotServing)
    assert "10.0.0.1" not in str(away)
    assert isinstance(hidden, NotServing)
    assert str(told) == "the server is shutting down"
    assert (ours.code, str(ours)) == (Code.INTERNAL, "internal error")
