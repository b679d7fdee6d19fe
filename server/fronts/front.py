"""What the HTTP fronts have in common: the statuses of errors, and reading fields of JSON and of forms."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from google.rpc.code_pb2 import Code as StatusNumber

from babelserve.v1 import translation_pb2 as pb
from server.errors import Code, InvalidRequest, TranslationError

STATUSES: Mapping[Code, int] = MappingProxyType(
    {
        Code.OK: 200,
        Code.CANCELLED: 499,
        Code.INVALID_ARGUMENT: 400,
        Code.DEADLINE_EXCEEDED: 504,
        Code.UNAUTHENTICATED: 401,
        Code.PERMISSION_DENIED: 403,
        Code.NOT_FOUND: 404,
        Code.FAILED_PRECONDITION: 400,
        Code.RESOURCE_EXHAUSTED: 429,
        Code.UNIMPLEMENTED: 501,
        Code.INTERNAL: 500,
        Code.UNAVAILABLE: 503,
    }
)


class BodyTooLong(InvalidRequest):
    """The body of a request has too many bytes."""


class BodyTooSlow(InvalidRequest):
    """The body of a request was not whole in time."""


class NotOffered(TranslationError):
    """A vendor's server has this, and this server has not."""

    code = Code.UNIMPLEMENTED


class FailedText(TranslationError):
    """A text of an answer has failed, where a vendor's answer has no place for that.

    Args:
        status: of the text.
    """

    is_recorded = True  # as a call that was answered

    def __init__(self, status: pb.Status) -> None:
        super().__init__(status.message)
        self.code = Code[StatusNumber.Name(status.code)]
        if self.code is Code.RESOURCE_EXHAUSTED:
            self.retry_after_seconds = 1.0  # as of a call that was admitted and then refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """How a vendor answers errors.

    Attributes:
        name: one of `server.telemetry.metrics.FRONTS`.
        body: returns the JSON value of the answer to an error, for the error, its words for the caller and the status.
        statuses: of HTTP, by code, where they differ from `STATUSES`.
    """

    name: str
    body: Callable[[TranslationError, str, int], Any]
    statuses: Mapping[Code, int] = field(default_factory=dict)

    def status_of(self, error: TranslationError) -> int:
        """Returns the status of HTTP that an error is answered with."""
        if isinstance(error, BodyTooLong):
            return 413
        if isinstance(error, BodyTooSlow):
            return 408
        return self.statuses.get(error.code, STATUSES[error.code])

    def words_of(self, error: TranslationError, request_id: str) -> str:
        """Returns what the caller is told of an error: with the request's id if the server is at fault."""
        return f"{error}; request id {request_id}" if error.code.is_ours else str(error)


def raise_failure(parts: Iterable[pb.Translation] | Iterable[pb.Detection]) -> None:
    """Raises FailedText for the first text of an answer that has failed, if one has."""
    for each in parts:
        if each.HasField("status"):
            raise FailedText(each.status)


def check_text(name: str, value: object) -> str:
    """Returns a value of a request that is a text.

    Raises:
        InvalidRequest: it is none, or has half of a surrogate pair, which no UTF-8 can have.
    """
    if not isinstance(value, str):
        raise InvalidRequest(name, f"must be a string, not {_kind(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(name, "must be Unicode text without halves of surrogate pairs") from None
    return value


def check_texts(name: str, value: object) -> list[str]:
    """Returns a value of a request that is a list of texts. Raises InvalidRequest."""
    if not isinstance(value, list):
        raise InvalidRequest(name, f"must be a list of strings, not {_kind(value)}")
    return [check_text(f"{name}[{index}]", each) for index, each in enumerate(value)]


def _kind(value: object) -> str:
    """Returns what JSON calls the type of a value, or a form's file."""
    if value is None:
        return "null"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a file")
