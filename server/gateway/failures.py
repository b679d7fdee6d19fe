"""The errors of a server's answers over gRPC, as the server itself had raised them."""

from collections.abc import Callable, Mapping
from typing import Any

import grpc

from server.errors import (
    DeadlineExceeded,
    GlossaryNotFound,
    InvalidRequest,
    ModelNotFound,
    NotServing,
    Overloaded,
    PermissionDenied,
    PreconditionFailed,
    TranslationError,
    Unauthenticated,
)
from server.fronts.front import BodyTooLong, NotOffered

_PUSHBACK_KEY, _REQUEST_ID_KEY = "grpc-retry-pushback-ms", "x-request-id"
_KINDS: Mapping[grpc.StatusCode, Callable[[str], TranslationError]] = {
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.FAILED_PRECONDITION: PreconditionFailed,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.UNIMPLEMENTED: NotOffered,
}
# gRPC's own words in place of the status with which a call ended while a text was being sent. Sent again, the call ends
# with the status, or well.
_WHILE_SENDING = "Internal error from Core"
_AWAY = "the server behind this gateway does not answer; the request may be sent again"


def failure_of(error: Any) -> TranslationError:
    """Returns the error that a call has ended with.

    Args:
        error: a `grpc.aio.AioRpcError`.
    """
    code, words = error.code(), error.details() or ""
    trailing = dict(error.trailing_metadata() or ())
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        field, _, rule = words.partition(": ")
        return InvalidRequest(field, rule) if rule else InvalidRequest("request", words)
    if code is grpc.StatusCode.NOT_FOUND:
        return (ModelNotFound if words.startswith("model") else GlossaryNotFound)(words)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return _overloaded(words, trailing.get(_PUSHBACK_KEY))
    if code is grpc.StatusCode.UNAVAILABLE:
        return NotServing(words if _REQUEST_ID_KEY in trailing else _AWAY)  # gRPC's own words have addresses
    if code is grpc.StatusCode.INTERNAL and words == _WHILE_SENDING:
        return NotServing(_AWAY)
    if code in _KINDS:
        return _KINDS[code](words)
    failure = TranslationError("internal error")
    failure.cause = f"the server answered {code.name}"
    return failure


def _overloaded(words: str, pushback: Any) -> TranslationError:
    if pushback is None:  # gRPC's own limit of a message, as the server always says when to come back
        return BodyTooLong("body", "must ask for an answer of at most 64 MiB")
    return Overloaded(words, "elsewhere", int(pushback) / 1000)
