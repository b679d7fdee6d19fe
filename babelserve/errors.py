"""What can go wrong with a call, one class for each answer that a caller may want to tell apart.

TranslationError            base: has `code` and `request_id`
  InvalidRequest            INVALID_ARGUMENT: a field is out of its range; sending it again is useless. So it is with a
                            message that is too long, which gRPC itself refuses, with the code RESOURCE_EXHAUSTED
  Unauthenticated           UNAUTHENTICATED: no API key, or one that is wrong or has expired
  PermissionDenied          PERMISSION_DENIED: known to the server, and not allowed
  ModelNotFound             NOT_FOUND: no such model, or no such glossary
  FailedPrecondition        FAILED_PRECONDITION: a request or a change does not fit how the server is set up
  Overloaded                RESOURCE_EXHAUSTED: the server is full, or the caller's quota is used up (retried first)
  Unavailable               UNAVAILABLE: not reachable, loading or shutting down (retried first)
    TlsFailed               the same, as client and server do not agree about TLS; trying again is useless
  DeadlineExceeded          DEADLINE_EXCEEDED
  ServerFailed              any other: a fault of the server or on the way; `request_id` finds it in its log
"""

import re
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import unquote

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from babelserve.terminal import in_one_line


class TranslationError(Exception):
    """A call that got no answer; `str(error)` is the server's text in one line, with control characters escaped.

    Args:
        message: What happened, for people.
        code: gRPC status; by default the class's own.
        request_id: The server's name for the call, to be found in its log; None when it never got there.
        retry_after_seconds: How long the server asks to be left alone; None when it did not say.
    """

    default_code: ClassVar[grpc.StatusCode] = grpc.StatusCode.UNKNOWN

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode | None = None,
        request_id: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(in_one_line(message))
        self.code = code or self.default_code
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds


class InvalidRequest(TranslationError):
    """A field is missing or out of its range; the message names field, limit and value."""

    default_code = grpc.StatusCode.INVALID_ARGUMENT


class Unauthenticated(TranslationError):
    """The server wants an API key or a client certificate, and got none that it knows."""

    default_code = grpc.StatusCode.UNAUTHENTICATED


class PermissionDenied(TranslationError):
    """The server knows who calls, and does not allow it."""

    default_code = grpc.StatusCode.PERMISSION_DENIED


class ModelNotFound(TranslationError):
    """The server has no model, or no glossary, of that name; the message says which."""

    default_code = grpc.StatusCode.NOT_FOUND


class FailedPrecondition(TranslationError):
    """A request or an operator's change does not fit how the server is set up; the message says why.

    So the server refuses texts without a source language where it cannot detect languages.
    """

    default_code = grpc.StatusCode.FAILED_PRECONDITION


class Overloaded(TranslationError):
    """The server had no room over all attempts; it may have some later, after `retry_after_seconds` if it says so."""

    default_code = grpc.StatusCode.RESOURCE_EXHAUSTED


class Unavailable(TranslationError):
    """No server was ready at the address over all attempts."""

    default_code = grpc.StatusCode.UNAVAILABLE


class TlsFailed(Unavailable):
    """Client and server do not agree about TLS; the message says which certificate or option is wrong."""


class DeadlineExceeded(TranslationError):
    """The answer did not come within the deadline."""

    default_code = grpc.StatusCode.DEADLINE_EXCEEDED


class ServerFailed(TranslationError):
    """The server could not answer, by a fault that is not the caller's."""

    default_code = grpc.StatusCode.INTERNAL


CLASSES: dict[grpc.StatusCode, type[TranslationError]] = {
    error.default_code: error
    for error in (
        InvalidRequest,
        Unauthenticated,
        PermissionDenied,
        ModelNotFound,
        FailedPrecondition,
        Overloaded,
        Unavailable,
        DeadlineExceeded,
        ServerFailed,
    )
}


_ESCAPED = re.compile(r"\b(?:ipv6|unix|unix-abstract):\S*")  # as gRPC's core writes one: ipv6:%5B::1%5D:1
# More than a day is not waited for, and Python cannot wait for 300 years.
_MOST_RETRY_SECONDS = 86_400.0
_TOO_LONG = "message larger than max"  # so gRPC says, of either side; our server never does


def from_rpc_error(error: Any) -> TranslationError:
    """Makes our error of gRPC's, sync (`grpc.RpcError`, which is a `grpc.Call`) or asyncio (`AioRpcError`)."""
    code: grpc.StatusCode = error.code()
    details = _ESCAPED.sub(lambda found: unquote(found[0]), error.details() or code.name)
    trailing = error.trailing_metadata()
    kind = CLASSES.get(code, ServerFailed)
    if kind is Overloaded and _TOO_LONG in details:
        kind = InvalidRequest
    request_id = _metadata_value(error.initial_metadata(), "x-request-id") or _metadata_value(trailing, "x-request-id")
    return kind(
        details,
        code=code,
        request_id=request_id if isinstance(request_id, str) else None,
        retry_after_seconds=_retry_after_seconds(trailing),
    )


def _retry_after_seconds(trailing: Sequence[tuple[str, str | bytes]] | None) -> float | None:
    """What gRPC's own pushback says, or `google.rpc.RetryInfo`, which a proxy may have left of the two."""
    pushback = _metadata_value(trailing, "grpc-retry-pushback-ms")
    if isinstance(pushback, str):
        return min(float(pushback) / 1000, _MOST_RETRY_SECONDS) if pushback.isdecimal() else None
    details = _metadata_value(trailing, "grpc-status-details-bin")
    if not isinstance(details, bytes):
        return None
    retry = RetryInfo()
    try:
        found = [any_.Unpack(retry) for any_ in Status.FromString(details).details]
    except DecodeError:
        return None
    seconds = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
    return min(max(0.0, seconds), _MOST_RETRY_SECONDS) if any(found) else None


def _metadata_value(metadata: Sequence[tuple[str, str | bytes]] | None, key: str) -> str | bytes | None:
    for name, value in metadata or ():
        if name == key:
            return value
    return None
